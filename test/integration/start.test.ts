/** `npm start` itself, as a user runs it: what it prints, keeps, refuses and leaves behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestClient, http, publicActions } from "viem";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { until } from "../../src/local/processes.js";
import { ROOT } from "../../src/local/root.js";
import { type Agent, signIn } from "../support/agent.js";

const parent = mkdtempSync(join(tmpdir(), "start-test-"));
chmodSync(parent, 0o755);
const running: Run[] = [];

interface Run {
  child: ChildProcess;
  output(): string;
  /** The exit code, and null after a signal. */
  exited: Promise<number | null>;
}

interface Addresses {
  baseUrl: string;
  rpcUrl: string;
}

afterEach(async () => {
  for (const run of running.splice(0)) {
    run.child.kill("SIGTERM");
    await run.exited;
  }
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** Without the BASE_URL that Vite sets. */
const { BASE_URL: _, ...inherited } = process.env;

function start(dir: string, env: Record<string, string> = {}, args: string[] = []): Run {
  const child = spawn(process.execPath, [join(ROOT, "scripts/start.mjs"), ...args], {
    env: { ...inherited, DATA_DIR: dir, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  const run = { child, output: () => output, exited };
  running.push(run);
  return run;
}

async function ready(run: Run, dir: string): Promise<Addresses> {
  const isReady = async () => run.child.exitCode !== null || run.output().includes("is ready after");
  await until("npm start is ready", isReady, { timeoutMs: 120_000 });
  if (run.child.exitCode !== null) throw new Error(`npm start ended early: ${run.output()}`);
  return JSON.parse(readFileSync(join(dir, "network.json"), "utf8"));
}

/** Processes that have the folder in their command line, as all children of a network have. */
function childrenOf(dir: string): string[] {
  const entries = existsSync("/proc") ? readdirSync("/proc") : [];
  return entries.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(dir);
    } catch {
      return false;
    }
  });
}

function chainOf(rpcUrl: string) {
  return createTestClient({ mode: "anvil", transport: http(rpcUrl) }).extend(publicActions);
}

describe("npm start", { timeout: 300_000 }, () => {
  it("keeps keys, chain and time over a Ctrl-C and a kill -9, and leaves no process behind", async () => {
    const dir = join(parent, "kept");
    const first = start(dir);
    const before = await ready(first, dir);
    const agent = await signIn({ url: before.baseUrl, chainId: 84_532 });
    await chainOf(before.rpcUrl).increaseTime({ seconds: 100_000 });
    await chainOf(before.rpcUrl).mine({ blocks: 3 });
    const seen = await chainOf(before.rpcUrl).getBlock();
    first.child.kill("SIGINT");
    expect(await first.exited).toBe(0);
    expect(childrenOf(dir)).toEqual([]);
    expect(existsSync(join(dir, "network.json"))).toBe(false);

    const second = start(dir);
    const between = await ready(second, dir);
    expect(await keysOf(agent, between.baseUrl)).toBe(200);
    const later = await chainOf(between.rpcUrl).getBlock();
    expect(later.number).toBeGreaterThanOrEqual(seen.number);
    expect(later.timestamp).toBeGreaterThanOrEqual(seen.timestamp);
    second.child.kill("SIGKILL");
    await second.exited;

    const third = start(dir);
    const after = await ready(third, dir);
    expect(await keysOf(agent, after.baseUrl)).toBe(200);
    const last = await chainOf(after.rpcUrl).getBlock();
    expect(last.number).toBeGreaterThanOrEqual(later.number);
    expect(last.timestamp).toBeGreaterThanOrEqual(later.timestamp);
  });

  it("refuses a second one in the same folder, and takes another port where its own is busy", async () => {
    const dir = join(parent, "twice");
    const busy = createServer();
    const port = await new Promise<number>((resolve) => {
      busy.listen(0, "127.0.0.1", () => resolve((busy.address() as { port: number }).port));
    });
    const first = start(dir, { PORT: String(port) });
    await ready(first, dir);
    expect(first.output()).toContain(`Port ${port} is in use: taking `);

    const second = start(dir);
    expect(await second.exited).toBe(1);
    expect(second.output()).toBe(
      `Already running in this folder (process ${first.child.pid}): stop that one first.\n`,
    );
    busy.close();
  });

  it("tells every fault of its settings in one line each, and starts nothing", async () => {
    const dir = join(parent, "faulty");
    const run = start(dir, { MASTER_KEY: "short", LOG_LEVEL: "loud" });
    expect(await run.exited).toBe(1);
    expect(run.output()).toBe("MASTER_KEY: must be 32 bytes in hex\nLOG_LEVEL: must be a pino level\n");
    expect(existsSync(dir)).toBe(false);
  });

  it("begins anew with --reset", async () => {
    const dir = join(parent, "reset");
    const first = start(dir);
    const before = await ready(first, dir);
    const agent = await signIn({ url: before.baseUrl, chainId: 84_532 });
    first.child.kill("SIGTERM");
    await first.exited;

    const second = start(dir, {}, ["--reset"]);
    const after = await ready(second, dir);
    expect(await keysOf(agent, after.baseUrl)).toBe(401);
  });

  it.runIf(process.getuid?.() === 0)("runs in a folder that Postgres's own user cannot enter", async () => {
    const closed = join(parent, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const dir = join(closed, "data");
    const run = start(dir);
    await ready(run, dir);
    const place = /its data is in (\S+)\.\n/.exec(run.output())?.[1] ?? "";
    expect(existsSync(join(place, "data", "PG_VERSION"))).toBe(true);
    run.child.kill("SIGTERM");
    await run.exited;
    rmSync(place, { recursive: true });
  });
});

async function keysOf(agent: Agent, baseUrl: string): Promise<number> {
  const headers = { authorization: `Bearer ${agent.apiKey}` };
  return (await fetch(`${baseUrl}/v1/agents/me/api-keys`, { headers })).status;
}
