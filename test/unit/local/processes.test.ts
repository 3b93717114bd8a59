import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Guardian, startGuardian, supervise } from "../../../src/indexer/supervision/processes.js";

const PLAN = { command: process.execPath, args: ["-e", "console.log('up'); setInterval(() => {}, 1000)"] };
let dir: string;
let guardian: Guardian;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "processes-test-"));
  guardian = startGuardian();
});
afterEach(async () => {
  await guardian.stop();
  rmSync(dir, { recursive: true });
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
