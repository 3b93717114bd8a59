/** The service under test, and the access to it besides HTTP. */
import { createTestClient, type Hex, http } from "viem";
import type { StackInfo } from "../../support/stack.js";

export interface Target {
  url: string;
  /** Node of its chain. */
  rpcUrl: string | null;
  /** Holds stablecoins, and native currency for gas, to fund the suite's agents. */
  funderKey: Hex | null;
  databaseUrl: string | null;
  /** The suite's own stack, or null if it tests a given service. */
  stack: StackInfo | null;
  can: Ability[];
}

/** `money`: agents with stablecoins. `tokens`: and with protocol tokens. `clock`: moving the chain's time. */
export type Ability = "money" | "tokens" | "clock" | "database" | "stack";

export function ownTarget(stack: StackInfo): Target {
  const { url, rpcUrl, databaseUrl } = stack;
  const can: Ability[] = ["money", "tokens", "clock", "database", "stack"];
  return { url, rpcUrl, databaseUrl, funderKey: null, stack, can };
}

/**
 * A service that runs elsewhere. Its settings are the environment variables CONFORMANCE_URL (vite reserves BASE_URL),
 * RPC_URL, FUNDER_PRIVATE_KEY and DATABASE_URL.
 */
export async function foreignTarget(env: NodeJS.ProcessEnv): Promise<Target> {
  const rpcUrl = env.RPC_URL || null;
  const funderKey = (env.FUNDER_PRIVATE_KEY || null) as Hex | null;
  const databaseUrl = env.DATABASE_URL || null;
  const can: Ability[] = [];
  if (rpcUrl !== null && (await isDevelopmentChain(rpcUrl))) can.push("money", "tokens", "clock");
  else if (rpcUrl !== null && funderKey !== null) can.push("money");
  if (databaseUrl !== null) can.push("database");
  return {
    url: (env.CONFORMANCE_URL ?? "").replace(/\/+$/, ""),
    rpcUrl,
    funderKey,
    databaseUrl,
    stack: null,
    can,
  };
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
