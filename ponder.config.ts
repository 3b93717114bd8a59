/** Ponder's configuration: chain, emitters and start block. `src/indexer/ponder.config.ts` re-exports it. */

import { escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import { createConfig } from "ponder";
import { readDeployment } from "./src/chain/deployment.js";

/** Ponder's client starts at this many requests per second and URL, and increases only under constant load. */
const REQUESTS_PER_LANE = 20;

const deployment = readDeployment(required("DEPLOYMENT"));
const rpcUrl = process.env.PONDER_RPC_URL || required("RPC_URL");
const wsRpcUrl = process.env.PONDER_WS_RPC_URL || process.env.WS_RPC_URL;
const { startBlock } = deployment;

export default createConfig({
  ordering: "omnichain",
  database: { kind: "postgres", connectionString: required("DATABASE_URL"), poolConfig: { max: 12 } },
  chains: {
    escrowChain: {
      id: deployment.chainId,
      rpc: lanes(rpcUrl, Number(required("PONDER_REQUESTS_PER_SECOND"))),
      ...(wsRpcUrl ? { ws: wsRpcUrl } : {}),
      pollingInterval: Number(required("PONDER_POLLING_INTERVAL_MS")),
    },
  },
  contracts: {
    Factory: { chain: "escrowChain", abi: factoryAbi, address: deployment.factory, startBlock },
    // Every emitter: the handlers ignore addresses that are not escrows. Ponder's own `factory()` does not work here: if
    // two events share one factory, a restart forgets escrows that were deployed live and drops their events (Ponder
    // issue 2345).
    Escrow: { chain: "escrowChain", abi: escrowAbi, startBlock },
    BackupAgentRegistry: { chain: "escrowChain", abi: registryAbi, address: deployment.registry, startBlock },
  },
});

/**
 * The same endpoint under several URLs, because Ponder limits each separately. A provider's own limit still applies
 * (429).
 */
function lanes(url: string, requestsPerSecond: number): string[] {
  const count = Math.max(1, Math.ceil(requestsPerSecond / REQUESTS_PER_LANE));
  return Array.from({ length: count }, (_, lane) => {
    const named = new URL(url);
    if (lane > 0) named.searchParams.set("lane", String(lane));
    return named.href;
  });
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`The indexer requires the environment variable ${name}`);
  return value;
}
