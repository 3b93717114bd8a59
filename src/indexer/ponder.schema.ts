/** The chain's facts as the indexer projects them (Postgres schema `onchain`). Can be dropped and rebuilt. */
import { index, onchainTable, primaryKey } from "ponder";
import * as columns from "./columns.js";

export const workingContract = onchainTable("working_contract", columns.workingContract, (table) => ({
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
}));

export const vote = onchainTable("vote", columns.vote, (table) => ({
  pk: primaryKey({ columns: [table.contractId, table.backupAgent] }),
  byTime: index().on(table.sealedAt, table.contractId, table.position),
  byAgent: index().on(table.backupAgent, table.sealedAt, table.contractId, table.position),
  byClaim: index().on(table.claimed, table.contractId, table.backupAgent),
  byReward: index().on(table.rewardDeferred, table.contractId, table.backupAgent),
}));

export const draw = onchainTable("draw", columns.draw, (table) => ({
  pk: primaryKey({ columns: [table.contractId, table.backupAgent] }),
  byAgent: index().on(table.backupAgent),
}));

export const deferredPayout = onchainTable("deferred_payout", columns.deferredPayout, (table) => ({
  pk: primaryKey({ columns: [table.contractId, table.payee] }),
  byAmount: index().on(table.amount, table.contractId, table.payee),
}));

export const stake = onchainTable("stake", columns.stake, (table) => ({
  byRelease: index().on(table.releasableAt),
}));

export const escrowEvent = onchainTable("escrow_event", columns.escrowEvent, (table) => ({
  byContract: index().on(table.contractId, table.id),
  byBlock: index().on(table.blockNumber),
}));

export const parameterSet = onchainTable("parameter_set", columns.parameterSet);
