import { createServer } from "node:net";

/** The wanted port where it is free, else any other; a port of 0 asks for any. */
export async function freePort(wanted = 0, host = "127.0.0.1"): Promise<number> {
  return (await tryPort(wanted, host)) ?? (await tryPort(0, host)) ?? wanted;
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
