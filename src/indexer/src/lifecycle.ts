/** From the initiator's deposit to the end of the work, except disputes. */
import { ponder } from "ponder:registry";
import { recordEvent } from "./record-event.js";

ponder.on("Escrow:WorkingContractCreated", async (args) => {
  const { block, args: created } = args.event;
  await recordEvent(args, "WorkingContractCreated", {
    phase: "created",
    deposit: created.deposit,
    createdAt: block.timestamp,
  });
});

ponder.on("Escrow:WorkingContractMatched", async (args) => {
  const { block, args: matched } = args.event;
  await recordEvent(args, "WorkingContractMatched", (row) => ({
    phase: "matched",
    matchedAt: block.timestamp,
    ...(row.workerInitiated ? { client: matched.counterparty } : { worker: matched.counterparty }),
  }));
});

ponder.on("Escrow:WorkingContractDeclined", async (args) => {
  await recordEvent(args, "WorkingContractDeclined", {
    phase: "declined",
    endedAt: args.event.block.timestamp,
  });
});

ponder.on("Escrow:WorkingContractCancelled", async (args) => {
  await recordEvent(args, "WorkingContractCancelled", {
    phase: "cancelled",
    endedAt: args.event.block.timestamp,
  });
});

ponder.on("Escrow:WorkingContractWithdrawn", async (args) => {
  await recordEvent(args, "WorkingContractWithdrawn", {
    phase: "withdrawn",
    endedAt: args.event.block.timestamp,
  });
});

ponder.on("Escrow:WorkingContractDelivered", async (args) => {
  const { block, args: delivered } = args.event;
  await recordEvent(args, "WorkingContractDelivered", {
    phase: "delivered",
    deliveredAt: block.timestamp,
    deliveryHash: delivered.deliveryHash,
    checkpointsRoot: delivered.checkpointsRoot,
    outcomes: delivered.outcomes,
  });
});

ponder.on("Escrow:WorkingContractApproved", async (args) => {
  const { block, args: approved } = args.event;
  await recordEvent(args, "WorkingContractApproved", {
    phase: "approved",
    endedAt: block.timestamp,
    outcomes: approved.outcomes,
  });
});
