import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startGuardian } from "../../../src/indexer/supervision/guardian.js";
import { LOCAL_CHAIN_ID, startChain } from "../../../tools/local/chain.js";
import { listen } from "../../support/listen.js";

it("a chain that another clone serves on the port is not taken for the own one", async () => {
  const dir = mkdtempSync(join(tmpdir(), "chain-test-"));
  const guardian = startGuardian();
  const result = `0x${LOCAL_CHAIN_ID.toString(16)}`;
  const other = createServer(async (request, response) => {
    const { id } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const { port } = await listen(other);
  const part = { guardian, logPath: join(dir, "chain.log"), report: () => {} };
  const start = startChain({ ...part, dir, port, blockTime: 1, persistent: true });
  await expect(start).rejects.toThrow(/The local chain did not start .*\nError: Address already in use/);
  other.close();
  await guardian.stop();
  rmSync(dir, { recursive: true });
});
