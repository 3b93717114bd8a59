/** Waiting for a contract to get somewhere. */
import { pause } from "./http.js";
import type { Contract } from "./types.js";

export interface WaitOptions {
  /** Gives up after so long; by default it waits for ever. */
  timeoutMs?: number;
  intervalMs?: number;
  signal?: AbortSignal;
  /** Called with the contract at first, and whenever its status has changed. */
  onStatus?: (contract: Contract) => void;
}

/** A status, a prefix such as `settled-*`, or a list of them. */
export type StatusPattern = string | readonly string[];

export function matches(status: string, pattern: StatusPattern): boolean {
  return [pattern]
    .flat()
    .some((one) => (one.endsWith("*") ? status.startsWith(one.slice(0, -1)) : status === one));
}

/** Polls until the status matches. Throws where the contract is closed in another one, or time is up. */
export async function waitForStatus(
  get: () => Promise<Contract>,
  pattern: StatusPattern,
  { timeoutMs = Number.POSITIVE_INFINITY, intervalMs = 1000, signal, onStatus }: WaitOptions = {},
): Promise<Contract> {
  const giveUpAt = performance.now() + timeoutMs;
  let last: string | undefined;
  for (;;) {
    const contract = await get();
    if (contract.status !== last) onStatus?.(contract);
    last = contract.status;
    if (matches(contract.status, pattern)) return contract;
    if (matches(contract.status, ["settled-*", "cancelled-*"])) {
      throw new Error(
        `${contract.id} ended as ${contract.status} and never was ${[pattern].flat().join(" or ")}`,
      );
    }
    if (performance.now() + intervalMs > giveUpAt) {
      throw new Error(`${contract.id} is still ${contract.status}, not ${[pattern].flat().join(" or ")}`);
    }
    await pause(intervalMs, signal);
  }
}
