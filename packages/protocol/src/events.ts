/** Types and deadline names of the event log (docs/decisions.md, "Events"). */
import type { ContractEventName } from "viem";
import type { escrowAbi } from "./abi.js";

/** Events that the indexer follows. `ActionSigned` says who allowed an action, which has its own event. */
export type EscrowEventName = Exclude<ContractEventName<typeof escrowAbi>, "ActionSigned">;

/** Caused by a transaction of a party, of a Backup Agent, or of anyone once the action is due. */
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
  "direct-transfer.credited",
  "direct-transfer.refunded",
] as const;

/** Caused by time alone: the status changes at the deadline, regardless of who moves the money later. */
export const TIMEOUT_TYPES = ["contract.unmatched", "contract.absent", "contract.review-timeout"] as const;
/** If an action from before the deadline is indexed later, an `event.reverted` follows. */
export type TimeoutType = (typeof TIMEOUT_TYPES)[number];

/** Caused by a request to this service; nothing happens on chain. */
const SERVICE_TYPES = [
  "checkpoint.accepted",
  "complaint.filed",
  "complaint.resolved",
  "key.released",
] as const;
/** Its events have no block: their `chain` is null. */
export type ServiceEventType = (typeof SERVICE_TYPES)[number];

/** `deadline.approaching` announces a deadline. `event.reverted` names an event that no longer holds. */
export const EVENT_TYPES = [
  ...CHAIN_TYPES,
  ...TIMEOUT_TYPES,
  ...SERVICE_TYPES,
  "deadline.approaching",
  "event.reverted",
] as const;
/** Later versions of `/v1` can add types (docs/rules.md 63), so readers skip those that they do not know. */
export type EventType = (typeof EVENT_TYPES)[number];

/** Deadlines that are announced, or alone change the status; with the contract's id the key in `app.event_deadline`. */
export type DeadlineName =
  | ("match" | "withdrawal" | "delivery" | "review" | "seats" | "voting" | "opening")
  | ("unmatched" | "absent" | "review-timeout");

/** Expands a comma-separated filter of types and prefixes (`contract.*`). Returns null if an entry matches no type. */
export function parseEventTypes(text: string): EventType[] | null {
  const words = new Set(text.split(",").map((word) => word.trim()));
  const named = [...words].map(typesOf);
  return named.some((types) => types.length === 0) ? null : [...new Set(named.flat())];
}

function typesOf(word: string): EventType[] {
  if (!word.endsWith(".*")) return EVENT_TYPES.filter((type) => type === word);
  return EVENT_TYPES.filter((type) => type.startsWith(word.slice(0, -1)));
}
