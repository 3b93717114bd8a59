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

/** A read-only HTTP client for one chain. It holds no connection state; a call fails if the node is unreachable. */
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
    // ERC-3668: any wallet contract could make this machine fetch a URL of its choice.
    ccipRead: false,
  });
  return { publicClient, chain };
}

/** A signing client for deployments and local tools. The service itself signs only in `src/relayer`. */
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
