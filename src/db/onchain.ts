/**
 * Read-only access to the indexer's views (Postgres schema `onchain`).
 *
 * The tables repeat src/indexer/ponder.schema.ts, because importing that file loads Ponder, which takes about two
 * seconds per process. A test compares the two column by column.
 */
import { LIMITS } from "@working-contracts/protocol/limits";
import { type SQL, sql } from "drizzle-orm";
import { boolean, customType, integer, json, pgSchema, primaryKey, text } from "drizzle-orm/pg-core";

type Hex = `0x${string}`;

const onchain = pgSchema("onchain");
const hex = () => text().$type<Hex>();
/** Ponder's bigint column: a full uint256. */
const uint = customType<{ data: bigint; driverData: string }>({
  dataType: () => "numeric(78)",
  fromDriver: (value) => BigInt(value),
  toDriver: (value) => value.toString(),
});

export const workingContract = onchain.table("working_contract", {
  id: hex().primaryKey(),
  initiator: hex().notNull(),
  namedCounterparty: hex(),
  workerInitiated: boolean().notNull(),
  computedCriteria: boolean().notNull(),
  price: uint().notNull(),
  priceBand: integer().notNull(),
  criteriaCount: integer().notNull(),
  matchDeadline: uint().notNull(),
  withdrawalDeadline: uint().notNull(),
  deliveryDeadline: uint().notNull(),
  reviewDeadline: uint().notNull(),
  termsHash: hex().notNull(),
  protocolFee: integer().notNull(),
  workerStakeRatio: integer().notNull(),
  disputeBondRatio: integer().notNull(),
  backupAgentBondRatio: integer().notNull(),
  earlyWithdrawalSlashRatio: integer().notNull(),
  absentNoneMetClientShare: integer().notNull(),
  baUnclearSlashRatio: integer().notNull(),
  tokenMintRewardFull: integer().notNull(),
  tokenMintRewardReduced: integer().notNull(),
  baEligibilityStake: uint().notNull(),
  baVotingWindow: integer().notNull(),
  baRecruitCount: integer().notNull(),
  payoutHold: integer().notNull(),
  phase: text().notNull(),
  client: hex(),
  worker: hex(),
  outcomes: integer().notNull(),
  deposit: uint(),
  createdAt: uint(),
  matchedAt: uint(),
  deliveredAt: uint(),
  disputedAt: uint(),
  endedAt: uint(),
  deliveryHash: hex(),
  checkpointsRoot: hex(),
  disputeBond: uint(),
  sealedVotes: integer().notNull(),
  openedVotes: integer().notNull(),
  drawn: boolean().notNull(),
  settled: boolean().notNull(),
  settledAt: uint(),
  treasury: hex(),
  clientPayout: uint(),
  workerPayout: uint(),
  treasuryPayout: uint(),
  updatedBlock: uint().notNull(),
  updatedBlockHash: hex().notNull(),
});

export const vote = onchain.table(
  "vote",
  {
    contractId: hex().notNull(),
    backupAgent: hex().notNull(),
    commitment: hex().notNull(),
    bond: uint().notNull(),
    position: integer().notNull(),
    sealedAt: uint().notNull(),
    votes: integer(),
    openedAt: uint(),
    claimed: boolean().notNull(),
    claimedAmount: uint(),
    reward: integer(),
    rewardDeferred: boolean().notNull(),
  },
  (table) => [primaryKey({ columns: [table.contractId, table.backupAgent] })],
);

export const draw = onchain.table(
  "draw",
  { contractId: hex().notNull(), backupAgent: hex().notNull(), drawnAt: uint().notNull() },
  (table) => [primaryKey({ columns: [table.contractId, table.backupAgent] })],
);

export const deferredPayout = onchain.table(
  "deferred_payout",
  { contractId: hex().notNull(), payee: hex().notNull(), amount: uint().notNull() },
  (table) => [primaryKey({ columns: [table.contractId, table.payee] })],
);

export const delegation = onchain.table(
  "delegation",
  {
    agent: hex().notNull(),
    operator: hex().notNull(),
    issuedAt: uint().notNull(),
    revokedAt: uint().notNull(),
  },
  (table) => [primaryKey({ columns: [table.agent, table.operator] })],
);

export const stake = onchain.table("stake", {
  agent: hex().primaryKey(),
  amount: uint().notNull(),
  since: uint().notNull(),
  releasableAt: uint(),
  blockNumber: uint().notNull(),
  blockHash: hex().notNull(),
});

export const escrowEvent = onchain.table("escrow_event", {
  id: text().primaryKey(),
  contractId: hex().notNull(),
  name: text().notNull(),
  args: json().$type<Record<string, unknown>>().notNull(),
  timestamp: uint().notNull(),
  blockNumber: uint().notNull(),
  blockHash: hex().notNull(),
  transactionHash: hex().notNull(),
  logIndex: integer().notNull(),
});

export const parameterSet = onchain.table("parameter_set", {
  id: text().primaryKey(),
  parameters: json().$type<Record<string, number>>().notNull(),
  changedAt: uint().notNull(),
  blockNumber: uint().notNull(),
});

/** SQL: `votingClosesAt` of the contract `c`, and the end of the opening period after it. */
export const votingClosesAtSql = sql`(c.disputed_at + c.ba_voting_window)`;
export const openingEndsAtSql = sql`(c.disputed_at + c.ba_voting_window + ${LIMITS.voteOpeningWindow})`;

/** SQL: the time (seconds) until which `agent`'s votes lock its stake in the registry; null if it never voted. */
export function lockedUntil(agent: SQL): SQL {
  return sql`(
    select max(${openingEndsAtSql})
    from onchain.vote v join onchain.working_contract c on c.id = v.contract_id
    where v.backup_agent = ${agent})`;
}
