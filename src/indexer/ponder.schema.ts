/** The chain's facts as the indexer projects them (Postgres schema `onchain`). Can be dropped and rebuilt. */
import { index, onchainTable, primaryKey } from "ponder";

/** One escrow: its terms and its history. Times in seconds, amounts in base units. */
export const workingContract = onchainTable(
  "working_contract",
  (t) => ({
    /** Escrow address. */
    id: t.hex().primaryKey(),
    initiator: t.hex().notNull(),
    /** Worker or reserved Buyer named in the terms; null if anyone may accept. */
    namedCounterparty: t.hex(),
    workerInitiated: t.boolean().notNull(),
    computedCriteria: t.boolean().notNull(),
    price: t.bigint().notNull(),
    /** See `priceBand`: lists walk the bands that a range of prices touches. */
    priceBand: t.integer().notNull(),
    criteriaCount: t.integer().notNull(),
    matchDeadline: t.bigint().notNull(),
    withdrawalDeadline: t.bigint().notNull(),
    deliveryDeadline: t.bigint().notNull(),
    reviewDeadline: t.bigint().notNull(),
    termsHash: t.hex().notNull(),
    /** Parameter snapshot, in the Solidity struct's fields and units. */
    protocolFee: t.integer().notNull(),
    workerStakeRatio: t.integer().notNull(),
    disputeBondRatio: t.integer().notNull(),
    backupAgentBondRatio: t.integer().notNull(),
    earlyWithdrawalSlashRatio: t.integer().notNull(),
    absentNoneMetClientShare: t.integer().notNull(),
    baUnclearSlashRatio: t.integer().notNull(),
    tokenMintRewardFull: t.integer().notNull(),
    tokenMintRewardReduced: t.integer().notNull(),
    baEligibilityStake: t.bigint().notNull(),
    baVotingWindow: t.integer().notNull(),
    baRecruitCount: t.integer().notNull(),
    payoutHold: t.integer().notNull(),
    /**
     * `none` (deployed, unpaid), `created`, `matched`, `delivered`, `disputed`, `approved`, `tallied`, `declined`,
     * `cancelled` or `withdrawn`.
     */
    phase: t.text().notNull(),
    /** Client and Worker as the API shows them. */
    client: t.hex(),
    worker: t.hex(),
    /** Packed outcomes, two bits per criterion (1 met, 2 not met, 3 unclear); 0 while undecided. */
    outcomes: t.integer().notNull(),
    deposit: t.bigint(),
    createdAt: t.bigint(),
    matchedAt: t.bigint(),
    deliveredAt: t.bigint(),
    disputedAt: t.bigint(),
    /** When approved, tallied, declined, cancelled or withdrawn; null if only time has ended it. */
    endedAt: t.bigint(),
    deliveryHash: t.hex(),
    checkpointsRoot: t.hex(),
    disputeBond: t.bigint(),
    sealedVotes: t.integer().notNull(),
    openedVotes: t.integer().notNull(),
    drawn: t.boolean().notNull(),
    settled: t.boolean().notNull(),
    settledAt: t.bigint(),
    treasury: t.hex(),
    clientPayout: t.bigint(),
    workerPayout: t.bigint(),
    treasuryPayout: t.bigint(),
    /** Block of the newest event of this escrow. */
    updatedBlock: t.bigint().notNull(),
    updatedBlockHash: t.hex().notNull(),
  }),
  (table) => ({
    // With the price, which a list's filter then reads without the row.
    byCreation: index().on(table.createdAt, table.id, table.price),
    byClient: index().on(table.client, table.createdAt, table.id),
    byWorker: index().on(table.worker, table.createdAt, table.id),
    // One index per sort order of the contract list. The keeper also uses the deadline indexes, to find due work.
    byPhase: index().on(table.phase, table.settled, table.createdAt, table.id, table.price),
    byPriceBand: index().on(
      table.phase,
      table.settled,
      table.priceBand,
      table.createdAt,
      table.id,
      table.price,
    ),
    byPrice: index().on(table.phase, table.settled, table.price, table.id),
    byMatchDeadline: index().on(table.phase, table.settled, table.matchDeadline, table.id),
    byDeliveryDeadline: index().on(table.phase, table.settled, table.deliveryDeadline, table.id),
    byReviewDeadline: index().on(table.phase, table.settled, table.reviewDeadline, table.id),
    byEnd: index().on(table.phase, table.settled, table.endedAt, table.id),
  }),
);

/** One Backup Agent's ballot. */
export const vote = onchainTable(
  "vote",
  (t) => ({
    contractId: t.hex().notNull(),
    backupAgent: t.hex().notNull(),
    commitment: t.hex().notNull(),
    bond: t.bigint().notNull(),
    /** Order in which bonds settled, from 0. */
    position: t.integer().notNull(),
    sealedAt: t.bigint().notNull(),
    /** Packed votes once opened. */
    votes: t.integer(),
    openedAt: t.bigint(),
    claimed: t.boolean().notNull(),
    /** Base units paid out by the claim. */
    claimedAmount: t.bigint(),
    /** Whole tokens minted. */
    reward: t.integer(),
    rewardDeferred: t.boolean().notNull(),
  }),
  (table) => ({
    pk: primaryKey({ columns: [table.contractId, table.backupAgent] }),
    byTime: index().on(table.sealedAt, table.contractId, table.position),
    byAgent: index().on(table.backupAgent, table.sealedAt, table.contractId, table.position),
    byClaim: index().on(table.claimed, table.contractId, table.backupAgent),
    byReward: index().on(table.rewardDeferred, table.contractId, table.backupAgent),
  }),
);

/** A Backup Agent drawn for a dispute. */
export const draw = onchainTable(
  "draw",
  (t) => ({ contractId: t.hex().notNull(), backupAgent: t.hex().notNull(), drawnAt: t.bigint().notNull() }),
  (table) => ({
    pk: primaryKey({ columns: [table.contractId, table.backupAgent] }),
    byAgent: index().on(table.backupAgent),
  }),
);

/** Amount that a payee could not receive; zero once claimed. */
export const deferredPayout = onchainTable(
  "deferred_payout",
  (t) => ({ contractId: t.hex().notNull(), payee: t.hex().notNull(), amount: t.bigint().notNull() }),
  (table) => ({
    pk: primaryKey({ columns: [table.contractId, table.payee] }),
    byAmount: index().on(table.amount, table.contractId, table.payee),
  }),
);

export const delegation = onchainTable(
  "delegation",
  (t) => ({
    agent: t.hex().notNull(),
    operator: t.hex().notNull(),
    issuedAt: t.bigint().notNull(),
    revokedAt: t.bigint().notNull(),
  }),
  (table) => ({ pk: primaryKey({ columns: [table.agent, table.operator] }) }),
);

/** A Backup Agent's stake in the registry. */
export const stake = onchainTable(
  "stake",
  (t) => ({
    agent: t.hex().primaryKey(),
    amount: t.bigint().notNull(),
    since: t.bigint().notNull(),
    releasableAt: t.bigint(),
    /** Block of its latest change. */
    blockNumber: t.bigint().notNull(),
    blockHash: t.hex().notNull(),
  }),
  (table) => ({ bySince: index().on(table.since), byRelease: index().on(table.releasableAt) }),
);

/** Every event of every escrow, in order: timeline, settlement legs, audit. */
export const escrowEvent = onchainTable(
  "escrow_event",
  (t) => ({
    /** Ponder's event id: unique, ordered by chain position. */
    id: t.text().primaryKey(),
    contractId: t.hex().notNull(),
    name: t.text().notNull(),
    /** Event arguments; integers as decimal strings. */
    args: t.json().$type<Record<string, unknown>>().notNull(),
    timestamp: t.bigint().notNull(),
    blockNumber: t.bigint().notNull(),
    blockHash: t.hex().notNull(),
    transactionHash: t.hex().notNull(),
    logIndex: t.integer().notNull(),
  }),
  (table) => ({ byContract: index().on(table.contractId, table.id), byBlock: index().on(table.blockNumber) }),
);

/** Parameters of future contracts, one row per change; the newest row applies. */
export const parameterSet = onchainTable("parameter_set", (t) => ({
  id: t.text().primaryKey(),
  parameters: t.json().$type<Record<string, number>>().notNull(),
  changedAt: t.bigint().notNull(),
  blockNumber: t.bigint().notNull(),
}));
