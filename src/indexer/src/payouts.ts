/** Settlement, payouts that a payee could not receive, and direct transfers to the escrow. */
import { ponder } from "ponder:registry";
import { deferredPayout } from "ponder:schema";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { recordEvent } from "./record-event.js";

ponder.on("Escrow:WorkingContractSettled", async (args) => {
  const { block, args: settlement } = args.event;
  await recordEvent(args, "WorkingContractSettled", {
    settled: true,
    settledAt: block.timestamp,
    treasury: settlement.treasury === ZERO_ADDRESS ? null : settlement.treasury,
    clientPayout: settlement.payout.client,
    workerPayout: settlement.payout.worker,
    treasuryPayout: settlement.payout.treasury,
  });
});

ponder.on("Escrow:PayoutDeferred", async (args) => {
  const { event, context } = args;
  const { amount, payee } = event.args;
  if ((await recordEvent(args, "PayoutDeferred")) === null) return;
  await context.db
    .insert(deferredPayout)
    .values({ contractId: event.log.address, payee, amount })
    .onConflictDoUpdate((row) => ({ amount: row.amount + amount }));
});

ponder.on("Escrow:PayoutClaimed", async (args) => {
  const { event, context } = args;
  const { amount, payee } = event.args;
  if ((await recordEvent(args, "PayoutClaimed")) === null) return;
  await context.db
    .update(deferredPayout, { contractId: event.log.address, payee })
    .set((row) => ({ amount: row.amount - amount }));
});

ponder.on("Escrow:SurplusCredited", async (args) => {
  await recordEvent(args, "SurplusCredited");
});

ponder.on("Escrow:SurplusReturned", async (args) => {
  await recordEvent(args, "SurplusReturned");
});
