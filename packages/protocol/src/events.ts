/** The words of the event log (docs/decisions.md, "Events"). */

/** By a transaction of a party, a Backup Agent, or anybody where it is due. */
const CHAIN_TYPES = [
  "contract.created",
  "contract.accepted",
  "contract.declined",
  "contract.cancelled",
  "contract.withdrawn",
  "contract.delivered",
  "contract.approved",
  "contract.disputed",
  "contract.drawn",
  "contract.tallied",
  "contract.settled",
  "vote.sealed",
  "vote.opened",
  "payout.paid",
  "payout.deferred",
  "reward.deferred",
  "surplus.credited",
  "surplus.returned",
] as const;

/** By time alone: the status changes at the deadline itself, whoever moves the money later. */
export const TIMEOUT_TYPES = ["contract.unmatched", "contract.absent", "contract.review-timeout"] as const;
export type TimeoutType = (typeof TIMEOUT_TYPES)[number];

/** By a call to this service that the chain knows nothing of. */
const SERVICE_TYPES = [
  "checkpoint.accepted",
  "complaint.filed",
  "complaint.resolved",
  "key.released",
] as const;
export type ServiceEventType = (typeof SERVICE_TYPES)[number];

export const EVENT_TYPES = [
  ...CHAIN_TYPES,
  ...TIMEOUT_TYPES,
  ...SERVICE_TYPES,
  "deadline.approaching",
  "event.reverted",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Moments that are announced, and those at which time alone ends something. */
export const DEADLINE_NAMES = [
  "match",
  "withdrawal",
  "delivery",
  "review",
  "voting",
  "unmatched",
  "absent",
  "review-timeout",
] as const;
export type DeadlineName = (typeof DEADLINE_NAMES)[number];

/**
 * Types that a filter names: types and prefixes (`contract.*`), joined by commas. Null where a word names none.
 */
export function parseEventTypes(text: string): EventType[] | null {
  const named = text.split(",").map((word) => typesOf(word.trim()));
  return named.some((types) => types.length === 0) ? null : [...new Set(named.flat())];
}

function typesOf(word: string): EventType[] {
  if (!word.endsWith(".*")) return EVENT_TYPES.filter((type) => type === word);
  return EVENT_TYPES.filter((type) => type.startsWith(word.slice(0, -1)));
}
