/** Waits for a contract to reach a status. */
import { pause } from "./http.js";
import type { Contract } from "./types.js";

export interface WaitOptions {
  /** Throws after this time; by default there is no limit. */
  timeoutMs?: number;
  intervalMs?: number;
  signal?: AbortSignal;
  /** Called with the contract at the start and after each change of status. */
  onStatus?: (contract: Contract) => void;
}

/** A status, a prefix such as `settled-*`, or a list of them. */
export type StatusPattern = string | readonly string[];

export function matches(status: string, pattern: StatusPattern): boolean {
  return [pattern]
    .flat()
    .some((one) => (one.endsWith("*") ? status.startsWith(one.slice(0, -1)) : status === one));
}

/** Polls until the status matches. Throws if the contract closes with another status or time runs out. */
export async function waitForStatus(
  get: () => Promise<Contract>,
  pattern: StatusPattern,
  { timeoutMs = Number.POSITIVE_INFINITY, intervalMs = 1000, signal, onStatus }: WaitOptions = {},
): Promise<Contract> {
  const deadline = performance.now() + timeoutMs;
  let last: string | undefined;
  for (;;) {
    const contract = await get();
    if (contract.status !== last) onStatus?.(contract);
    last = contract.status;
    if (matches(contract.status, pattern)) return contract;
    if (matches(contract.status, ["settled-*", "cancelled-*"])) {
      throw new Error(
        `${contract.id} ended as ${contract.status} and can no longer become ${[pattern].flat().join(" or ")}`,
      );
    }
    if (performance.now() + intervalMs > deadline) {
      throw new Error(`${contract.id} is still ${contract.status}, not ${[pattern].flat().join(" or ")}`);
    }
    await pause(intervalMs, signal);
  }
}
