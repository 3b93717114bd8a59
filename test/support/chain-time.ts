/** A chain whose time tests move: this process's clock goes with it, and the service learns of it with a block. */
import { until } from "../../src/indexer/supervision/processes.js";

const wallClock = Date.now;

/** Runs it by the wall clock, which the service's webhooks are signed by, wherever the chain's time is. */
export function byWallClock<T>(run: () => T): T {
  const chainClock = Date.now;
  Date.now = wallClock;
  try {
    return run();
  } finally {
    Date.now = chainClock;
  }
}

/** Sets this process's clock ahead as far as the chain's is. */
export async function followChainTime(chainNow: () => Promise<number>): Promise<void> {
  const ahead = (await chainNow()) * 1000 - wallClock();
  Date.now = ahead > 2000 ? () => wallClock() + ahead : wallClock;
}

/** Sets this process's clock back to the machine's. */
export function leaveChainTime(): void {
  Date.now = wallClock;
}

/** Resolves once the service has seen a block of that time, in seconds; at once where there is no service. */
export async function serviceReaches(url: string, time: number): Promise<void> {
  const hasReached = async (): Promise<boolean> => {
    const response = await fetch(`${url}/v1/network`).catch(() => null);
    if (response === null) return true;
    const { data } = (await response.json()) as { data: { time: string } };
    return Date.parse(data.time) / 1000 >= time;
  };
  await until("the service knows the new time", hasReached, { timeoutMs: 60_000 });
}
