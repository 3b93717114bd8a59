import {
  type Chain,
  createPublicClient,
  createWalletClient,
  defineChain,
  type LocalAccount,
  type PublicClient,
  type Transport,
  type WalletClient,
} from "viem";
import { rpcTransport } from "./transport.js";

export interface ChainClientsOptions {
  rpcUrl: string;
  chainId: number;
}

export interface ChainClients {
  publicClient: PublicClient<Transport, Chain>;
  chain: Chain;
}

const POLLING_INTERVAL_MS = 250;

/**
 * A reading client for one chain, over HTTP: nothing is open between calls, so nothing has to be closed or opened
 * again. An unreachable node fails the call.
 */
export function createChainClients({ rpcUrl, chainId }: ChainClientsOptions): ChainClients {
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const publicClient = createPublicClient({
    chain,
    transport: rpcTransport(rpcUrl, { batch: true }),
    pollingInterval: POLLING_INTERVAL_MS,
    // ERC-3668: any wallet's contract could make this machine fetch whatever URL it names.
    ccipRead: false,
  });
  return { publicClient, chain };
}

/** A signing client for deployments and local tools; the service itself signs in `src/relayer` alone. */
export function createSigningClient(options: {
  rpcUrl: string;
  chain: Chain;
  account: LocalAccount;
}): WalletClient<Transport, Chain, LocalAccount> {
  return createWalletClient({
    account: options.account,
    chain: options.chain,
    transport: rpcTransport(options.rpcUrl),
  });
}
