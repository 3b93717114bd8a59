/** An agent as its author would write one: its own key, an API key, and the stock x402 client. */
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { Address } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";

export interface Answer<T = unknown> {
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
  get<T>(path: string): Promise<Answer<T>>;
  /** Sends once. A 402 is a response like any other. */
  post<T>(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer<T>>;
  /** Sends the request. If payment is required, pays and repeats it. */
  pay<T>(path: string, body?: unknown): Promise<Answer<T>>;
}

/** Signs in with the given account, or a fresh one. */
export async function signIn({
  url,
  chainId,
  account = privateKeyToAccount(generatePrivateKey()),
}: {
  url: string;
  chainId: number;
  account?: PrivateKeyAccount;
}): Promise<Agent> {
  const address = account.address.toLowerCase() as Address;
  const anonymous = caller({ url, headers: {}, send: fetch });
  const challenge = await anonymous<{ challengeId: string; message: string }>(
    "POST",
    `/v1/agents/${address}/challenge`,
  );
  const { challengeId, message } = challenge.data;
  const signature = await account.signMessage({ message });
  const issued = await anonymous<{ apiKey: string }>("POST", `/v1/agents/${address}/api-key`, {
    challengeId,
    signature,
  });
  if (issued.status !== 201) throw new Error(`No API key for ${address}: ${JSON.stringify(issued.body)}`);

  const { apiKey } = issued.data;
  const headers = { authorization: `Bearer ${apiKey}` };
  // By default the stock client refuses assets that it does not know and amounts above a dollar.
  const client = new x402Client()
    .register(`eip155:${chainId}`, new ExactEvmScheme(account))
    .setSpendControls(false);
  const send = caller({ url, headers, send: fetch });
  const sendAndPay = caller({ url, headers, send: wrapFetchWithPayment(fetch, client) });
  return {
    account,
    address,
    apiKey,
    get: (path) => send("GET", path),
    post: (path, body, more) => send("POST", path, body, more),
    pay: (path, body) => sendAndPay("POST", path, body),
  };
}

function caller({
  url,
  headers,
  send,
}: {
  url: string;
  headers: Record<string, string>;
  send: typeof fetch;
}) {
  return async <T>(
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<Answer<T>> => {
    const response = await send(`${url}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }), ...more },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = parse(text) as { data?: T; error?: Answer["error"] };
    return {
      status: response.status,
      headers: response.headers,
      data: json?.data as T,
      error: json?.error,
      body: json,
    };
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
