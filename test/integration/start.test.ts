/**
 * Runs `npm start` as a user does, and checks its output, its data, its errors and its leftovers. Beside it, the
 * documented programs run unchanged: unmodified x402 clients with default settings, and readers of the event log.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, generatePrivateKey, privateKeyToAccount } from "@working-contracts/client/index";
import { createTestClient, http, publicActions } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { ensureClients } from "../../tools/install.mjs";
import { freePort } from "../../tools/local/ports.js";
import { until } from "../../tools/local/processes.js";
import { type Agent, signIn } from "../support/agent.js";
import { listen } from "../support/listen.js";
import {
  DEFAULT_URL,
  documentedPrograms,
  STOCK_CLIENTS,
  stockProgram,
  stockProgramAboveLimit,
} from "../support/packages.js";
import { type Finished, runProcess, startProcess } from "../support/run-process.js";

/** Elsewhere npm's end cannot be seen without ps, and the tests cannot see processes without /proc. */
const itOnLinux = it.runIf(process.platform === "linux");
const parent = mkdtempSync(join(tmpdir(), "start-test-"));
chmodSync(parent, 0o755);
const running: Run[] = [];

type Run = ReturnType<typeof startProcess>;

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

afterAll(() => rmSync(parent, { recursive: true, force: true }));

function start(dir: string, env: Record<string, string> = {}): Run {
  return launch(process.execPath, [join(ROOT, "tools/start.mjs")], {
    DATA_DIR: dir,
    PORT: "0",
    ...env,
  });
}

/** A folder with what README.md asks for, and `id`: a slim image has no ps. */
function slimPath(): string {
  const path = join(parent, "slim path");
  mkdirSync(path);
  for (const program of ["node", "npm", "git", "sh", "id"]) {
    const folder = process.env.PATH?.split(":").find((dir) => existsSync(join(dir, program)));
    symlinkSync(realpathSync(join(folder ?? "", program)), join(path, program));
  }
  return path;
}

function launch(command: string, args: string[], env: Record<string, string>): Run {
  const run = startProcess(command, args, { env });
  running.push(run);
  return run;
}

async function ready(run: Run, dir: string): Promise<Addresses> {
  const isReady = async () => run.child.exitCode !== null || run.output().includes("is ready after");
  await until("npm start is ready", isReady, { timeoutMs: 240_000 });
  if (run.child.exitCode !== null) throw new Error(`npm start ended early: ${run.output()}`);
  return JSON.parse(readFileSync(join(dir, "network.json"), "utf8"));
}

/** Processes for which this holds; those that have ended meanwhile are none. */
function processesThat(isMeant: (folder: string) => boolean): string[] {
  const entries = existsSync("/proc") ? readdirSync("/proc") : [];
  return entries.filter((pid) => {
    try {
      return isMeant(`/proc/${pid}`);
    } catch {
      return false;
    }
  });
}

/** Processes that have one of the folders in their command line, as all children of a network have. */
const childrenOf = (folders: (string | undefined)[]): string[] =>
  processesThat((process) => {
    const command = readFileSync(`${process}/cmdline`, "utf8");
    return folders.some((folder) => folder !== undefined && command.includes(folder));
  });

function chainOf(rpcUrl: string) {
  return createTestClient({ mode: "anvil", transport: http(rpcUrl) }).extend(publicActions);
}

describe("npm start", { timeout: 300_000 }, () => {
  const dir = join(parent, "closed", "kept");
  /** Where Postgres keeps its data if this runs as root. */
  let place: string | undefined;
  let run: Run;
  let baseUrl: string;
  let rpcUrl: string;
  let agent: Agent;
  let seen: { number: bigint; timestamp: bigint };

  beforeAll(async () => {
    mkdirSync(join(parent, "closed"), { mode: 0o700 });
    // Stock clients do not repeat a call that is still pending, so on a slow machine they wait longer.
    run = start(dir, { SETTLEMENT_WAIT_MS: "100000" });
    ({ baseUrl, rpcUrl } = await ready(run, dir));
    [, place] = /Its data is in (\S+)\.\n/.exec(run.output()) ?? [];
    agent = await signIn({ url: baseUrl, chainId: 84_532 });
  }, 300_000);
  afterAll(async () => {
    await stopAll();
    if (place !== undefined) rmSync(place, { recursive: true, force: true });
  });

  /** The data of the previous run is kept: the agent's key, and a chain at least as long and as late as before. */
  async function expectKept({ baseUrl, rpcUrl }: Addresses): Promise<void> {
    expect(await keysOf(agent, baseUrl)).toBe(200);
    const block = await chainOf(rpcUrl).getBlock();
    expect(block.number).toBeGreaterThanOrEqual(seen.number);
    expect(block.timestamp).toBeGreaterThanOrEqual(seen.timestamp);
    seen = block;
  }

  async function expectNothingLeft(): Promise<void> {
    await until("no process of the network is left", async () => childrenOf([dir, place]).length === 0, {
      timeoutMs: 60_000,
    });
    expect(existsSync(join(dir, "network.json"))).toBe(false);
  }

  it("refuses a PORT that is in use, and a second start in the same folder", async () => {
    const busy = createServer();
    const { port } = await listen(busy);
    const refused = start(dir, { PORT: String(port) });
    const other = start(dir);
    expect(await Promise.all([refused.exited, other.exited])).toEqual([1, 1]);
    expect(refused.output()).toBe(
      `PORT: ${port} is in use; stop the program that listens there, or choose another port\n`,
    );
    busy.close();
    expect(other.output()).toBe(
      `Already running in this folder (process ${run.child.pid}): stop that one first.\n`,
    );
  });

  describe("serves the documented programs:", () => {
    let folder: string;

    beforeAll(async () => {
      await ensureClients();
      // Inside the folder of the clients, so that Node finds them.
      const cache = join(ROOT, "test/clients/node_modules/.cache");
      mkdirSync(cache, { recursive: true });
      folder = mkdtempSync(join(cache, "program-"));
    }, 600_000);
    afterAll(() => {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    });

    /** The client's programs one after the other, in one process. */
    async function runStock(client: string, ...programs: (typeof stockProgram)[]): Promise<Finished> {
      const files = programs.map((programOf) => {
        const file = `./${client.replace("/", "-")}-${programOf.name}.mjs`;
        writeFileSync(join(folder, file), programOf(client, baseUrl));
        return file;
      });
      const all = files.map((file) => `await import(${JSON.stringify(file)});`).join("\n");
      const args = ["--input-type=module", "--eval", all];
      return runProcess("node", args, { cwd: folder, timeoutMs: 240_000 });
    }

    async function callSandbox(call: string, body: object): Promise<void> {
      const response = await fetch(`${baseUrl}/sandbox/${call}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect(response.status).toBe(200);
    }

    describe.concurrent("the event log", () => {
      const [follow = "", receive = ""] = documentedPrograms("docs/events.md");

      // Concurrent tests need their own `expect` to poll.
      it.for([
        ["is followed by the documented iterator", follow],
        ["reaches the documented webhook receiver", receive],
      ] as const)("%s", { timeout: 300_000 }, async ([, program], { expect }) => {
        const key = generatePrivateKey();
        const port = await freePort();
        const file = join(folder, `events-${port}.mjs`);
        writeFileSync(file, program.replaceAll(DEFAULT_URL, baseUrl).replaceAll("4000", String(port)));
        const { child, output } = startProcess("node", [file], { cwd: folder, env: { AGENT_KEY: key } });
        try {
          const account = privateKeyToAccount(key);
          const agent = await connect({ baseUrl, account, spendingLimit: { perCall: "1" } });
          await callSandbox("faucet", { address: account.address, usd: "1" });
          const isListening = () =>
            program === follow || agent.webhooks.list().then(({ length }) => length === 1);
          await expect.poll(isListening).toBe(true);
          const { id } = await agent.create({
            title: "Summarise a paper",
            taskDescription: "One page.",
            acceptanceCriteria: ["One page"],
            budgetOrPrice: 1,
            ...(await agent.deadlines({ match: "1d", withdrawal: "2d", delivery: "3d", review: "4d" })),
          });
          await expect.poll(output).toMatch(new RegExp(`^\\d+ contract.created ${id}$`, "m"));
        } finally {
          child.kill();
        }
      });
    });

    it.concurrent("the OpenAPI document passes a linter without a warning", {
      timeout: 300_000,
    }, async () => {
      const clients = join(ROOT, "test/clients");
      const redocly = join(clients, "node_modules/@redocly/cli/bin/cli.js");
      const args = [redocly, "lint", `${baseUrl}/openapi.json`, "--config=redocly.yaml", "--format=json"];
      const env = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
      const { stdout } = await runProcess("node", args, { cwd: clients, env, timeoutMs: 240_000 });
      expect(JSON.parse(stdout).problems).toEqual([]);
    });

    describe.concurrent("each stock client", () => {
      it.each(STOCK_CLIENTS)(
        "%s posts a contract with default settings, and above its limit with the documented one",
        {
          timeout: 300_000,
        },
        async (client) => {
          const { code, stdout, stderr } = await runStock(client, stockProgram, stockProgramAboveLimit);
          expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
          expect(stdout).toMatch(/^200 .*"status":"created".*\n200 .*"budgetOrPrice":"50\.0"/);
        },
      );
    });

    // Last, because the clock never goes back.
    describe("a stock client", () => {
      it.each([
        ["", 600, /^402 .*clock is \d+ minutes ahead of the real time, as in a sandbox/],
        [
          " past the deadlines",
          2 * 86_400,
          /^400 .*matchDeadline.*clock is 2 days ahead of the real time, as in a sandbox/,
        ],
      ])(
        "is refused after the sandbox's clock was moved%s",
        {
          timeout: 300_000,
        },
        async (_, seconds, answer) => {
          await callSandbox("clock", { advanceSeconds: seconds });
          expect((await runStock("@x402/fetch", stockProgram)).stdout).toMatch(answer);
        },
      );
    });
  });

  it.runIf(process.getuid?.() === 0)("runs in a folder that Postgres's own user cannot enter", () => {
    expect(existsSync(join(place ?? "", "data", "PG_VERSION"))).toBe(true);
  });

  it("keeps keys, chain and time over a Ctrl-C, and leaves no process behind", async () => {
    await chainOf(rpcUrl).increaseTime({ seconds: 100_000 });
    await chainOf(rpcUrl).mine({ blocks: 3 });
    seen = await chainOf(rpcUrl).getBlock();
    run.child.kill("SIGINT");
    expect(await run.exited).toBe(0);
    expect(childrenOf([dir, place])).toEqual([]);
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

  itOnLinux(
    "stops everything when npm ends by SIGTERM, and starts from scratch with --reset on a machine without ps",
    async () => {
      run.child.kill("SIGTERM");
      await expectNothingLeft();
      writeFileSync(join(dir, "notes"), "mine");
      run = launch("npm", ["start", "--", "--reset"], { DATA_DIR: dir, PORT: "0", PATH: slimPath() });
      ({ baseUrl } = await ready(run, dir));
      expect(await keysOf(agent, baseUrl)).toBe(401);
      expect(readFileSync(join(dir, "notes"), "utf8")).toBe("mine");
    },
  );

  itOnLinux("stops everything when npm ends by SIGKILL, without ps too", async () => {
    run.child.kill("SIGKILL");
    await expectNothingLeft();
  });
});

itOnLinux("ends if npm does in its first moments", { timeout: 120_000 }, async () => {
  const dir = join(parent, "early");
  /** Processes that run the script, without npm and its shell, which only name it. */
  const scripts = () =>
    processesThat((process) => {
      const [command = "", script] = readFileSync(`${process}/cmdline`, "utf8").split("\0");
      const environment = readFileSync(`${process}/environ`, "utf8").split("\0");
      const isScript = command.endsWith("node") && script === "tools/start.mjs";
      return isScript && environment.includes(`DATA_DIR=${dir}`);
    });
  const { child, exited } = launch("npm", ["start"], { DATA_DIR: dir, PORT: "0" });
  await until("npm has launched it", async () => scripts().length === 1, { timeoutMs: 60_000 });
  child.kill("SIGTERM");
  await exited;
  await until("it has ended", async () => scripts().length === 0, { timeoutMs: 60_000 });
  expect(childrenOf([dir])).toEqual([]);
});

async function keysOf(agent: Agent, baseUrl: string): Promise<number> {
  const headers = { authorization: `Bearer ${agent.apiKey}` };
  return (await fetch(`${baseUrl}/v1/agents/me/api-keys`, { headers })).status;
}
