import type { DeadlineName, EventType, TimeoutType } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import { unpackOutcomes } from "@working-contracts/protocol/outcomes";
import {
  effectiveOutcomes,
  isVotingClosed,
  openingEndsAt,
  seatsOpenAt,
  votingClosesAt,
} from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Phase } from "@working-contracts/protocol/types";
import { and, asc, eq, isNull, notExists, sql } from "drizzle-orm";
import type { Transaction } from "../db/client.js";
import { draw, statusFacts, vote, workingContract } from "../db/onchain.js";
import { entrustedVote, eventDeadline } from "../db/schema.js";
import { insertRows, isOneOf } from "../db/statements.js";
import { agentsOf, type EventDraft } from "./log.js";

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
  { name: "seats", phase: "disputed", at: (escrow) => BigInt(seatsOpenAt(escrow)) },
  { name: "voting", phase: "disputed", at: (escrow) => BigInt(votingClosesAt(escrow)) },
  {
    name: "opening",
    phase: "disputed",
    at: (escrow) => BigInt(openingEndsAt(escrow)),
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
  await tx.delete(eventDeadline).where(isOneOf(eventDeadline.contractId, ids));
  const escrows = await tx
    .select()
    .from(workingContract)
    .where(and(isOneOf(workingContract.id, ids), eq(workingContract.settled, false)));
  const deadlines = escrows.flatMap((escrow) =>
    RULES.filter(({ phase }) => phase === escrow.phase).map((rule): Deadline => {
      const deadline = Number(rule.at(escrow));
      const noticeAt = rule.from?.(escrow) ?? deadline - LIMITS.deadlineNotice;
      const dueAt = rule.timeout === undefined ? noticeAt : deadline;
      return { contractId: escrow.id, name: rule.name, deadline, dueAt };
    }),
  );
  await insertRows(tx, eventDeadline, deadlines);
}

/** Deletes deadlines due at `now` (seconds), oldest first, and returns events for those that still apply. */
export async function takeDueDeadlines(
  tx: Transaction,
  { now, limit }: { now: number; limit: number },
): Promise<{ taken: number; drafts: EventDraft[] }> {
  const isDue = sql`(${eventDeadline.contractId}, ${eventDeadline.name}) in (
    select contract_id, name from app.event_deadline where due_at <= ${now}
    order by due_at, contract_id, name limit ${limit})`;
  const due = await tx.delete(eventDeadline).where(isDue).returning();
  if (due.length === 0) return { taken: 0, drafts: [] };

  const keyOf = ({ contractId, name }: Deadline) => `${contractId} ${name}`;
  due.sort((a, b) => a.dueAt - b.dueAt || (keyOf(a) < keyOf(b) ? -1 : 1));
  const ids = [...new Set(due.map(({ contractId }) => contractId as `0x${string}`))];
  const rows = await tx.select().from(workingContract).where(isOneOf(workingContract.id, ids));
  const escrows = new Map(rows.map((escrow) => [escrow.id as string, escrow]));
  const drafts: EventDraft[] = [];
  for (const deadline of due) {
    const escrow = escrows.get(deadline.contractId);
    if (escrow === undefined) continue;
    const draft = toDraft(deadline, escrow, now);
    if (draft === null) continue;
    const findAgents = AUDIENCES[deadline.name];
    const agents = findAgents === undefined ? draft.agents : await findAgents(tx, escrow.id);
    if (agents.length > 0) drafts.push({ ...draft, agents });
  }
  return { taken: due.length, drafts };
}

/** Drawn agents who have not voted: from then on others can take their seats. */
async function drawnWithoutVote(tx: Transaction, contractId: Address): Promise<Address[]> {
  const cast = tx
    .select({ backupAgent: vote.backupAgent })
    .from(vote)
    .where(and(eq(vote.contractId, contractId), eq(vote.backupAgent, draw.backupAgent)));
  const drawn = await tx
    .select({ backupAgent: draw.backupAgent })
    .from(draw)
    .where(and(eq(draw.contractId, contractId), notExists(cast)))
    .orderBy(asc(draw.backupAgent));
  return agentsOf(...drawn.map(({ backupAgent }) => backupAgent));
}

/** Voters who sealed their votes themselves, so that only they can open them. */
async function votersToOpen(tx: Transaction, contractId: Address): Promise<Address[]> {
  const entrusted = tx
    .select({ commitment: entrustedVote.commitment })
    .from(entrustedVote)
    .where(and(eq(entrustedVote.contractId, contractId), eq(entrustedVote.commitment, vote.commitment)));
  const voters = await tx
    .select({ backupAgent: vote.backupAgent })
    .from(vote)
    .where(and(eq(vote.contractId, contractId), isNull(vote.votes), notExists(entrusted)))
    .orderBy(asc(vote.position));
  return agentsOf(...voters.map(({ backupAgent }) => backupAgent));
}

/** Finds the agents that a deadline concerns, if it does not concern the parties. */
const AUDIENCES: Partial<Record<DeadlineName, typeof votersToOpen>> = {
  seats: drawnWithoutVote,
  opening: votersToOpen,
};

function toDraft(due: Deadline, escrow: Escrow, now: number): EventDraft | null {
  const rule = RULES.find(({ name }) => name === due.name);
  if (rule === undefined || rule.phase !== escrow.phase || Number(rule.at(escrow)) !== due.deadline)
    return null;
  if (rule.timeout !== undefined) return timeoutOf(escrow);
  // A deadline that has passed is not approaching.
  if (now >= due.deadline) return null;
  return {
    type: "deadline.approaching",
    contractId: escrow.id,
    agents: agentsOf(escrow.client, escrow.worker, escrow.namedCounterparty),
    data: { deadline: `${due.name}Deadline`, at: isoTime(due.deadline) },
    occurredAt: new Date(now * 1000),
    source: sourceOf(escrow, rule),
  };
}

/** The time-out that ends a contract in its current phase; null if that phase has none. */
export function timeoutOf(escrow: Escrow): EventDraft | null {
  const rule = RULES.find(({ phase, timeout }) => timeout !== undefined && phase === escrow.phase);
  if (rule?.timeout === undefined) return null;
  const deadline = Number(rule.at(escrow));
  const outcomes = unpackOutcomes(effectiveOutcomes(statusFacts(escrow), deadline), escrow.criteriaCount);
  return {
    type: rule.timeout,
    contractId: escrow.id,
    agents: agentsOf(escrow.client, escrow.worker, escrow.namedCounterparty),
    data: rule.timeout === "contract.review-timeout" ? { criteriaMet: outcomes } : {},
    occurredAt: new Date(deadline * 1000),
    source: sourceOf(escrow, rule),
  };
}

const sourceOf = (escrow: Escrow, { name, at }: Rule): string =>
  `deadline:${escrow.id}:${name}:${at(escrow)}`;
