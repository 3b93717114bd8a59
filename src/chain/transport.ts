/** JSON-RPC over HTTP, believed only where the node has answered what it was asked. */
import { type HttpTransport, http } from "viem";

/** A full block's transactions are some megabytes, and several blocks may be asked for in one batch. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
const EXCERPT = 1_000;

export interface RpcTransportOptions {
  /** Calls of the same moment travel in one request. */
  batch?: boolean;
  /** How often a call is sent again that was not answered. */
  retryCount?: number;
  /** Milliseconds until the answer has to be here, whole. */
  timeout?: number;
  maxAnswerBytes?: number;
}

/**
 * viem's transport with three gaps closed: its time-out ends with the answer's headers; it waits for as long as
 * `Retry-After` says; and it deals the answers of a batch out by their place, though one may be missing.
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
      // One error for all of a batch: by its status, as viem takes it for the answer to none of them.
      return new Response(JSON.stringify({ error: text.slice(0, EXCERPT) }), { status, statusText });
    },
  });
}

async function readWhole(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new Error(`The node's answer is longer than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The text of a batch's answers, if there is one for each call. */
function answersOf(asked: string, text: string): string {
  const ids = idsOf(asked);
  const answered = idsOf(text);
  const known = new Set(answered);
  if (answered.length !== ids.length || !ids.every((id) => known.has(id)))
    throw new Error(`The node did not answer each call of a batch: ${text.slice(0, EXCERPT)}`);
  return text;
}

function idsOf(batch: string): unknown[] {
  const parsed: unknown = JSON.parse(batch);
  return Array.isArray(parsed) ? parsed.map((one) => (one as { id?: unknown } | null)?.id) : [];
}
