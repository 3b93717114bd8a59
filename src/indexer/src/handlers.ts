/** How each event of the chain changes the index. Handlers look rows up by primary key and keep no module state. */
import { type Context, type Event, type EventNames, ponder } from "ponder:registry";
import { deferredPayout, draw, escrowEvent, parameterSet, stake, vote, workingContract } from "ponder:schema";
import { priceBand } from "@working-contracts/protocol/amounts";
import { unpackTerms } from "@working-contracts/protocol/terms";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { decodeAbiParameters } from "viem";

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

onEscrow("WorkingContractCreated", ({ block }) => ({ phase: "created", createdAt: block.timestamp }));
onEscrow("WorkingContractMatched", ({ block, args: { counterparty } }, { workerInitiated }) => ({
  phase: "matched",
  matchedAt: block.timestamp,
  ...(workerInitiated ? { client: counterparty } : { worker: counterparty }),
}));
onEscrow("WorkingContractDeclined", ({ block }) => ({ phase: "declined", endedAt: block.timestamp }));
onEscrow("WorkingContractCancelled", ({ block }) => ({ phase: "cancelled", endedAt: block.timestamp }));
onEscrow("WorkingContractWithdrawn", ({ block }) => ({ phase: "withdrawn", endedAt: block.timestamp }));
onEscrow("WorkingContractDelivered", ({ block, args: { deliveryHash, checkpointsRoot, outcomes } }) => ({
  phase: "delivered",
  deliveredAt: block.timestamp,
  deliveryHash,
  checkpointsRoot,
  outcomes,
}));
onEscrow("WorkingContractApproved", ({ block, args: { outcomes } }) => ({
  phase: "approved",
  endedAt: block.timestamp,
  outcomes,
}));
onEscrow("WorkingContractDisputed", ({ block, args: { bond } }) => ({
  phase: "disputed",
  disputedAt: block.timestamp,
  disputeBond: bond,
}));
onEscrow("WorkingContractTallied", ({ block, args: { outcomes } }) => ({
  phase: "tallied",
  endedAt: block.timestamp,
  outcomes,
}));
onEscrow("WorkingContractSettled", ({ block, args: { treasury, payout } }) => ({
  settled: true,
  settledAt: block.timestamp,
  treasury: treasury === ZERO_ADDRESS ? null : treasury,
  clientPayout: payout.client,
  workerPayout: payout.worker,
}));
onEscrow("DirectTransferCredited");
onEscrow("DirectTransferRefunded");

ponder.on("Escrow:BackupAgentsDrawn", async ({ event, context }) => {
  const { address, data } = event.log;
  if ((await context.db.find(workingContract, { id: address })) === null) return;
  // Once a stranger has emitted a truncated one, every ABI that shares Ponder's parsed parameters reads one address.
  const [backupAgents] = decodeAbiParameters([{ type: "address[]" }], data);
  const args = { context, event: { ...event, args: { backupAgents } } };
  await recordEvent(args, "BackupAgentsDrawn", () => ({ drawn: true }));
  for (const backupAgent of backupAgents) {
    await context.db.insert(draw).values({ contractId: address, backupAgent });
  }
});

onEscrow(
  "VoteSealed",
  (_, { sealedVotes }) => ({ sealedVotes: sealedVotes + 1 }),
  async (db, { args: { backupAgent, bond, commitment }, log, block }, row) => {
    await db.insert(vote).values({
      contractId: log.address,
      backupAgent,
      commitment,
      bond,
      position: row.sealedVotes - 1,
      sealedAt: block.timestamp,
      claimed: false,
      rewardDeferred: false,
    });
  },
);

onEscrow(
  "VoteOpened",
  (_, { openedVotes }) => ({ openedVotes: openedVotes + 1 }),
  (db, { args: { backupAgent, votes }, log }) =>
    db.update(vote, { contractId: log.address, backupAgent }).set({ votes }),
);

// If the reward of a claim was deferred, a second claim later pays only the reward: the two add up.
onEscrow("VoteClaimed", undefined, (db, { args: { backupAgent, reward }, log }) =>
  db.update(vote, { contractId: log.address, backupAgent }).set((row) => ({
    claimed: true,
    reward: (row.reward ?? 0) + Number(reward),
    rewardDeferred: false,
  })),
);

onEscrow("RewardDeferred", undefined, (db, { args: { backupAgent }, log }) =>
  db.update(vote, { contractId: log.address, backupAgent }).set({ rewardDeferred: true }),
);

onEscrow("PayoutDeferred", undefined, (db, { args: { amount, payee }, log }) =>
  db
    .insert(deferredPayout)
    .values({ contractId: log.address, payee, amount })
    .onConflictDoUpdate((row) => ({ amount: row.amount + amount })),
);

onEscrow("PayoutClaimed", undefined, (db, { args: { amount, payee }, log }) =>
  db
    .update(deferredPayout, { contractId: log.address, payee })
    .set((row) => ({ amount: row.amount - amount })),
);

ponder.on("BackupAgentRegistry:Staked", async ({ event, context }) => {
  const { agent, total: amount } = event.args;
  const change = { amount, since: event.block.timestamp, ...blockRef(event.block) };
  await context.db
    .insert(stake)
    .values({ agent, ...change })
    .onConflictDoUpdate(change);
});

ponder.on("BackupAgentRegistry:UnstakeRequested", async ({ event, context }) => {
  const { agent, releasableAt } = event.args;
  await context.db
    .update(stake, { agent })
    .set({ releasableAt: BigInt(releasableAt), ...blockRef(event.block) });
});

ponder.on("BackupAgentRegistry:Unstaked", async ({ event, context }) => {
  await context.db.delete(stake, { agent: event.args.agent });
});

const blockRef = ({ number, hash }: { number: bigint; hash: `0x${string}` }) => ({
  blockNumber: number,
  blockHash: hash,
});

/** Names of the escrow's events, e.g. `VoteSealed`. */
type EscrowEventName = Exclude<
  EventNames extends infer Name ? (Name extends `Escrow:${infer Event}` ? Event : never) : never,
  "setup"
>;

type Row = typeof workingContract.$inferSelect;
type EscrowEvent<Name extends EscrowEventName> = Event<`Escrow:${Name}`>;
/** The columns of its escrow's row that an event changes, which can depend on the previous row. */
type FactsOf<Name extends EscrowEventName> = (
  event: EscrowEvent<Name>,
  row: Row,
) => Partial<typeof workingContract.$inferInsert>;

/** Records each event of this name, and then changes other rows; see {@link recordEvent}. */
function onEscrow<Name extends EscrowEventName>(
  name: Name,
  factsOf?: FactsOf<Name>,
  changeOthers?: (db: Context["db"], event: EscrowEvent<Name>, row: Row) => Promise<unknown>,
): void {
  ponder.on(`Escrow:${name}`, async (args) => {
    const { context, event } = args as { context: Context; event: EscrowEvent<Name> };
    const row = await recordEvent({ context, event }, name, factsOf);
    if (row !== null) await changeOthers?.(context.db, event, row);
  });
}

/**
 * Adds the event to the timeline and applies its facts. Returns the new row, or null if the emitter is no escrow of ours:
 * anyone can emit look-alike events, but only the factory's events create rows.
 */
async function recordEvent<Name extends EscrowEventName>(
  { context, event }: { context: Context; event: EscrowEvent<Name> },
  name: Name,
  factsOf?: FactsOf<Name>,
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
    ...factsOf?.(event, row),
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
