/** Requests to a node, and what of its URL may be shown. */
import { ConnectionError, isOutage } from "./errors.js";
import { fetchWhole, parse, reasonOf } from "./http.js";
import type { Addresses } from "./types.js";
import type { Eip1193Provider } from "./wallets.js";

/** A node: its JSON-RPC URL, or an EIP-1193 provider. */
export type ChainNode = string | Eip1193Provider;

export type Rpc = <T>(method: string, params: unknown[]) => Promise<T>;

/** A node that has not responded by then does not respond. */
const NODE_TIMEOUT_MS = 20_000;

export interface Range {
  fromBlock: bigint;
  toBlock: bigint;
}

/** All blocks of a deployment up to one. */
export type History = Pick<Addresses, "startBlock"> & Pick<Range, "toBlock">;

/**
 * Reads ranges of blocks, backwards to the deployment's first. Nodes limit the blocks and results of one request, some to
 * ten blocks: a range that is refused is halved, and so are those before it. Throws what the node says of a single block.
 */
export async function* rangesBack<T>(
  { startBlock, toBlock }: History,
  read: (range: Range) => Promise<T>,
  blocks?: bigint,
): AsyncGenerator<T> {
  const fromBlock = BigInt(startBlock);
  let width = blocks ?? toBlock - fromBlock + 1n;
  for (let to = toBlock; to >= fromBlock; ) {
    const from = to - width < fromBlock ? fromBlock : to - width + 1n;
    try {
      const found = await read({ fromBlock: from, toBlock: to });
      to = from - 1n;
      yield found;
    } catch (error) {
      if (from === to || isOutage(error)) throw error;
      width = (to - from + 1n) / 2n;
    }
  }
}

/** JSON-RPC. Throws the node's error, or ConnectionError without a response; no message has the whole URL. */
export function requesterOf(node: ChainNode): Rpc {
  if (typeof node !== "string") return (method, params) => node.request({ method, params });
  const { url, headers } = withoutCredentials(node);
  return async <T>(method: string, params: unknown[]) => {
    const failure = (reason: string) =>
      new ConnectionError(`${method} at the node ${hostOf(node)}: ${reason}`);
    let response: Response;
    let text: string;
    try {
      response = await fetchWhole(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
        signal: AbortSignal.timeout(NODE_TIMEOUT_MS),
      });
      text = await response.text();
    } catch (error) {
      throw failure(reasonOf(error));
    }
    const { result, error } = (parse(text) ?? {}) as { result?: T; error?: { message: string } };
    if (result !== undefined) return result;
    const { status } = response;
    // Too many requests do not say that a range is too wide.
    if (error === undefined || status === 429) throw failure(`HTTP ${status}`);
    throw new Error(`${method}: ${withoutKeys(node, error.message)}`);
  };
}

/** `fetch` takes no URL with a name and a password, and repeats it in its message. */
function withoutCredentials(node: string): { url: string; headers: Record<string, string> } {
  const url = URL.canParse(node) ? new URL(node) : undefined;
  if (!url?.username && !url?.password) return { url: node, headers: {} };
  const { username, password } = url;
  url.username = url.password = "";
  const pair = [username, password].map(decodeURIComponent).join(":");
  return { url: url.href, headers: { authorization: `Basic ${btoa(pair)}` } };
}

/** viem's messages contain the node's whole URL, and so possibly a key; its short ones do not. */
export const shortOf = ({ message, shortMessage = message }: Error & { shortMessage?: string }): string =>
  shortMessage;

/** A node's message without the parts of its URL after the host: a key would be as long as this. */
const withoutKeys = (node: string, message: string): string =>
  node
    .split(/[/?&=]/)
    .slice(3)
    .filter((part) => part.length > 7)
    .reduce((text, part) => text.replaceAll(part, "…"), message);

/** Throws the error again, without the node's whole URL. If the node gave a reason, that is in viem's `details`. */
export function withoutUrl(
  node: ChainNode,
  error: Error & Partial<Record<"shortMessage" | "details", string>> & { code?: number },
): never {
  const { shortMessage, details, code } = error;
  if (shortMessage === undefined) throw error;
  const reason = code !== undefined && details ? ` (${withoutKeys(String(node), details)})` : "";
  throw new Error(`The node ${nameOf(node)}: ${shortMessage}${reason}`);
}

/** A node's name for messages: of its URL only the host, because the rest can contain a key. */
export const nameOf = (node: ChainNode): string =>
  typeof node === "string" ? hostOf(node) : "of the wallet";

/** All of a node's URL that may be shown. */
export const hostOf = (url: string): string =>
  URL.canParse(url) ? new URL(url).host : "without a valid URL";
