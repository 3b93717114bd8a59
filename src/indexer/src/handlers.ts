/** How each event of the chain changes the index. Handlers look rows up by primary key and keep no module state. */
import { type Context, type Event, type EventNames, ponder } from "ponder:registry";
import { deferredPayout, draw, escrowEvent, parameterSet, stake, vote, workingContract } from "ponder:schema";
import { priceBand } from "@working-contracts/protocol/amounts";
import { unpackTerms } from "@working-contracts/protocol/terms";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { decodeEventLog, parseAbi } from "viem";

ponder.on("Factory:WorkingContractDeployed", async ({ event, context }) => {
  const { escrow, packedTerms } = event.args;
  const terms = unpackTerms(packedTerms);
  const { parameters, initiator, workerInitiated } = terms;
  const namedCounterparty = terms.counterparty === ZERO_ADDRESS ? null : terms.counterparty;

  await context.db.insert(workingContract).values({
    ...parameters,
    id: escrow,
    initiator,
    namedCounterparty,
    workerInitiated,
    computedCriteria: terms.computedCriteria,
    price: terms.price,
    priceBand: priceBand(terms.price),
    criteriaCount: terms.criteriaCount,
    matchDeadline: BigInt(terms.matchDeadline),
    withdrawalDeadline: BigInt(terms.withdrawalDeadline),
    deliveryDeadline: BigInt(terms.deliveryDeadline),
    reviewDeadline: BigInt(terms.reviewDeadline),
    termsHash: terms.termsHash,
    baEligibilityStake: BigInt(parameters.baEligibilityStake),
    phase: "none",
    // The Worker of a direct award is known from the start; a reserved Buyer is Client only once matched.
    client: workerInitiated ? null : initiator,
    worker: workerInitiated ? initiator : namedCounterparty,
    outcomes: 0,
    sealedVotes: 0,
    openedVotes: 0,
    drawn: false,
    settled: false,
    updatedBlock: event.block.number,
    updatedBlockHash: event.block.hash,
  });
});

ponder.on("Factory:ParametersChanged", async ({ event, context }) => {
  await context.db.insert(parameterSet).values({
    id: event.id,
    parameters: { ...event.args.parameters },
    blockNumber: event.block.number,
  });
});

ponder.on("Escrow:WorkingContractCreated", async (args) => {
  await recordEvent(args, "WorkingContractCreated", {
    phase: "created",
    createdAt: args.event.block.timestamp,
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

const drawnAbi = parseAbi(["event BackupAgentsDrawn(address[] backupAgents)"]);

ponder.on("Escrow:WorkingContractDisputed", async (args) => {
  const { block, args: disputed } = args.event;
  await recordEvent(args, "WorkingContractDisputed", {
    phase: "disputed",
    disputedAt: block.timestamp,
    disputeBond: disputed.bond,
  });
});

ponder.on("Escrow:BackupAgentsDrawn", async ({ event, context }) => {
  const { address, data, topics } = event.log;
  if ((await context.db.find(workingContract, { id: address })) === null) return;
  // Ponder's own decoder reads the array as one address once a stranger has emitted a truncated one.
  const drawn = decodeEventLog({ abi: drawnAbi, data, topics }).args;
  const args = { context, event: { ...event, args: drawn } };
  await recordEvent(args, "BackupAgentsDrawn", { drawn: true });
  for (const backupAgent of drawn.backupAgents) {
    await context.db.insert(draw).values({ contractId: address, backupAgent });
  }
});

ponder.on("Escrow:VoteSealed", async (args) => {
  const { event, context } = args;
  const { backupAgent, bond, commitment } = event.args;
  const row = await recordEvent(args, "VoteSealed", ({ sealedVotes }) => ({ sealedVotes: sealedVotes + 1 }));
  if (row === null) return;
  await context.db.insert(vote).values({
    contractId: event.log.address,
    backupAgent,
    commitment,
    bond,
    position: row.sealedVotes - 1,
    sealedAt: event.block.timestamp,
    claimed: false,
    rewardDeferred: false,
  });
});

ponder.on("Escrow:VoteOpened", async (args) => {
  const { event, context } = args;
  const { backupAgent, votes } = event.args;
  const row = await recordEvent(args, "VoteOpened", ({ openedVotes }) => ({ openedVotes: openedVotes + 1 }));
  if (row === null) return;
  await context.db.update(vote, { contractId: event.log.address, backupAgent }).set({ votes });
});

ponder.on("Escrow:WorkingContractTallied", async (args) => {
  const { block, args: tallied } = args.event;
  await recordEvent(args, "WorkingContractTallied", {
    phase: "tallied",
    endedAt: block.timestamp,
    outcomes: tallied.outcomes,
  });
});

// If the reward of a claim was deferred, a second claim later pays only the reward: the two add up.
ponder.on("Escrow:VoteClaimed", async (args) => {
  const { event, context } = args;
  const { backupAgent, reward } = event.args;
  if ((await recordEvent(args, "VoteClaimed")) === null) return;
  await context.db.update(vote, { contractId: event.log.address, backupAgent }).set((row) => ({
    claimed: true,
    reward: (row.reward ?? 0) + Number(reward),
    rewardDeferred: false,
  }));
});

ponder.on("Escrow:RewardDeferred", async (args) => {
  const { event, context } = args;
  if ((await recordEvent(args, "RewardDeferred")) === null) return;
  await context.db
    .update(vote, { contractId: event.log.address, backupAgent: event.args.backupAgent })
    .set({ rewardDeferred: true });
});

ponder.on("Escrow:WorkingContractSettled", async (args) => {
  const { block, args: settlement } = args.event;
  await recordEvent(args, "WorkingContractSettled", {
    settled: true,
    settledAt: block.timestamp,
    treasury: settlement.treasury === ZERO_ADDRESS ? null : settlement.treasury,
    clientPayout: settlement.payout.client,
    workerPayout: settlement.payout.worker,
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

ponder.on("Escrow:DirectTransferCredited", async (args) => {
  await recordEvent(args, "DirectTransferCredited");
});

ponder.on("Escrow:DirectTransferRefunded", async (args) => {
  await recordEvent(args, "DirectTransferRefunded");
});

ponder.on("BackupAgentRegistry:Staked", async ({ event, context }) => {
  const { agent, total: amount } = event.args;
  const change = { amount, since: event.block.timestamp, ...placeOf(event.block) };
  await context.db
    .insert(stake)
    .values({ agent, ...change })
    .onConflictDoUpdate(change);
});

ponder.on("BackupAgentRegistry:UnstakeRequested", async ({ event, context }) => {
  const { agent, releasableAt } = event.args;
  await context.db
    .update(stake, { agent })
    .set({ releasableAt: BigInt(releasableAt), ...placeOf(event.block) });
});

ponder.on("BackupAgentRegistry:Unstaked", async ({ event, context }) => {
  await context.db.delete(stake, { agent: event.args.agent });
});

const placeOf = ({ number, hash }: { number: bigint; hash: `0x${string}` }) => ({
  blockNumber: number,
  blockHash: hash,
});

/** Names of the escrow's events, e.g. `VoteSealed`. */
type EscrowEventName = Exclude<
  EventNames extends infer Name ? (Name extends `Escrow:${infer Event}` ? Event : never) : never,
  "setup"
>;

type Row = typeof workingContract.$inferSelect;
type Facts = Partial<typeof workingContract.$inferInsert>;

/**
 * Adds the event to the timeline and applies `facts`, which can depend on the previous row. Returns the new row, or
 * null if the emitter is no escrow of ours: anyone can emit look-alike events, but only the factory's events create
 * rows.
 */
async function recordEvent<Name extends EscrowEventName>(
  { context, event }: { context: Context; event: Event<`Escrow:${Name}`> },
  name: Name,
  facts: Facts | ((row: Row) => Facts) = {},
): Promise<Row | null> {
  const { block, log, transaction } = event;
  const row = await context.db.find(workingContract, { id: log.address });
  if (row === null) return null;

  await context.db.insert(escrowEvent).values({
    id: event.id,
    contractId: log.address,
    name,
    args: toJson(event.args ?? {}) as Record<string, unknown>,
    timestamp: block.timestamp,
    blockNumber: block.number,
    blockHash: block.hash,
    transactionHash: transaction.hash,
    logIndex: log.logIndex,
  });

  return context.db.update(workingContract, { id: log.address }).set({
    ...(typeof facts === "function" ? facts(row) : facts),
    updatedBlock: block.number,
    updatedBlockHash: block.hash,
  });
}

/** Converts integers to decimal strings and hex to lower case, at any depth. */
function toJson(value: unknown): unknown {
  if (typeof value === "bigint" || typeof value === "number") return value.toString();
  if (typeof value === "string") return value.toLowerCase();
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, toJson(entry)]));
  }
  return value;
}
