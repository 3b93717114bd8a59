import {
  type Account,
  type Chain,
  createPublicClient,
  createWalletClient,
  defineChain,
  http,
  type PublicClient,
  type Transport,
  type WalletClient,
} from "viem";

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
  const transport = http(rpcUrl, { batch: true, timeout: 15_000 });
  const publicClient = createPublicClient({ chain, transport, pollingInterval: POLLING_INTERVAL_MS });
  return { publicClient, chain };
}

/** A signing client for deployments and local tools; the service itself signs in `src/relayer` alone. */
export function createSigningClient(options: {
  rpcUrl: string;
  chain: Chain;
  account: Account;
}): WalletClient<Transport, Chain, Account> {
  return createWalletClient({
    account: options.account,
    chain: options.chain,
    transport: http(options.rpcUrl),
  });
}
