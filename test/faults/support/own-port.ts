import { randomInt } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:net";
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

/** Has the server listen on a port to which it can return: while it is closed, nothing else takes that port. */
export async function listenOnOwnPort(server: Server, { cut }: { cut(): void }) {
  const port = await ownPort();
  const listen = async (): Promise<void> => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  await listen();
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      cut();
    });
  return {
    port,
    stop,
    /** Refuses every connection, or accepts connections again. */
    refuse: (isRefusing: boolean): Promise<void> => {
      if (isRefusing) return stop();
      return server.listening ? Promise.resolve() : listen();
    },
  };
}
