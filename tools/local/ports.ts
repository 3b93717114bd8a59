import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports that outgoing connections take for themselves (32768 and up on Linux, 49152 and up by RFC 6335): a
 * port that was found free stays so until its server listens, unless another server chooses the same one. Above 10080,
 * the highest port that `fetch` refuses to call (Fetch Standard, "port blocking").
 */
const [LOWEST, HIGHEST] = [10_081, 32_767];
const RANDOM_TRIES = 20;

/** The wanted port where it is free, else any other; a port of 0 asks for any. */
export async function freePort(wanted = 0, host = "127.0.0.1"): Promise<number> {
  if (wanted !== 0 && (await tryPort(wanted, host)) !== null) return wanted;
  for (let attempt = 1; attempt <= RANDOM_TRIES; attempt++) {
    const port = await tryPort(randomInt(LOWEST, HIGHEST + 1), host);
    if (port !== null) return port;
  }
  return (await tryPort(0, host)) ?? wanted;
}

function tryPort(port: number, host: string): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(null));
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === "object" ? address.port : null));
    });
  });
}

/** Others may take a port between our look at it and our use of it. */
const LISTEN_TRIES = 5;

/** Runs `listen` with the wanted port where it is free, else with any other, also where the port is lost meanwhile. */
export async function listenOnFreePort<T>(
  { wanted, host }: { wanted: number; host?: string | undefined },
  listen: (port: number) => Promise<T>,
): Promise<{ port: number; listening: T }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(attempt === 1 ? wanted : 0, host);
    try {
      return { port, listening: await listen(port) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || attempt === LISTEN_TRIES) throw error;
    }
  }
}
