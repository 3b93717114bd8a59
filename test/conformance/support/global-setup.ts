/** One service for all chapters: the one given to `npm run conformance`, or a whole separate stack. */
import { createTestClient, type Hex, http } from "viem";
import type { TestProject } from "vitest/node";
import { LOCAL_DEFAULTS } from "../../../tools/local/settings.js";
import { startStack } from "../../support/stack.js";
import { type Ability, ownTarget, type Target } from "../../support/world.js";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.env.CONFORMANCE_URL) {
    project.provide("target", await foreignTarget(process.env));
    return async () => {};
  }
  // On a slow machine responses are late. The chapters check each response and retry no call that is still pending.
  const env = { SETTLEMENT_WAIT_MS: "100000", GAS_ALLOWANCE: "", GAS_BUDGET: LOCAL_DEFAULTS.GAS_BUDGET };
  const stack = await startStack({ env });
  project.provide("target", ownTarget(stack.info));
  return () => stack.stop();
}

/**
 * A service that runs elsewhere. Its settings are the environment variables CONFORMANCE_URL (vite reserves BASE_URL),
 * RPC_URL, FUNDER_PRIVATE_KEY and DATABASE_URL.
 */
async function foreignTarget(env: NodeJS.ProcessEnv): Promise<Target> {
  const rpcUrl = env.RPC_URL || null;
  const funderKey = (env.FUNDER_PRIVATE_KEY || null) as Hex | null;
  const databaseUrl = env.DATABASE_URL || null;
  const can: Ability[] = [];
  if (rpcUrl !== null && (await isDevelopmentChain(rpcUrl))) can.push("money", "tokens", "clock");
  else if (rpcUrl !== null && funderKey !== null) can.push("money");
  if (databaseUrl !== null) can.push("database");
  const url = (env.CONFORMANCE_URL ?? "").replace(/\/+$/, "");
  return { url, rpcUrl, funderKey, databaseUrl, stack: null, can };
}

async function isDevelopmentChain(rpcUrl: string): Promise<boolean> {
  const client = createTestClient({ mode: "anvil", transport: http(rpcUrl, { retryCount: 0 }) });
  try {
    await client.request({ method: "anvil_nodeInfo" as never });
    return true;
  } catch {
    return false;
  }
}
