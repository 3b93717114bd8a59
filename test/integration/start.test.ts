/** Runs `npm start` as a user does, and checks its output, its data, its errors and its leftovers. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestClient, http, publicActions } from "viem";
import { afterAll, describe, expect, it } from "vitest";
import { until } from "../../src/indexer/supervision/processes.js";
import { ROOT } from "../../src/root.js";
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

async function stopAll(): Promise<void> {
  for (const run of running) {
    run.child.kill("SIGTERM");
    await run.exited;
  }
}

afterAll(async () => {
  await stopAll();
  rmSync(parent, { recursive: true, force: true });
});

/** Nothing else of this process's environment. */
const { PATH, HOME } = process.env;

function start(dir: string, env: Record<string, string> = {}): Run {
  return launch(process.execPath, [join(ROOT, "tools/start.mjs")], {
    DATA_DIR: dir,
    PORT: "0",
    ...env,
  });
}

function launch(command: string, args: string[], env: Record<string, string>): Run {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { PATH, HOME, ...env },
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
  await until("npm start is ready", isReady, { timeoutMs: 240_000 });
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
  const dir = join(parent, "kept");
  let run: Run;
  let agent: Agent;
  let seen: { number: bigint; timestamp: bigint };

  /** The data of the previous run is kept: the agent's key, and a chain at least as long and as late as before. */
  async function expectKept({ baseUrl, rpcUrl }: Addresses): Promise<void> {
    expect(await keysOf(agent, baseUrl)).toBe(200);
    const block = await chainOf(rpcUrl).getBlock();
    expect(block.number).toBeGreaterThanOrEqual(seen.number);
    expect(block.timestamp).toBeGreaterThanOrEqual(seen.timestamp);
    seen = block;
  }

  async function expectNothingLeft(): Promise<void> {
    await until("no process of the network is left", async () => childrenOf(dir).length === 0, {
      timeoutMs: 60_000,
    });
    expect(existsSync(join(dir, "network.json"))).toBe(false);
  }

  it("refuses a PORT that is in use, and a second start in the same folder", async () => {
    const busy = createServer();
    const port = await new Promise<number>((resolve) => {
      busy.listen(0, "127.0.0.1", () => resolve((busy.address() as { port: number }).port));
    });
    const refused = start(dir, { PORT: String(port) });
    expect(await refused.exited).toBe(1);
    expect(refused.output()).toBe(
      `PORT: ${port} is in use; stop the program that listens there, or choose another port\n`,
    );
    busy.close();

    run = start(dir);
    const { baseUrl, rpcUrl } = await ready(run, dir);
    agent = await signIn({ url: baseUrl, chainId: 84_532 });
    await chainOf(rpcUrl).increaseTime({ seconds: 100_000 });
    await chainOf(rpcUrl).mine({ blocks: 3 });
    seen = await chainOf(rpcUrl).getBlock();

    const other = start(dir);
    expect(await other.exited).toBe(1);
    expect(other.output()).toBe(
      `Already running in this folder (process ${run.child.pid}): stop that one first.\n`,
    );
  });

  it("keeps keys, chain and time over a Ctrl-C, and leaves no process behind", async () => {
    run.child.kill("SIGINT");
    expect(await run.exited).toBe(0);
    expect(childrenOf(dir)).toEqual([]);
    expect(existsSync(join(dir, "network.json"))).toBe(false);

    run = start(dir);
    await expectKept(await ready(run, dir));
  });

  it("keeps them over a kill -9", async () => {
    run.child.kill("SIGKILL");
    await run.exited;
    run = launch("npm", ["start"], { DATA_DIR: dir, PORT: "0" });
    await expectKept(await ready(run, dir));
  });

  it("stops everything when npm ends by SIGTERM, and starts from scratch with --reset", async () => {
    run.child.kill("SIGTERM");
    await expectNothingLeft();
    run = launch("npm", ["start", "--", "--reset"], { DATA_DIR: dir, PORT: "0" });
    const { baseUrl } = await ready(run, dir);
    expect(await keysOf(agent, baseUrl)).toBe(401);
  });

  it("stops everything when npm ends by SIGKILL", async () => {
    run.child.kill("SIGKILL");
    await expectNothingLeft();
  });

  it("reports every invalid setting in one line each, and starts nothing", async () => {
    const faulty = join(parent, "faulty");
    const refused = start(faulty, { MASTER_KEY: "short", LOG_LEVEL: "loud" });
    expect(await refused.exited).toBe(1);
    expect(refused.output()).toBe("MASTER_KEY: must be 32 bytes in hex\nLOG_LEVEL: must be a pino level\n");
    expect(existsSync(faulty)).toBe(false);
  });

  it.runIf(process.getuid?.() === 0)("runs in a folder that Postgres's own user cannot enter", async () => {
    const closed = join(parent, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const inside = join(closed, "data");
    const hidden = start(inside);
    await ready(hidden, inside);
    const place = /Its data is in (\S+)\.\n/.exec(hidden.output())?.[1] ?? "";
    expect(existsSync(join(place, "data", "PG_VERSION"))).toBe(true);
    hidden.child.kill("SIGTERM");
    await hidden.exited;
    rmSync(place, { recursive: true });
  });
});

async function keysOf(agent: Agent, baseUrl: string): Promise<number> {
  const headers = { authorization: `Bearer ${agent.apiKey}` };
  return (await fetch(`${baseUrl}/v1/agents/me/api-keys`, { headers })).status;
}
