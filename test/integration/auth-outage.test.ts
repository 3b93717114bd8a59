import { describe, expect, it } from "vitest";
import { createApp } from "../../src/app.js";
import { createChainClients } from "../../src/chain/clients.js";
import { createDatabase } from "../../src/db/client.js";
import type { Deps } from "../../src/deps.js";
import { LOCAL_CHAIN_ID } from "../../tools/local/chain.js";
import { freePort } from "../../tools/local/ports.js";
import { RESET, startRpcProxy } from "../faults/support/rpc-proxy.js";
import { authClient, newAgent, refusal, useAuthNetwork } from "./auth-network.js";

const network = await useAuthNetwork();

const clientWith = (broken: Partial<Deps>) => authClient(createApp({ ...network.deps, ...broken }));

const unavailable = refusal(503, "unavailable", { retryable: true });

async function expectNoTryUsed({ challengeId }: { challengeId: string }): Promise<void> {
  const sql = "select failed_attempts from app.challenge where id = $1";
  expect((await network.pool.query(sql, [challengeId])).rows).toEqual([{ failed_attempts: 0 }]);
}

async function unreachableNode(): Promise<Deps["publicClient"]> {
  const rpcUrl = `http://127.0.0.1:${await freePort()}`;
  return createChainClients({ rpcUrl, chainId: LOCAL_CHAIN_ID }).publicClient;
}

async function unreachableDatabase() {
  return createDatabase(`postgres://postgres:password@127.0.0.1:${await freePort()}/auth`);
}

describe("while the node cannot be reached", () => {
  it("sign-in returns 503; a node that fails during a wallet's signature check uses up no try either", async () => {
    const owner = newAgent();
    const wallet = await network.deployCompiled("ContractWallet", [owner.address]);
    const up = authClient(network.app());
    const proof = await up.prove(owner, wallet);
    const unreachable = clientWith({ publicClient: await unreachableNode() });
    const answer = await unreachable.issue(wallet, proof);
    expect(answer).toMatchObject(unavailable);
    expect(answer.headers.get("retry-after")).toBe("2");
    const proxy = await startRpcProxy(network.deps.config.rpcUrl);
    const { publicClient } = createChainClients({ rpcUrl: proxy.url, chainId: LOCAL_CHAIN_ID });
    const down = clientWith({ publicClient });
    for (const code of [-32_603, 429, -32_000]) {
      proxy.setRule(async ({ method }, forward) =>
        method === "eth_call" ? { error: { code, message: "the node is broken" } } : forward(),
      );
      expect(await down.issue(wallet, proof)).toMatchObject(unavailable);
    }
    await proxy.stop();
    await expectNoTryUsed(proof);
    expect(await up.issue(wallet, proof)).toMatchObject({ status: 201 });
  });

  it("keys and /health keep working, and /ready does not", async () => {
    const { apiKey } = await authClient(network.app()).signIn(newAgent());
    const down = clientWith({ publicClient: await unreachableNode() });
    expect(await down.list(apiKey)).toMatchObject({ status: 200 });
    const healthy = { status: 200, body: { data: { status: "ok" } } };
    expect(await down.call("GET", "/health")).toMatchObject(healthy);
    const details = { database: { ok: true }, chain: { ok: false } };
    expect(await down.call("GET", "/ready")).toMatchObject(refusal(503, "unavailable", { details }));
  });

  it("the parameters are available again as soon as the node is", async () => {
    const proxy = await startRpcProxy(network.deps.config.rpcUrl);
    let up = false;
    proxy.setRule(async (_call, forward) => (up ? forward() : RESET));
    const rpcUrl = proxy.url;
    const { publicClient } = createChainClients({ rpcUrl, chainId: LOCAL_CHAIN_ID });
    const client = clientWith({ publicClient });
    expect(await client.call("GET", "/v1/protocol")).toMatchObject({ status: 503 });
    up = true;
    expect(await client.call("GET", "/v1/protocol")).toMatchObject({ status: 200 });
    await proxy.stop();
  });
});

describe("while the database cannot be reached", () => {
  it("returns 503 unavailable without mentioning the database", async () => {
    const { apiKey } = await authClient(network.app()).signIn(newAgent());
    const { pool, db } = await unreachableDatabase();
    const client = clientWith({ db });
    const answer = await client.list(apiKey);
    expect(answer).toMatchObject(unavailable);
    expect(JSON.stringify(answer.body)).not.toMatch(/postgres|127\.0\.0\.1|ECONN/i);
    expect(await client.call("GET", "/health")).toMatchObject({ status: 200 });
    expect(await client.call("GET", "/v1/protocol")).toMatchObject({ status: 200 });
    expect(await client.call("GET", "/ready")).toMatchObject({
      status: 503,
      body: { error: { details: { database: { ok: false }, chain: { ok: true } } } },
    });
    await pool.end();
  });
});

describe("GET /ready", () => {
  it("is 503 while there is no index yet, and names what is missing", async () => {
    const answer = await authClient(network.app()).call("GET", "/ready");
    const details = {
      ready: false,
      database: { ok: true },
      chain: { ok: true, block: expect.any(Number), ageSeconds: expect.any(Number) },
      indexer: { ok: false, block: null, lagBlocks: null },
    };
    expect(answer).toMatchObject(refusal(503, "unavailable", { message: "Not ready: indexer.", details }));
  });
});
