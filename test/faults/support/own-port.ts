import { freePort } from "../../../tools/local/ports.js";

const given = new Set<number>();

/** A free port that stays ours while nobody listens on it: never given twice, nor to a file that runs beside this one. */
export async function ownPort(): Promise<number> {
  const half = Number(process.env.VITEST_POOL_ID ?? 0) % 2;
  for (;;) {
    const port = await freePort();
    if (port % 2 !== half || given.has(port)) continue;
    given.add(port);
    return port;
  }
}
