/**
 * Causes of the events in the log. Events of the indexer: their type, the agents they concern, and the data that is
 * public. And events caused by time alone: deadline notices and time-outs. A contract's upcoming deadlines are stored
 * whenever its phase changes, so finding due ones is an index lookup.
 */
import { formatDecimal } from "@working-contracts/protocol/amounts";
import type { DeadlineName, EventType, TimeoutType } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import { unpackOutcomes } from "@working-contracts/protocol/outcomes";
import {
  effectiveOutcomes,
  isVotingClosed,
  STATUSES,
  votingClosesAt,
} from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import { type Address, type Hex, type Phase, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, inArray, isNull, lte, notExists, sql } from "drizzle-orm";
import type { Executor, Transaction } from "../db/client.js";
import { escrowEvent, statusFacts, vote, workingContract } from "../db/onchain.js";
import { eventDeadline, sealedVote, terms } from "../db/schema.js";
import { agentsOf, type EventDraft } from "./log.js";

type ChainRow = Awaited<ReturnType<typeof readChainEvents>>[number];

type Known = ChainRow & { escrow: NonNullable<ChainRow["escrow"]>; terms: NonNullable<ChainRow["terms"]> };

/** The indexer's next events after the given id, in chain order. */
export function readChainEvents(db: Executor, { after, limit }: { after: string; limit: number }) {
  return db
    .select({
      event: escrowEvent,
      escrow: workingContract,
      terms: { title: terms.title, awardMethod: terms.awardMethod },
    })
    .from(escrowEvent)
    .leftJoin(workingContract, eq(workingContract.id, escrowEvent.contractId))
    .leftJoin(terms, eq(terms.id, escrowEvent.contractId))
    .where(gt(escrowEvent.id, after))
    .orderBy(asc(escrowEvent.id))
    .limit(limit);
}

/** The log events of a batch, in order. Skips escrows whose terms this service does not hold. */
export async function draftsOf(db: Executor, rows: readonly ChainRow[]): Promise<EventDraft[]> {
  const known = rows.filter((row): row is Known => row.escrow !== null && row.terms !== null);
  const refused = await refusedPayouts(db, known);
  return known.flatMap((row) => toDrafts(row, refused));
}

function toDrafts(row: Known, refused: ReadonlySet<string>): EventDraft[] {
  const { event, escrow } = row;
  const mapped = eventMappers[event.name]?.(row);
  if (mapped === undefined) return [];
  const place = {
    chainEventId: event.id,
    blockNumber: event.blockNumber,
    blockHash: event.blockHash,
    transactionHash: event.transactionHash,
    logIndex: event.logIndex,
  };
  const draft = ({ type, data, others = [] }: MappedEvent, part = ""): EventDraft => ({
    type,
    contractId: escrow.id,
    agents: agentsOf(escrow.client, escrow.worker, ...others),
    data,
    occurredAt: new Date(Number(event.timestamp) * 1000),
    source: `log:${event.blockHash}:${event.logIndex}${part}`,
    chain: place,
  });
  // If the token refused a payout, the same transaction has a PayoutDeferred event for that payee.
  if (event.name === "VoteClaimed") {
    const payee = String(event.args.backupAgent);
    if (!refused.has(refusalKey(event.transactionHash, escrow.id, payee))) return [draft(mapped)];
    const isRewarded = Number(event.args.reward) > 0;
    return isRewarded ? [draft({ ...mapped, data: { ...mapped.data, amount: formatDecimal(0n) } })] : [];
  }
  if (event.name !== "WorkingContractSettled") return [draft(mapped)];

  const payouts = payoutsOf(row).filter(
    ({ payee, amount }) => amount > 0n && !refused.has(refusalKey(event.transactionHash, escrow.id, payee)),
  );
  const timeout = timeoutOf(escrow);
  return [
    ...(timeout === null ? [] : [timeout]),
    draft(mapped),
    ...payouts.map(({ role, payee, amount }) =>
      draft({ type: "payout.paid", data: { payee, role, amount: formatDecimal(amount) } }, `:${role}`),
    ),
  ];
}

interface MappedEvent {
  type: EventType;
  data: Record<string, unknown>;
  /** Agents besides client and worker. */
  others?: string[];
}

const money = (amount: unknown): string => formatDecimal(BigInt(String(amount)));
const outcomesOf = ({ event, escrow }: Known) =>
  unpackOutcomes(Number(event.args.outcomes), escrow.criteriaCount);

const transferOf =
  (type: EventType, party: "payee" | "payer", facts = {}) =>
  ({ event: { args } }: Known): MappedEvent => ({
    type,
    data: { [party]: args[party], ...facts, amount: money(args.amount) },
    others: [String(args[party])],
  });

/** By name of the escrow's event. Vote events say who voted, never what. */
const eventMappers: Record<string, (row: Known) => MappedEvent> = {
  WorkingContractCreated: ({ escrow, terms }) => ({
    type: "contract.created",
    data: {
      initiator: escrow.workerInitiated ? "worker" : "client",
      title: terms.title,
      awardMethod: terms.awardMethod,
      budgetOrPrice: formatDecimal(escrow.price),
      matchDeadline: isoTime(Number(escrow.matchDeadline)),
      deliveryDeadline: isoTime(Number(escrow.deliveryDeadline)),
    },
    others: escrow.namedCounterparty === null ? [] : [escrow.namedCounterparty],
  }),
  WorkingContractMatched: ({ escrow, event }) => {
    const { counterparty } = event.args;
    return {
      type: "contract.accepted",
      data: escrow.workerInitiated
        ? { client: counterparty, worker: escrow.initiator }
        : { client: escrow.initiator, worker: counterparty },
      others: [String(counterparty)],
    };
  },
  WorkingContractDeclined: ({ escrow }) => ({
    type: "contract.declined",
    data: {},
    others: escrow.namedCounterparty === null ? [] : [escrow.namedCounterparty],
  }),
  WorkingContractCancelled: () => ({ type: "contract.cancelled", data: {} }),
  WorkingContractWithdrawn: () => ({ type: "contract.withdrawn", data: {} }),
  WorkingContractDelivered: (row) => ({
    type: "contract.delivered",
    data: { deliveryHash: row.event.args.deliveryHash, criteriaMet: outcomesOf(row) },
  }),
  WorkingContractApproved: (row) => ({ type: "contract.approved", data: { criteriaMet: outcomesOf(row) } }),
  WorkingContractDisputed: ({ event }) => ({
    type: "contract.disputed",
    data: { disputeBond: money(event.args.bond), votingClosesAt: isoTime(Number(event.args.votingClosesAt)) },
  }),
  BackupAgentsDrawn: ({ event }) => {
    const backupAgents = event.args.backupAgents as string[];
    return { type: "contract.drawn", data: { backupAgents }, others: backupAgents };
  },
  VoteSealed: ({ event }) => ({
    type: "vote.sealed",
    data: {
      backupAgent: event.args.backupAgent,
      commitment: event.args.commitment,
      bond: money(event.args.bond),
    },
    others: [String(event.args.backupAgent)],
  }),
  VoteOpened: ({ event }) => ({
    type: "vote.opened",
    data: { backupAgent: event.args.backupAgent },
    others: [String(event.args.backupAgent)],
  }),
  WorkingContractTallied: (row) => ({ type: "contract.tallied", data: { criteriaMet: outcomesOf(row) } }),
  WorkingContractSettled: (row) => {
    const payouts = payoutsOf(row);
    const { treasury } = row.event.args.payout as Record<string, string>;
    return {
      type: "contract.settled",
      data: {
        status: STATUSES[Number(row.event.args.status) - 1],
        payouts: {
          ...Object.fromEntries(payouts.map(({ role, amount }) => [role, formatDecimal(amount)])),
          treasury: money(treasury),
        },
      },
    };
  },
  VoteClaimed: ({ event }) => ({
    type: "payout.paid",
    data: {
      payee: event.args.backupAgent,
      role: "backup-agent",
      amount: money(event.args.amount),
      reward: Number(event.args.reward),
    },
    others: [String(event.args.backupAgent)],
  }),
  RewardDeferred: ({ event }) => ({
    type: "reward.deferred",
    data: { payee: event.args.backupAgent, reward: Number(event.args.reward) },
    others: [String(event.args.backupAgent)],
  }),
  PayoutDeferred: transferOf("payout.deferred", "payee"),
  PayoutClaimed: transferOf("payout.paid", "payee", { role: "deferred" }),
  DirectTransferCredited: transferOf("direct-transfer.credited", "payer"),
  DirectTransferRefunded: transferOf("direct-transfer.refunded", "payer"),
};

function payoutsOf({ event }: Known): { role: "client" | "worker"; payee: Address; amount: bigint }[] {
  const { client, worker } = event.args as Record<"client" | "worker", Address>;
  const payout = event.args.payout as Record<"client" | "worker", string>;
  const payees = [
    { role: "client" as const, payee: client, amount: BigInt(payout.client) },
    { role: "worker" as const, payee: worker, amount: BigInt(payout.worker) },
  ];
  return payees.filter(({ payee }) => payee !== ZERO_ADDRESS);
}

/** Events that report payouts, including payouts that the token refused. */
const PAYING: ReadonlySet<string> = new Set(["WorkingContractSettled", "VoteClaimed"]);

const refusalKey = (transaction: Hex, escrow: string, payee: string): string =>
  `${transaction}:${escrow}:${payee}`;

/** Payees that the token refused in the batch's settlements and claims. Reads a few events per contract at most. */
async function refusedPayouts(db: Executor, rows: readonly Known[]): Promise<Set<string>> {
  const paying = rows.filter(({ event }) => PAYING.has(event.name));
  if (paying.length === 0) return new Set();
  const ids = [...new Set(paying.map(({ escrow }) => escrow.id))];
  const deferred = await db
    .select({
      transaction: escrowEvent.transactionHash,
      escrow: escrowEvent.contractId,
      args: escrowEvent.args,
    })
    .from(escrowEvent)
    .where(and(inArray(escrowEvent.contractId, ids), eq(escrowEvent.name, "PayoutDeferred")));
  return new Set(
    deferred.map(({ transaction, escrow, args }) => refusalKey(transaction, escrow, String(args.payee))),
  );
}

type Escrow = typeof workingContract.$inferSelect;
type Deadline = typeof eventDeadline.$inferSelect;

interface Rule {
  name: DeadlineName;
  phase: Phase;
  at: (escrow: Escrow) => bigint;
  /** Event at the deadline. Without it, the deadline is only announced in advance. */
  timeout?: TimeoutType;
  /** When it is announced; by default an hour ahead. */
  from?: (escrow: Escrow) => number;
}

const RULES: readonly Rule[] = [
  { name: "match", phase: "created", at: (escrow) => escrow.matchDeadline },
  {
    name: "unmatched",
    phase: "created",
    at: (escrow) => escrow.matchDeadline,
    timeout: "contract.unmatched",
  },
  { name: "withdrawal", phase: "matched", at: (escrow) => escrow.withdrawalDeadline },
  { name: "delivery", phase: "matched", at: (escrow) => escrow.deliveryDeadline },
  { name: "absent", phase: "matched", at: (escrow) => escrow.deliveryDeadline, timeout: "contract.absent" },
  { name: "review", phase: "delivered", at: (escrow) => escrow.reviewDeadline },
  {
    name: "review-timeout",
    phase: "delivered",
    at: (escrow) => escrow.reviewDeadline,
    timeout: "contract.review-timeout",
  },
  { name: "voting", phase: "disputed", at: (escrow) => BigInt(votingClosesAt(escrow)) },
  {
    name: "opening",
    phase: "disputed",
    at: (escrow) => BigInt(votingClosesAt(escrow) + LIMITS.voteOpeningWindow),
    from: (escrow) => (isVotingClosed(escrow, 0) ? 0 : votingClosesAt(escrow)),
  },
];

/** Actions that are only possible before a contract times out. Their events disprove a time-out in the log. */
export const CONTRADICTS_TIMEOUT: ReadonlySet<EventType> = new Set<EventType>([
  "contract.accepted",
  "contract.declined",
  "contract.cancelled",
  "contract.withdrawn",
  "contract.delivered",
  "contract.approved",
  "contract.disputed",
]);
/** Events that can change a contract's phase, and so its deadlines. The last vote of a panel closes the voting. */
export const PHASE_TYPES: ReadonlySet<EventType> = new Set<EventType>([
  ...CONTRADICTS_TIMEOUT,
  "contract.created",
  "contract.tallied",
  "vote.sealed",
]);

/** Replaces the stored deadlines of these contracts with those of their current phase. */
export async function armDeadlines(tx: Transaction, contractIds: readonly `0x${string}`[]): Promise<void> {
  if (contractIds.length === 0) return;
  const ids = [...new Set(contractIds)];
  await tx.delete(eventDeadline).where(inArray(eventDeadline.contractId, ids));
  const escrows = await tx
    .select()
    .from(workingContract)
    .where(and(inArray(workingContract.id, ids), eq(workingContract.settled, false)));
  const deadlines = escrows.flatMap((escrow) =>
    RULES.filter(({ phase }) => phase === escrow.phase).map((rule): Deadline => {
      const deadline = Number(rule.at(escrow));
      const noticeAt = rule.from?.(escrow) ?? deadline - LIMITS.deadlineNotice;
      const dueAt = rule.timeout === undefined ? noticeAt : deadline;
      return { contractId: escrow.id, name: rule.name, deadline, dueAt };
    }),
  );
  if (deadlines.length > 0) await tx.insert(eventDeadline).values(deadlines);
}

/** Deletes deadlines due at `now` (seconds), oldest first, and returns events for those that still apply. */
export async function takeDueDeadlines(
  tx: Transaction,
  { now, limit }: { now: number; limit: number },
): Promise<{ taken: number; drafts: EventDraft[] }> {
  const due = await tx
    .select()
    .from(eventDeadline)
    .where(lte(eventDeadline.dueAt, now))
    .orderBy(asc(eventDeadline.dueAt), asc(eventDeadline.contractId), asc(eventDeadline.name))
    .limit(limit);
  if (due.length === 0) return { taken: 0, drafts: [] };

  const keys = due.map(({ contractId, name }) => sql`(${contractId}, ${name})`);
  await tx
    .delete(eventDeadline)
    .where(sql`(${eventDeadline.contractId}, ${eventDeadline.name}) in (${sql.join(keys, sql`, `)})`);
  const ids = [...new Set(due.map(({ contractId }) => contractId as `0x${string}`))];
  const rows = await tx.select().from(workingContract).where(inArray(workingContract.id, ids));
  const escrows = new Map(rows.map((escrow) => [escrow.id as string, escrow]));
  const drafts: EventDraft[] = [];
  for (const deadline of due) {
    const escrow = escrows.get(deadline.contractId);
    if (escrow === undefined) continue;
    const [draft] = toDraft(deadline, escrow, now);
    if (draft === undefined) continue;
    if (deadline.name !== "opening") drafts.push(draft);
    else {
      const agents = await votersToOpen(tx, escrow.id);
      if (agents.length > 0) drafts.push({ ...draft, agents });
    }
  }
  return { taken: due.length, drafts };
}

/** Voters who sealed their votes themselves, so that only they can open them. */
async function votersToOpen(tx: Transaction, contractId: Address): Promise<Address[]> {
  const entrusted = tx
    .select({ commitment: sealedVote.commitment })
    .from(sealedVote)
    .where(and(eq(sealedVote.contractId, contractId), eq(sealedVote.commitment, vote.commitment)));
  const voters = await tx
    .select({ backupAgent: vote.backupAgent })
    .from(vote)
    .where(and(eq(vote.contractId, contractId), isNull(vote.votes), notExists(entrusted)))
    .orderBy(asc(vote.position));
  return agentsOf(...voters.map(({ backupAgent }) => backupAgent));
}

function toDraft(due: Deadline, escrow: Escrow, now: number): EventDraft[] {
  const rule = RULES.find(({ name }) => name === due.name);
  if (rule === undefined || rule.phase !== escrow.phase || Number(rule.at(escrow)) !== due.deadline)
    return [];
  if (rule.timeout !== undefined) {
    const timeout = timeoutOf(escrow);
    return timeout === null ? [] : [timeout];
  }
  // A deadline that has passed is not approaching.
  if (now >= due.deadline) return [];
  return [
    {
      type: "deadline.approaching",
      contractId: escrow.id,
      agents: agentsOf(escrow.client, escrow.worker),
      data: { deadline: `${due.name}Deadline`, at: isoTime(due.deadline) },
      occurredAt: new Date(now * 1000),
      source: sourceOf(escrow, rule),
    },
  ];
}

/** The time-out that ends a contract in its current phase; null if that phase has none. */
function timeoutOf(escrow: Escrow): EventDraft | null {
  const rule = RULES.find(({ phase, timeout }) => timeout !== undefined && phase === escrow.phase);
  if (rule?.timeout === undefined) return null;
  const deadline = Number(rule.at(escrow));
  const outcomes = unpackOutcomes(effectiveOutcomes(statusFacts(escrow), deadline), escrow.criteriaCount);
  return {
    type: rule.timeout,
    contractId: escrow.id,
    agents: agentsOf(escrow.client, escrow.worker),
    data: rule.timeout === "contract.review-timeout" ? { criteriaMet: outcomes } : {},
    occurredAt: new Date(deadline * 1000),
    source: sourceOf(escrow, rule),
  };
}

const sourceOf = (escrow: Escrow, { name, at }: Rule): string =>
  `deadline:${escrow.id}:${name}:${at(escrow)}`;
