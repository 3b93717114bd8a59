/** Signs an agent in, over `app.request()`. */
import type { LocalAccount } from "viem/accounts";
import type { createApp } from "../../src/http/app.js";
import type { Answer } from "./auth-network.js";

type App = ReturnType<typeof createApp>;

export function authClient(app: App) {
  const call = async (method: string, path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await app.request(path, { method, ...init });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : JSON.parse(text),
    };
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    call("POST", path, {
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", ...headers },
    });
  const challenge = async (address: string) =>
    (await call("POST", `/v1/agents/${address}/challenge`)).body.data as {
      challengeId: string;
      message: string;
    };
  /** A fresh challenge, signed by `signer` for `address`. */
  const prove = async (signer: LocalAccount, address: string = signer.address) => {
    const { challengeId, message } = await challenge(address);
    return { challengeId, signature: await signer.signMessage({ message }) };
  };
  return {
    call,
    post,
    challenge,
    prove,
    issue: (address: string, body: unknown) => post(`/v1/agents/${address}/api-key`, body),
    revoke: (address: string, body: unknown) => post(`/v1/agents/${address}/api-key/revoke`, body),
    list: (apiKey: string, query = "") =>
      call("GET", `/v1/agents/me/api-keys${query}`, { headers: { Authorization: `Bearer ${apiKey}` } }),
    async signIn(signer: LocalAccount, label?: string): Promise<{ apiKey: string; keyId: string }> {
      const body = { ...(await prove(signer)), ...(label === undefined ? {} : { label }) };
      const issued = await post(`/v1/agents/${signer.address}/api-key`, body);
      if (issued.status !== 201) throw new Error(`Sign-in failed: ${JSON.stringify(issued.body)}`);
      return issued.body.data;
    },
  };
}
