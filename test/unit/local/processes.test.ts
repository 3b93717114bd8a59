import { EventEmitter, once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { writeDeployment } from "../../../src/chain/deployment.js";
import { type Guardian, startGuardian } from "../../../src/indexer/supervision/guardian.js";
import { indexerCommand } from "../../../src/indexer/supervision/indexer.js";
import { supervise, until } from "../../../tools/local/processes.js";
import { exampleDeployment } from "../../support/deployment.js";

const PLAN = { command: process.execPath, args: ["-e", "console.log('up'); setInterval(() => {}, 1000)"] };
let dir: string;
let guardian: Guardian;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "processes-test-"));
  guardian = startGuardian();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await guardian.stop();
  rmSync(dir, { recursive: true });
});

it("the log of a child names no URL, which can hold a key, also if it comes in pieces", async () => {
  const url = "https://node.example/v2/SECRET";
  const script = `process.stdout.write("failed: ${url.slice(0, -3)}"); setTimeout(() => console.log("${url.slice(-3)} twice"), 100)`;
  const logPath = join(dir, "child.log");
  const logged = () => (existsSync(logPath) ? readFileSync(logPath, "utf8") : "");
  const part = await supervise({
    name: "The child",
    guardian,
    logPath,
    report: () => {},
    plan: async () => ({ ...PLAN, args: ["-e", `${script}; setInterval(() => {}, 1000)`] }),
    ready: () => until("it has logged", async () => logged() !== "", { timeoutMs: 20_000 }),
  });
  await part.stop();
  expect(logged()).toBe("failed: [url] twice\n");
});

it("a child is not started again once the guardian stops: no one would end it", async () => {
  let starts = 0;
  const reports: string[] = [];
  const part = await supervise({
    name: "The child",
    guardian,
    logPath: join(dir, "child.log"),
    report: (line) => reports.push(line),
    plan: async () => {
      starts++;
      return PLAN;
    },
    ready: async () => {},
  });
  await guardian.stop();
  await expect.poll(() => reports.join()).toContain("Restarting in 1 s");
  await delay(1_500);
  expect(starts).toBe(1);
  await part.stop();
});

it("a child that is being restarted while everything stops does not survive", async () => {
  const preparation = new EventEmitter();
  const preparing = once(preparation, "begun");
  let starts = 0;
  const part = await supervise({
    name: "The child",
    guardian,
    logPath: join(dir, "child.log"),
    report: () => {},
    async plan() {
      if (++starts === 2) {
        preparation.emit("begun");
        await once(preparation, "released");
      }
      return PLAN;
    },
    ready: async () => {},
  });
  const first = part.pid();
  process.kill(first ?? 0, "SIGKILL");
  await preparing;

  const stopped = part.stop();
  preparation.emit("released");
  await stopped;

  const second = part.pid() ?? 0;
  expect(second).not.toBe(first);
  expect(() => process.kill(second, 0)).toThrow("ESRCH");
});

it("the indexer gets no key that this process has, and a default for an empty setting", () => {
  const deploymentPath = join(dir, "deployment.json");
  writeDeployment(deploymentPath, exampleDeployment);
  const keys = ["MASTER_KEY", "MASTER_KEYS_OLD", "RELAYER_PRIVATE_KEYS", "OPERATOR_KEY", "WC_PRIVATE_KEY"];
  for (const name of keys) vi.stubEnv(name, "secret");
  vi.stubEnv("PONDER_POLLING_INTERVAL_MS", "");
  const options = { databaseUrl: "postgres://127.0.0.1/x", rpcUrl: "http://127.0.0.1:8545", port: 0 };
  const { env } = indexerCommand({ ...options, deploymentPath });
  expect(Object.values(env)).not.toContain("secret");
  const passed = { PATH: process.env.PATH, DATABASE_URL: options.databaseUrl };
  expect(env).toMatchObject({ ...passed, PONDER_POLLING_INTERVAL_MS: "250" });
});
