/** Which service the suite judges, and what it may do to it besides speaking HTTP. */
import { createTestClient, type Hex, http } from "viem";
import type { StackInfo } from "../../support/stack.js";

export interface Target {
  url: string;
  /** Node of its chain. */
  rpcUrl: string | null;
  /** Holds stablecoins, and native currency for gas, to give to the suite's agents. */
  funderKey: Hex | null;
  databaseUrl: string | null;
  /** What the suite has started itself; null where it was pointed at a service. */
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

/** A service that runs elsewhere: CONFORMANCE_URL (vite keeps BASE_URL for itself), RPC_URL, FUNDER_PRIVATE_KEY and DATABASE_URL of the environment. */
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
