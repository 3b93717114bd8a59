/** The sandbox of the local network: no other network, and no production entry, has it. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Hono } from "hono";
import { createClock } from "./clock.js";
import { createFaucet } from "./faucet.js";
import { createPlays } from "./plays.js";
import { sandboxRoutes } from "./routes.js";

export interface Sandbox {
  routes: Hono;
  /** Stakes a standing jury in the background, once the service answers. */
  start(): void;
  stop(): void;
}

export function createSandbox(at: { rpcUrl: string; deployment: Deployment; baseUrl: string }): Sandbox {
  const faucet = createFaucet(at);
  const plays = createPlays({ baseUrl: at.baseUrl, faucet });
  return {
    routes: sandboxRoutes({ faucet, clock: createClock(at), plays }),
    // Asked for again where somebody needs it.
    start: () => void plays.prepareJury().catch(() => undefined),
    stop: () => plays.stop(),
  };
}
