/** Clients of one chain, their JSON-RPC over HTTP, which checks each response against its request, and the chain's clock. */
import { setImmediate } from "node:timers/promises";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import {
  type Chain,
  createPublicClient,
  createWalletClient,
  custom,
  defineChain,
  type Hash,
  HttpRequestError,
  type LocalAccount,
  type PublicClient,
  RpcRequestError,
  stringify,
  TimeoutError,
  type Transport,
  type WalletClient,
} from "viem";

const POLLING_INTERVAL_MS = 250;
/** Between two looks of a clock that hears of no block: the indexer can be down. */
const UNASKED_LOOK_MS = 1000;

/** A read-only HTTP client for one chain. It holds no connection state; a call fails if the node is unreachable. */
export function createChainClients({ rpcUrl, chainId }: { rpcUrl: string; chainId: number }) {
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const publicClient: PublicClient<Transport, Chain> = createPublicClient({
    chain,
    transport: rpcTransport(rpcUrl, { batch: true }),
    pollingInterval: POLLING_INTERVAL_MS,
    // ERC-3668: any wallet contract could make this machine fetch a URL of its choice.
    ccipRead: false,
  });
  return { publicClient, chain };
}

/** The chain's name in x402 version 1; the CAIP-2 name if it has no other. */
export function shortNameOf(chainId: number): string {
  const known = Object.entries(EVM_NETWORK_CHAIN_ID_MAP).find(([, id]) => id === chainId);
  return known?.[0] ?? `eip155:${chainId}`;
}

/** A signing client for deployments and local tools. The service itself signs only in `src/relayer`. */
export function createSigningClient({
  rpcUrl,
  ...options
}: {
  rpcUrl: string;
  chain: Chain;
  account: LocalAccount;
}): WalletClient<Transport, Chain, LocalAccount> {
  return createWalletClient({ ...options, transport: rpcTransport(rpcUrl) });
}

/** A full block's transactions take several megabytes, and one batch can request several blocks. */
const MAX_RESPONSE_BYTES = 128 * 1024 * 1024;
const EXCERPT = 1_000;

/** Calls in one request, as many as in viem's. */
const MAX_BATCH = 1_000;

export interface RpcTransportOptions {
  retryCount?: number;
  /** Milliseconds, for the whole response. */
  timeout?: number;
  /** Whether the calls of one turn of the event loop share a request. */
  batch?: boolean;
  maxResponseBytes?: number;
}

interface RpcCall {
  method: string;
  params?: unknown;
}

interface RpcResponse {
  id?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/**
 * JSON-RPC 2.0 over HTTP, with viem's retries and errors: HttpRequestError, TimeoutError and RpcRequestError, without a
 * call's parameters. viem's own transport writes each request into an error for a timeout that might never occur, which
 * costs more than the request. Its timeout ends with the response's head, it waits as long as `Retry-After` asks, and it
 * assigns the responses of a batch by position even if one is missing.
 */
export function rpcTransport(
  rpcUrl: string,
  {
    batch = false,
    maxResponseBytes = MAX_RESPONSE_BYTES,
    timeout = 15_000,
    retryCount,
  }: RpcTransportOptions = {},
): Transport {
  const { url, headers } = endpointOf(rpcUrl);

  const responsesTo = async (calls: readonly RpcCall[]): Promise<RpcResponse[]> => {
    const requests = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
    const body = stringify(batch ? requests : requests[0]);
    const response = await fetch(url, {
      method: "POST",
      headers,
      body,
      signal: AbortSignal.timeout(timeout),
    });
    const text = await readWhole(response, maxResponseBytes);
    if (response.ok) return batch ? inOrder(text, calls.length) : [JSON.parse(text)];
    const { status } = response;
    const failure = batch ? null : errorIn(text);
    if (failure !== null) return [failure];
    throw new HttpRequestError({ url, status, details: text.slice(0, EXCERPT) || response.statusText });
  };

  const post = (calls: readonly RpcCall[]): Promise<RpcResponse[]> =>
    responsesTo(calls).catch((cause: Error) => {
      if (cause instanceof HttpRequestError) throw cause;
      const body = calls.map(({ method }) => ({ method }));
      throw cause.name === "TimeoutError"
        ? new TimeoutError({ url, body })
        : new HttpRequestError({ url, body, cause });
    });

  let shared: { calls: RpcCall[]; responses: Promise<RpcResponse[]> } | null = null;
  const share = async (call: RpcCall): Promise<RpcResponse | undefined> => {
    if (shared === null || shared.calls.length >= MAX_BATCH) {
      const calls: RpcCall[] = [];
      const responses = setImmediate().then(() => {
        if (shared?.calls === calls) shared = null;
        return post(calls);
      });
      shared = { calls, responses };
    }
    const place = shared.calls.push(call) - 1;
    return (await shared.responses)[place];
  };

  return custom(
    {
      async request({ method, params }: RpcCall) {
        const { error, result } =
          (batch ? await share({ method, params }) : (await post([{ method, params }]))[0]) ?? {};
        if (error) throw new RpcRequestError({ url, body: { method }, error });
        return result;
      },
    },
    { name: "JSON-RPC over HTTP", ...(retryCount !== undefined && { retryCount }) },
  );
}

/** Credentials in a URL become a header: `fetch` accepts no others. */
function endpointOf(rpcUrl: string): { url: string; headers: Record<string, string> } {
  const url = new URL(rpcUrl);
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const isSecret = url.username !== "";
  Object.assign(url, { username: "", password: "" });
  const authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
  return {
    url: url.href,
    headers: { "content-type": "application/json", ...(isSecret && { authorization }) },
  };
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

/** The responses of a batch, each at the place that is its id; throws if any call has none. */
function inOrder(text: string, count: number): RpcResponse[] {
  const responses: unknown = JSON.parse(text);
  const byId = new Map(Array.isArray(responses) ? responses.map((one) => [one?.id, one]) : []);
  const ordered = Array.from({ length: count }, (_, id) => byId.get(id));
  if (!Array.isArray(responses) || responses.length !== count || ordered.includes(undefined))
    throw new Error(`The node did not respond to every call in a batch: ${text.slice(0, EXCERPT)}`);
  return ordered;
}

/** A JSON-RPC error that came with an HTTP status of failure; null if it is none. */
function errorIn(text: string): RpcResponse | null {
  try {
    const parsed = JSON.parse(text) as RpcResponse | null;
    const { code, message } = parsed?.error ?? {};
    return typeof code === "number" && typeof message === "string" ? parsed : null;
  } catch {
    return null;
  }
}

/** Whether this block is canonical; null if the node does not have it, which proves nothing. */
export async function isCanonical(
  { publicClient }: { publicClient: Pick<PublicClient, "getBlock"> },
  blockNumber: bigint,
  blockHash: string,
): Promise<boolean | null> {
  const block = await publicClient.getBlock({ blockNumber }).catch(() => null);
  return block === null ? null : block.hash === blockHash;
}

/** How far ahead of the newest block a time may be, in seconds: more than the usual time between two blocks. */
export const MAX_AHEAD_OF_HEAD = 15;

/** Blocks that were seen this long ago are known: the index has to show them. */
const KNOWN_AFTER_MS = 25_000;

export type ChainClock = ReturnType<typeof createChainClock>;

/**
 * The chain's clock: the newest block's timestamp plus the time elapsed since this process saw that block, at most
 * {@link MAX_AHEAD_OF_HEAD}, because a halted OP Stack chain resumes at the time of its last block. It never reads the
 * host's wall clock, which can be wrong.
 */
export function createChainClock({ publicClient }: { publicClient: Pick<PublicClient, "getBlock"> }) {
  /** `seenAt`: when this process first saw the block, in milliseconds of the monotonic `performance.now()`. */
  let head: { number: bigint; hash: Hash; timestamp: number; seenAt: number } | null = null;
  let newest = 0;
  let known = 0n;
  /** The next known block. */
  let mark: { number: bigint; at: number } | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let asked = 0;
  let answered = 0;

  const observe = async (): Promise<void> => {
    const question = ++asked;
    const block = await publicClient.getBlock({ blockTag: "latest" });
    // Two requests can overlap: the older one's response must not look like a reorg.
    if (question < answered) return;
    answered = question;
    if (head !== null && block.hash === head.hash) return;
    const timestamp = Number(block.timestamp);
    const wentBack = head !== null && block.number <= head.number;
    head = { number: block.number, hash: block.hash, timestamp, seenAt: performance.now() };
    newest = wentBack ? timestamp : Math.max(newest, timestamp);
    if (mark !== null && head.seenAt - mark.at < KNOWN_AFTER_MS) return;
    known = mark?.number ?? 0n;
    mark = { number: head.number, at: head.seenAt };
  };

  let isLooking = false;
  let isAsked = false;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const lookIn = (ms: number): void => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(look, ms).unref();
  };
  const look = async (): Promise<void> => {
    isAsked = false;
    isLooking = true;
    lookedAt = performance.now();
    // An unreachable node stops the clock as a halted chain does; /ready reports the node.
    await observe().catch(() => undefined);
    isLooking = false;
    lookIn(isAsked ? POLLING_INTERVAL_MS : UNASKED_LOOK_MS);
  };
  lookIn(POLLING_INTERVAL_MS);

  return {
    /** Seconds. Moves backwards in a reorg, or if the node shows an older head. Throws before the first refresh. */
    now(): number {
      if (head === null) throw new Error("The chain clock was read before its first refresh.");
      const elapsed = Math.floor((performance.now() - head.seenAt) / 1000);
      newest = Math.max(newest, head.timestamp + Math.min(elapsed, MAX_AHEAD_OF_HEAD));
      return newest;
    },
    /** Newest block seen so far. */
    head: () => head,
    /** A block that this process saw at least 25 seconds ago, usually at most 50; 0 until there is one. */
    knownBlock: () => (head !== null && known > head.number ? head.number : known),
    /** Reads the newest block immediately; rejects if the node is unreachable. */
    refresh: observe,
    /** There can be a new block: it is read within {@link POLLING_INTERVAL_MS}, however often this is called. */
    lookSoon(): void {
      isAsked = true;
      if (!isLooking) lookIn(Math.max(0, lookedAt + POLLING_INTERVAL_MS - performance.now()));
    },
    stop(): void {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** A clock that is further ahead of the real time was moved: nodes and machines differ by less. */
const MOVED_SECONDS = 30;
const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/**
 * Returns the next step of a program that counts from the real time, if the sandbox's clock was moved ahead, which the
 * program cannot know; otherwise null.
 */
export function movedClockHint(now: number, step: string): string | null {
  const ahead = now - Date.now() / 1000;
  if (ahead <= MOVED_SECONDS) return null;
  const [unit, seconds] = UNITS.find(([, length]) => ahead >= length) ?? UNITS[3];
  const count = Math.floor(ahead / seconds);
  return `The chain's clock is ${count} ${count === 1 ? unit : `${unit}s`} ahead of the real time, as in a sandbox whose clock was moved. ${step}; your own sandbox can be reset with npm start -- --reset.`;
}
