import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startGuardian } from "../../../src/indexer/supervision/guardian.js";
import { LOCAL_CHAIN_ID, startChain } from "../../../tools/local/chain.js";
import { freePort } from "../../../tools/local/ports.js";
import { until } from "../../../tools/local/processes.js";
import { listen } from "../../support/listen.js";

let dir: string;
let guardian: ReturnType<typeof startGuardian>;
let asked: string[];
let other: Server;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "chain-test-"));
  guardian = startGuardian();
  asked = [];
  const result = `0x${LOCAL_CHAIN_ID.toString(16)}`;
  other = createServer(async (request, response) => {
    const { id, method } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    asked.push(method);
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
});
afterEach(async () => {
  other.close();
  await guardian.stop();
  rmSync(dir, { recursive: true });
});

const start = (port: number) => {
  const part = { guardian, logPath: join(dir, "chain.log"), report: () => {} };
  return startChain({ ...part, dir, port, blockTime: 1, persistent: true });
};

it("a chain that another clone serves on the port is not taken for the own one", async () => {
  const { port } = await listen(other);
  await expect(start(port)).rejects.toThrow(
    /The local chain did not start .*\nError: Address already in use/,
  );
});

it("a chain that another clone serves on the port, once the own one has ended, is not saved for it", async () => {
  const port = await freePort();
  const chain = await start(port);
  await chain.save();
  const state = () => readFileSync(join(dir, "state.json.gz"));
  const own = state();
  process.kill(chain.pid() ?? 0, "SIGKILL");
  const isTaken = () => once(other.listen(port, "127.0.0.1"), "listening").then(() => true);
  await until("the other clone has the port", isTaken, { timeoutMs: 20_000 });
  const isRestarting = async () => !existsSync(join(dir, "anvil.json"));
  await until("the own chain is started again", isRestarting, { timeoutMs: 20_000 });
  await chain.stop();
  expect(asked).not.toContain("anvil_dumpState");
  expect(state().equals(own)).toBe(true);
});
