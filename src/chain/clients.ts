/** Clients of one chain, and their JSON-RPC over HTTP, which checks each response against its request. */
import {
  type Chain,
  createPublicClient,
  createWalletClient,
  defineChain,
  type HttpTransport,
  http,
  type LocalAccount,
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

/** A full block's transactions take several megabytes, and one batch can request several blocks. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
const EXCERPT = 1_000;

export interface RpcTransportOptions {
  /** Sends concurrent calls in one request. */
  batch?: boolean;
  /** Retries of a call without a response. */
  retryCount?: number;
  /** Milliseconds until the whole response must have arrived. */
  timeout?: number;
  maxAnswerBytes?: number;
}

/**
 * viem's HTTP transport with three gaps closed. viem's timeout stops at the response headers, it waits as long as
 * `Retry-After` asks, and it assigns the responses of a batch by position even if one is missing.
 */
export function rpcTransport(
  url: string,
  {
    batch = false,
    retryCount = 3,
    timeout = 15_000,
    maxAnswerBytes = MAX_ANSWER_BYTES,
  }: RpcTransportOptions = {},
): HttpTransport {
  return http(url, {
    batch,
    retryCount,
    timeout,
    maxResponseBodySize: false,
    async fetchFn(input, init) {
      const response = await fetch(input, init);
      const text = await readWhole(response, maxAnswerBytes);
      const { status, statusText, ok } = response;
      if (!batch) return new Response(text, { status, statusText });
      if (ok) return new Response(answersOf(String(init?.body), text), { status, statusText });
      // An error for the whole batch: keep the status, so that viem fails every call in it.
      return new Response(JSON.stringify({ error: text.slice(0, EXCERPT) }), { status, statusText });
    },
  });
}

async function readWhole(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new Error(`The node's response is longer than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Returns the text of a batch response; throws if any call has no response. */
function answersOf(asked: string, text: string): string {
  const ids = idsOf(asked);
  const answered = idsOf(text);
  const known = new Set(answered);
  if (answered.length !== ids.length || !ids.every((id) => known.has(id)))
    throw new Error(`The node did not respond to every call in a batch: ${text.slice(0, EXCERPT)}`);
  return text;
}

function idsOf(batch: string): unknown[] {
  const parsed: unknown = JSON.parse(batch);
  return Array.isArray(parsed) ? parsed.map((one) => (one as { id?: unknown } | null)?.id) : [];
}
