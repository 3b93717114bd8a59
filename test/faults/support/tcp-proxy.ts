/** A TCP proxy that can fail like a network: it drops data, refuses connections, or cuts open ones. */
import { createServer, type Server, Socket } from "node:net";
import { ownPort } from "./own-port.js";

export async function startTcpProxy(target: { host: string; port: number }) {
  const pairs = new Set<readonly [Socket, Socket]>();
  const swallowed = new WeakSet<Socket>();
  let isHole = false;
  const open = (): Server =>
    createServer((near) => {
      const far = new Socket();
      const pair = [near, far] as const;
      pairs.add(pair);
      const end = (): void => {
        pairs.delete(pair);
        near.destroy();
        far.destroy();
      };
      for (const socket of pair) socket.on("error", end).on("close", end);
      // A black hole discards data: bytes sent meanwhile are lost with their connection.
      const isLost = (): boolean => isHole || swallowed.has(far);
      near.on("data", (chunk) => isLost() || far.write(chunk));
      far.on("data", (chunk) => isLost() || near.write(chunk));
      far.connect(target);
    });
  let server = open();
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => resolve());
    });
  // Not an ephemeral port: after a refusal the proxy listens on it again.
  const port = await ownPort();
  await listen(port);
  /** Resets all connections. */
  const cut = (): void => {
    for (const [near, far] of pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  };
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      cut();
    });

  return {
    port,
    /** `black-hole`: connections are accepted and stay open, but no byte gets through. `refuse`: none is accepted. */
    async setMode(mode: "pass" | "black-hole" | "refuse"): Promise<void> {
      const wasHole = isHole;
      isHole = mode === "black-hole";
      if (wasHole && !isHole) cut();
      if (mode === "refuse") await close();
      else if (!server.listening) {
        server = open();
        await listen(port);
      }
    },
    cut,
    /** From now on no byte of this one connection gets through, and neither end is notified. */
    swallow(wanted: number): void {
      for (const [, far] of pairs) if (far.localPort === wanted) swallowed.add(far);
    },
    /** Whether the connection that the far end sees from this port is one of ours. */
    hasPort: (wanted: number): boolean => [...pairs].some(([, far]) => far.localPort === wanted),
    stop: close,
  };
}
