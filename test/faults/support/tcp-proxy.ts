/** A TCP proxy that can fail like a network: it drops data, refuses connections, or cuts open ones. */
import { createServer, Socket } from "node:net";
import { listenOnOwnPort } from "./own-port.js";

export async function startTcpProxy(target: { host: string; port: number }) {
  const pairs = new Set<readonly [Socket, Socket]>();
  const swallowed = new WeakSet<Socket>();
  let isHole = false;
  const server = createServer((near) => {
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
  /** Resets all connections. */
  const cut = (): void => {
    for (const socket of [...pairs].flat()) socket.resetAndDestroy();
  };
  const { port, refuse, stop } = await listenOnOwnPort(server, { cut });

  return {
    port,
    /** `black-hole`: connections are accepted and stay open, but no byte gets through. `refuse`: none is accepted. */
    async setMode(mode: "pass" | "black-hole" | "refuse"): Promise<void> {
      const wasHole = isHole;
      isHole = mode === "black-hole";
      if (wasHole && !isHole) cut();
      await refuse(mode === "refuse");
    },
    cut,
    /** From now on no byte of this one connection gets through, and neither end is notified. */
    swallow(wanted: number): void {
      for (const [, far] of pairs) if (far.localPort === wanted) swallowed.add(far);
    },
    /** Whether the connection that the far end sees from this port is one of ours. */
    hasPort: (wanted: number): boolean => [...pairs].some(([, far]) => far.localPort === wanted),
    stop,
  };
}
