/** One HTTP call with every part free to choose. */
import type { Answer } from "../../support/agent.js";

export type Call = <T = unknown>(method: string, path: string, options?: CallOptions) => Promise<Answer<T>>;

export interface CallOptions {
  /** Text and bytes are sent as they are, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

/**
 * Calls a service. Reads `fetch` at each call, because the suite's setup replaces it with one that checks responses.
 */
export function caller(url: string, fixed: Record<string, string> = {}): Call {
  return async <T>(method: string, path: string, { body, headers = {} }: CallOptions = {}) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const asIs = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...fixed, ...type, ...headers },
      ...(body === undefined ? {} : { body: (asIs ? body : JSON.stringify(body)) as string }),
    });
    return readAnswer<T>(response);
  };
}

export async function readAnswer<T>(response: Response): Promise<Answer<T>> {
  const text = await response.text();
  let json: { data?: T; error?: Answer["error"] };
  try {
    json = JSON.parse(text);
  } catch {
    json = text as never;
  }
  const { status, headers } = response;
  return { status, headers, data: json?.data as T, error: json?.error, body: json };
}
