/** Keeps this process's clock at the chain's time, which tests move. The service learns the time from a block. */
import { until } from "../../tools/local/processes.js";

const wallClock = Date.now;

/** Runs `run` by the wall clock, whatever the chain's time is: the service signs webhooks by the wall clock. */
export function byWallClock<T>(run: () => T): T {
  const chainClock = Date.now;
  Date.now = wallClock;
  try {
    return run();
  } finally {
    Date.now = chainClock;
  }
}

/** Moves this process's clock forward before the chain's: what waits meanwhile must not see a node that is ahead. */
export function advanceClock(seconds: number): void {
  const ahead = Date.now() - wallClock() + seconds * 1000;
  Date.now = () => wallClock() + ahead;
}

/** Sets this process's clock ahead by as much as the chain's. */
export async function followChainTime(chainNow: () => Promise<number>): Promise<void> {
  const ahead = (await chainNow()) * 1000 - wallClock();
  Date.now = ahead > 2000 ? () => wallClock() + ahead : wallClock;
}

/** `NODE_OPTIONS` that set a child process's clock ahead by as much as this one's. */
export function clockOptions(): string {
  const ahead = Date.now() - wallClock();
  if (ahead < 1000) return "";
  return `--import=data:text/javascript,${encodeURIComponent(`const now=Date.now;Date.now=()=>now()+${ahead}`)}`;
}

/** Sets this process's clock back to the machine's. */
export function leaveChainTime(): void {
  Date.now = wallClock;
}

/** Resolves once the service has seen a block of that time, in seconds. Resolves at once if no service runs. */
export async function serviceReaches(url: string, time: number): Promise<void> {
  const hasReached = async (): Promise<boolean> => {
    const response = await fetch(`${url}/v1/network`).catch(() => null);
    if (response === null) return true;
    const { data } = (await response.json()) as { data: { time: string } };
    return Date.parse(data.time) / 1000 >= time;
  };
  await until("the service knows the new time", hasReached, { timeoutMs: 60_000 });
}
