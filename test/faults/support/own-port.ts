import { freePort } from "../../../tools/local/ports.js";

const given = new Set<number>();

/**
 * A free port that is reserved even while nothing listens on it: never returned twice, nor to a test file that runs in
 * parallel.
 */
export async function ownPort(): Promise<number> {
  const half = Number(process.env.VITEST_POOL_ID ?? 0) % 2;
  for (;;) {
    const port = await freePort();
    if (port % 2 !== half || given.has(port)) continue;
    given.add(port);
    return port;
  }
}
