/**
 * Columns of the indexer's tables, for Ponder's schema and for the service's views of them. Only a type comes from Ponder:
 * loading it takes about two seconds per process.
 */
import type { onchainTable } from "ponder";

/** Builders of Ponder's columns. */
type Builders = Parameters<Extract<Parameters<typeof onchainTable>[1], (...args: never) => unknown>>[0];

/** One escrow: its terms and its history. Times in seconds, amounts in base units. */
export const workingContract = (t: Builders) => ({
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
  /** See `Phase`; `none` is deployed, and unpaid. */
  phase: t.text().notNull(),
  /** Client and Worker as the API shows them. */
  client: t.hex(),
  worker: t.hex(),
  /** Packed outcomes, two bits per criterion (1 met, 2 not met, 3 unclear); 0 while undecided. */
  outcomes: t.integer().notNull(),
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
  /** Block of the newest event of this escrow. */
  updatedBlock: t.bigint().notNull(),
  updatedBlockHash: t.hex().notNull(),
});

/** One Backup Agent's ballot. */
export const vote = (t: Builders) => ({
  contractId: t.hex().notNull(),
  backupAgent: t.hex().notNull(),
  commitment: t.hex().notNull(),
  bond: t.bigint().notNull(),
  /** Order in which bonds settled, from 0. */
  position: t.integer().notNull(),
  sealedAt: t.bigint().notNull(),
  /** Packed votes once opened. */
  votes: t.integer(),
  claimed: t.boolean().notNull(),
  /** Whole tokens minted. */
  reward: t.integer(),
  rewardDeferred: t.boolean().notNull(),
});

/** A Backup Agent drawn for a dispute. */
export const draw = (t: Builders) => ({
  contractId: t.hex().notNull(),
  backupAgent: t.hex().notNull(),
});

/** Amount that a payee could not receive; zero once claimed. */
export const deferredPayout = (t: Builders) => ({
  contractId: t.hex().notNull(),
  payee: t.hex().notNull(),
  amount: t.bigint().notNull(),
});

/** A Backup Agent's stake in the registry. */
export const stake = (t: Builders) => ({
  agent: t.hex().primaryKey(),
  amount: t.bigint().notNull(),
  since: t.bigint().notNull(),
  releasableAt: t.bigint(),
  /** Block of its latest change. */
  blockNumber: t.bigint().notNull(),
  blockHash: t.hex().notNull(),
});

/** Every event of every escrow, in order: timeline, settlement legs, audit. */
export const escrowEvent = (t: Builders) => ({
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
});

/** Parameters of future contracts, one row per change; the newest row applies. */
export const parameterSet = (t: Builders) => ({
  id: t.text().primaryKey(),
  parameters: t.json().$type<Record<string, number>>().notNull(),
  blockNumber: t.bigint().notNull(),
});
