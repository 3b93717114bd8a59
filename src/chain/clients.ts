import {
  type Account,
  type Chain,
  createPublicClient,
  createWalletClient,
  defineChain,
  fallback,
  http,
  type PublicClient,
  type Transport,
  type WalletClient,
  webSocket,
} from "viem";

export interface ChainClientsOptions {
  rpcUrl: string;
  /** Used first where given; HTTP takes over while it is down. */
  wsRpcUrl?: string | undefined;
  chainId: number;
}

export interface ChainClients {
  publicClient: PublicClient<Transport, Chain>;
  chain: Chain;
}

const POLLING_INTERVAL_MS = 250;

/** A reading client for one chain. Nothing is sent before the first call; an unreachable node fails that call. */
export function createChainClients({ rpcUrl, wsRpcUrl, chainId }: ChainClientsOptions): ChainClients {
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const overHttp = http(rpcUrl, { batch: true, timeout: 15_000 });
  const transport: Transport = wsRpcUrl === undefined ? overHttp : fallback([webSocket(wsRpcUrl), overHttp]);
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
