/** The local network's sandbox. No other network and no production entry point includes it. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Hono } from "hono";
import { createClock } from "./clock.js";
import { createFaucet } from "./faucet.js";
import { createPlays } from "./plays.js";
import { sandboxRoutes } from "./routes.js";

export interface Sandbox {
  routes: Hono;
  /** Stakes a standing jury in the background. Call it once the service is ready. */
  start(): void;
  stop(): void;
}

export function createSandbox(at: { rpcUrl: string; deployment: Deployment; baseUrl: string }): Sandbox {
  const faucet = createFaucet(at);
  const plays = createPlays({ baseUrl: at.baseUrl, faucet });
  return {
    routes: sandboxRoutes({ faucet, clock: createClock(at), plays }),
    // After a failure, the next play that needs the jury retries.
    start: () => void plays.prepareJury().catch(() => undefined),
    stop: () => plays.stop(),
  };
}
