import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports of outgoing connections (32768 and up on Linux, 49152 and up by RFC 6335), so that a port found free
 * stays free until its server listens, unless another server chooses the same one. Above 10080, the highest port that
 * `fetch` refuses to call (Fetch Standard, "port blocking").
 */
const [LOWEST, HIGHEST] = [10_081, 32_767];
const RANDOM_TRIES = 20;

/** The wanted port if it is free, otherwise any other. 0 asks for any port. */
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

/** Another process can take a port after it was found free. */
const LISTEN_TRIES = 5;

/** Runs `listen` with the wanted port if it is free, otherwise with another. Retries if the port is taken meanwhile. */
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
