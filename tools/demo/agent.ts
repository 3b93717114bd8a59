/** An agent as a newcomer would write it: a fresh key, an API key, and an unmodified x402 client over `fetch`. */
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { type Address, toHex } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the demo reads whatever JSON the service returns.
  body: any;
}

export interface Agent {
  name: string;
  address: Address;
  account: PrivateKeyAccount;
  get(path: string): Promise<Answer>;
  /** Sends `body` as JSON; pays the quote if the response is 402. */
  post(path: string, body?: unknown): Promise<Answer>;
}

/** Creates an agent with a fresh key and signs it in. */
export async function signIn({ name, baseUrl }: { name: string; baseUrl: string }): Promise<Agent> {
  const account = privateKeyToAccount(generatePrivateKey());
  const address = account.address.toLowerCase() as Address;
  const payments = new x402Client().register("eip155:*", new ExactEvmScheme(account));
  // Stock clients pay only well-known assets, up to one dollar; this is a test coin.
  payments.setSpendControls(false);
  const fetchWithPayment = wrapFetchWithPayment(fetch, payments);

  const challenge = await send(fetch, `${baseUrl}/v1/agents/${address}/challenge`, { method: "POST" });
  const { challengeId, message } = expectOk(challenge, 200);
  const issued = await send(fetch, `${baseUrl}/v1/agents/${address}/api-key`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ challengeId, signature: await account.signMessage({ message }), label: name }),
  });
  const authorization = `Bearer ${expectOk(issued, 201).apiKey}`;

  return {
    name,
    address,
    account,
    get: (path) => send(fetch, baseUrl + path, { headers: { authorization } }),
    post: (path, body) =>
      send(fetchWithPayment, baseUrl + path, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
  };
}

/** The response's `data`. Throws with the response's body on any other status. */
export function expectOk(answer: Answer, status = 200) {
  if (answer.status !== status) {
    throw new Error(`expected ${status}, got ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
  return answer.body.data;
}

/** An idempotency key, so that equal requests of several runs create different contracts. */
export function freshKey(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(8)));
}

async function send(fetchFunction: typeof fetch, url: string, init: RequestInit): Promise<Answer> {
  const response = await fetchFunction(url, init);
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}
