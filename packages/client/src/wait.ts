/** Waits for a contract's status, for its payout, for anything else that can be read, or for a payment's outcome. */
import type { Status } from "@working-contracts/protocol/status";
import { ConnectionError, isOutage, OutcomeUnknown } from "./errors.js";
import { eitherOf, pause, textOf } from "./http.js";
import type { Contract, Settlement } from "./types.js";

/** By default the value is read every second (`intervalMs`), without an end. */
export interface WaitOptions<T> {
  /** Throws after this time; by default there is no limit. */
  timeoutMs?: number;
  intervalMs?: number;
  signal?: AbortSignal | undefined;
  /** Called with the first value and after each change of its status. */
  onChange?: (value: T) => void;
}

type OnePattern = Status | `${string}*`;

/** A status, a prefix such as `settled-*`, or a list of them. */
export type StatusPattern = OnePattern | readonly OnePattern[];

/** Reads until `isDone`, through outages. Throws if time runs out, or what `read` throws for another reason. */
export async function waitUntil<T>(
  read: (signal: AbortSignal) => Promise<T>,
  isDone: (value: T) => boolean,
  {
    timeoutMs = Infinity,
    intervalMs = 1000,
    signal,
    onChange,
    stateOf = textOf,
  }: WaitOptions<T> & { stateOf?: (value: T) => string } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let last: string | undefined;
  const late = () =>
    last === undefined
      ? new ConnectionError("There was no response in time")
      : new Error(`Timed out: ${last}`);
  for (;;) {
    let failure: Error | undefined;
    try {
      // Without any time, it reads once.
      const ms = timeoutMs > 0 ? deadline - performance.now() : Infinity;
      const value = await bounded(read, { ms, signal, late });
      const state = stateOf(value);
      if (state !== last) onChange?.(value);
      last = state;
      if (isDone(value)) return value;
    } catch (error) {
      if (!isOutage(error)) throw error;
      failure = error;
    }
    if (performance.now() + intervalMs > deadline) throw failure ?? late();
    await pause(intervalMs, signal);
  }
}

/** Rejects when time runs out or the caller aborts, even if the read ignores its signal. */
async function bounded<T>(
  read: (signal: AbortSignal) => Promise<T>,
  { ms, signal, late }: { ms: number; signal: AbortSignal | undefined; late: () => Error },
): Promise<T> {
  const done = new AbortController();
  const end = pause(ms, eitherOf(done.signal, signal)).then(() => {
    throw late();
  });
  // `read` can throw before anything waits for this one.
  end.catch(() => {});
  try {
    return await Promise.race([read(done.signal), end]);
  } finally {
    done.abort();
  }
}

/** Statuses that begin by the clock, with the deadline that decides. */
const BEGIN_AT = {
  "cancelled-unmatched": "matchDeadline",
  "cancelled-absent": "deliveryDeadline",
  resolved: "reviewDeadline",
} as const;
/** How far a service's index may be behind its clock. */
const INDEX_LAG_MS = 60_000;

/**
 * Waits until the status matches. Throws if the contract closes with another status or time runs out. Within a minute of
 * its deadline, by the local clock, a contract does not count as closed or resolved: what was done in its last second can
 * be missing.
 */
export function waitForStatus(
  get: (signal: AbortSignal) => Promise<Contract>,
  pattern: StatusPattern,
  options: WaitOptions<Contract> = {},
): Promise<Contract> {
  const wanted = [pattern].flat();
  const stateOf = ({ id, status }: Contract) => `${id} is ${status}, not ${wanted.join(" or ")}`;
  const isDone = (contract: Contract): boolean => {
    const deadline = BEGIN_AT[contract.status as keyof typeof BEGIN_AT];
    if (Math.abs(Date.now() - Date.parse(contract[deadline] ?? "")) < INDEX_LAG_MS) return false;
    if (matches(contract.status, wanted)) return true;
    if (!matches(contract.status, ["settled-*", "cancelled-*"])) return false;
    throw new Error(`${stateOf(contract)}, and can no longer change`);
  };
  return waitUntil(get, isDone, { ...options, stateOf });
}

/** Whether the status is one of the patterns. A pattern that ends with `*` matches every status with that prefix. */
export function matches(status: string, patterns: readonly string[]): boolean {
  return patterns.some((one) => (one.endsWith("*") ? status.startsWith(one.slice(0, -1)) : status === one));
}

/** Waits until the contract has ended and each of its payments is confirmed. */
export function waitForPayout(
  get: (signal: AbortSignal) => Promise<Settlement>,
  options: WaitOptions<Settlement> = {},
): Promise<Settlement> {
  const openLegs = ({ legs }: Settlement): number => legs.filter(({ state }) => state !== "confirmed").length;
  const stateOf = (settlement: Settlement): string =>
    settlement.ending === null
      ? `not ended (${settlement.status})`
      : `not paid out, ${openLegs(settlement)} payments not confirmed`;
  const isDone = (settlement: Settlement): boolean =>
    settlement.ending !== null && settlement.settledAt !== null && openLegs(settlement) === 0;
  return waitUntil(get, isDone, { ...options, stateOf });
}

/** Longer than the validity of a signed payment. */
const UNKNOWN_FOR_MS = 15 * 60_000;
const LONGEST_PAUSE_MS = 30_000;

/** Performs an action, and resumes it with its payment until that has expired: to start again could be to pay twice. */
export async function untilOutcome<T>(
  action: () => Promise<T>,
  { onUnknown }: { onUnknown?: (reason: string) => void } = {},
): Promise<T> {
  const deadline = performance.now() + UNKNOWN_FOR_MS;
  let attempt = action;
  for (let pauseMs = 1000; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof OutcomeUnknown) || performance.now() > deadline) throw error;
      const { signal } = error;
      if (signal?.aborted) throw error;
      onUnknown?.((error.cause as Error).message);
      attempt = (error as OutcomeUnknown<T>).resume;
      await pause(pauseMs, signal).catch(() => {
        throw error;
      });
    }
  }
}
