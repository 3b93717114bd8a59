import { createServer, type Socket } from "node:net";
import { createPublicClient } from "viem";
import { expect, it } from "vitest";
import { rpcTransport } from "../../src/chain/clients.js";
import { createDatabase } from "../../src/db/client.js";
import { createMetrics } from "../../src/metrics.js";
import { listen } from "../support/listen.js";

it("exposes metrics while the node and the database accept connections but never respond", {
  timeout: 10_000,
}, async () => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  const { port, url } = await listen(silent);
  const { pool, db } = createDatabase(`postgres://user@127.0.0.1:${port}/none`);
  const metrics = createMetrics({
    db,
    pools: {},
    publicClient: createPublicClient({ transport: rpcTransport(url) }),
    signers: [`0x${"11".repeat(20)}`],
    maxFeePerGas: 1n,
    gasPolicy: { allowance: 1, budget: 1, perFee: 1 },
  });

  const { text } = await metrics.expose();

  for (const name of ["index_lag_blocks", "chain_head_age_seconds", "late_settlements", "deferred_payouts"]) {
    expect(text).toMatch(new RegExp(`^working_contracts_${name} Nan$`, "m"));
  }
  expect(text).not.toMatch(/^working_contracts_(relayer_signer_balance_wei|outbox_operations)\{/m);
  silent.close();
  for (const socket of sockets) socket.destroy();
  await pool.end();
});
