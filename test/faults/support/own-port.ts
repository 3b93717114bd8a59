import { randomInt } from "node:crypto";
import { freePort } from "../../../tools/local/ports.js";

/** Below every port that `freePort` chooses, and none of them is a port that `fetch` refuses to call. */
const [LOWEST, HIGHEST] = [7000, 10_079];

const given = new Set<number>();

/**
 * A free port that is reserved even while nothing listens on it: never returned twice, nor to a test file that runs in
 * parallel, nor to any other server of the tests.
 */
export async function ownPort(): Promise<number> {
  const half = Number(process.env.VITEST_POOL_ID ?? 0) % 2;
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if (port % 2 !== half || given.has(port) || (await freePort(port)) !== port) continue;
    given.add(port);
    return port;
  }
}
