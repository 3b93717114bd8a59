import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { freePort } from "../../../tools/local/ports.js";

/** Below every port that `freePort` chooses, and none of them is a port that `fetch` refuses to call. */
const [LOWEST, HIGHEST] = [7000, 10_079];

/** The servers themselves listen at 127.0.0.1. Linux serves all of 127.0.0.0/8, also if it has no IPv6; macOS does not. */
const RESERVATIONS = process.platform === "linux" ? "127.0.0.2" : "::1";

/**
 * A free port that stays reserved while this process runs, even while nothing listens on it: never returned twice, nor
 * to another test file or another run of the suite, nor to any other server of the tests.
 */
export async function ownPort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    const reservation = createServer().unref().listen(port, RESERVATIONS);
    try {
      await once(reservation, "listening");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") continue;
      throw error;
    }
    if ((await freePort(port)) === port) return port;
    reservation.close();
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
