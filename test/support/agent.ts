/** An agent as its author would write one: its own key, an API key, and the stock x402 client. */
import { setTimeout as delay } from "node:timers/promises";
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { Address } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";

export interface ApiResponse<T = unknown> {
  status: number;
  headers: Headers;
  /** `data` of a success. */
  data: T;
  /** `error` of a failed request. */
  error: { code: string; message: string; details?: unknown } | undefined;
  /** The whole body. */
  body: unknown;
}

export interface Agent {
  account: PrivateKeyAccount;
  /** Lower case. */
  address: Address;
  apiKey: string;
  /** Any request with the agent's key. */
  call: Call;
  get<T>(path: string): Promise<ApiResponse<T>>;
  /** Sends once. A 402 is a response like any other. */
  post<T>(path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse<T>>;
  /** Sends the request. If payment is required, pays and repeats it. */
  pay<T>(path: string, body?: unknown): Promise<ApiResponse<T>>;
}

export type Call = <T = unknown>(
  method: string,
  path: string,
  options?: {
    /** Text and bytes are sent as they are, anything else as JSON. */
    body?: unknown;
    headers?: Record<string, string>;
  },
) => Promise<ApiResponse<T>>;

/** Calls a service. Looks `fetch` up at each call, because a suite's setup replaces it with one that checks responses. */
export function caller(
  url: string,
  fixed: Record<string, string> = {},
  send: typeof fetch = (input, init) => fetch(input, init),
): Call {
  return async <T>(method: string, path: string, { body, headers = {} }: Parameters<Call>[2] = {}) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const asIs = typeof body === "string" || body instanceof Uint8Array;
    const response = await send(`${url}${path}`, {
      method,
      headers: { ...fixed, ...type, ...headers },
      ...(body === undefined ? {} : { body: (asIs ? body : JSON.stringify(body)) as string }),
    });
    return readResponse<T>(response);
  };
}

async function readResponse<T>(response: Response): Promise<ApiResponse<T>> {
  const text = await response.text();
  let json: { data?: T; error?: ApiResponse["error"] };
  try {
    json = JSON.parse(text);
  } catch {
    json = text as never;
  }
  const { status, headers } = response;
  return { status, headers, data: json?.data as T, error: json?.error, body: json };
}

/** Signs in with the given account, or a fresh one. */
export async function signIn({
  url,
  chainId,
  account = privateKeyToAccount(generatePrivateKey()),
  permission,
}: {
  url: string;
  chainId: number;
  account?: PrivateKeyAccount;
  /** Body of the challenge's request; by default everything is left to the operator. */
  permission?: Record<string, unknown> | undefined;
}): Promise<Agent> {
  const address = account.address.toLowerCase() as Address;
  const anonymous = caller(url);
  const challenge = await anonymous<{ challengeId: string; message: string }>(
    "POST",
    `/v1/agents/${address}/challenge`,
    permission && { body: permission },
  );
  const { challengeId, message } = challenge.data;
  const signature = await account.signMessage({ message });
  const issued = await anonymous<{ apiKey: string }>("POST", `/v1/agents/${address}/api-key`, {
    body: { challengeId, signature },
  });
  if (issued.status !== 201) throw new Error(`No API key for ${address}: ${JSON.stringify(issued.body)}`);

  const { apiKey } = issued.data;
  const authorization = { authorization: `Bearer ${apiKey}` };
  // By default the stock client refuses assets that it does not know and amounts above a dollar.
  const client = new x402Client()
    .register(`eip155:${chainId}`, new ExactEvmScheme(account))
    .setSpendControls(false);
  const call = caller(url, authorization);
  const callAndPay = caller(url, authorization, wrapFetchWithPayment(untilSettled, client));
  return {
    account,
    address,
    apiKey,
    call,
    get: (path) => call("GET", path),
    post: (path, body, headers = {}) => call("POST", path, { body, headers }),
    pay: (path, body) => callAndPay("POST", path, { body }),
  };
}

/** Repeats a call whose payment is still pending, as the response asks: a busy computer can outlast the service's wait. */
async function untilSettled(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    // A server in this process might have replaced the global Request, so `instanceof` does not work.
    const again = typeof input === "object" && "clone" in input ? input.clone() : input;
    const response = await fetch(again, init);
    const isPending =
      response.status === 503 && (await response.clone().text()).includes('"settlement_pending"');
    if (!isPending || performance.now() > deadline) return response;
    await delay(500);
  }
}
