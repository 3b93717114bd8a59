import { parseSignature, serializeCompactSignature, signatureToCompactSignature } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { describe, expect, it, onTestFinished } from "vitest";
import { createApp } from "../../src/app.js";
import { createDatabase, createNotifications } from "../../src/db/client.js";
import { createKey, createKeyOwners } from "../../src/http/key-owners.js";
import { startTcpProxy } from "../faults/support/tcp-proxy.js";
import { type Json, ok } from "../support/contracts.js";
import { addressOf, authClient, newAgent, refusal, useAuthNetwork } from "./auth-network.js";

const network = await useAuthNetwork();
const app = network.app();
const client = authClient(app);

const invalidChallenge = refusal(400, "invalid_challenge", {
  message: "The challenge is unknown, expired, already used, or was issued to another address.",
  hint: "Request a new one with POST /v1/agents/{address}/challenge; it is valid for 5 minutes and for one call.",
});
const invalidRequest = refusal(400, "invalid_request");
const invalidSignature = refusal(401, "invalid_signature");

async function challengesOf(agent: { address: string }) {
  const sql = "select * from app.challenge where address = $1";
  return (await network.pool.query(sql, [addressOf(agent)])).rows;
}

describe("challenge", () => {
  it("needs no body, and accepts an empty body of any content type", async () => {
    const path = `/v1/agents/${newAgent().address}/challenge`;
    for (const init of [
      {},
      { headers: { "content-type": "application/json" } },
      { body: "", headers: { "content-type": "text/plain" } },
    ]) {
      expect(await client.call("POST", path, init)).toMatchObject({ status: 200 });
    }
  });
});

describe("issuing", () => {
  it("accepts labels of 0 to 100 characters, and null for none", async () => {
    const agent = newAgent();
    const proof = await client.prove(agent);
    for (const label of ["x".repeat(101), 7, ["x"]]) {
      const answer = await client.issue(agent.address, { ...proof, label });
      expect(answer).toMatchObject(invalidRequest);
      expect((answer.body as Json).error.details[0].path).toBe("label");
    }
    // Code points count, not UTF-16 units, and the rejected attempts above consumed nothing.
    const answer = await client.issue(agent.address, { ...proof, label: "🐝".repeat(100) });
    expect(answer).toMatchObject({ status: 201, body: { data: { label: "🐝".repeat(100) } } });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    for (const label of ["", null]) {
      const issued = await client.issue(agent.address, { ...(await client.prove(agent)), label });
      expect(issued).toMatchObject({ status: 201, body: { data: { label } } });
    }
  });

  it("accepts the address in any letter case, and names it in lower case", async () => {
    const agent = newAgent();
    const path = agent.address.toUpperCase();
    const { challengeId, message } = await client.challenge(path);
    expect(message.split("\n")[1]).toBe(addressOf(agent));
    const signature = await agent.signMessage({ message });
    const answer = await client.issue(path, { challengeId, signature });
    expect(answer).toMatchObject({ status: 201, body: { data: { address: addressOf(agent) } } });
  });

  it("rejects a challenge from the very second in which it expires", async () => {
    const agent = newAgent();
    const [late, later] = [await client.prove(agent), await client.prove(agent)];
    await network.moveTime(240);
    expect(await client.issue(agent.address, late)).toMatchObject({ status: 201 });
    const [open] = (await challengesOf(agent)).filter(({ signature }) => signature === null);
    await network.moveTimeTo(BigInt(open.expires_at));
    expect(await client.issue(agent.address, later)).toMatchObject(invalidChallenge);
  });

  it("rejects a challenge with other actions than one of the same second that was redeemed: the chain keeps either", async () => {
    const agent = newAgent();
    const prove = () => client.prove(agent);
    const [first, same, other] = [await prove(), await prove(), await prove()];
    await network.pool.query("update app.challenge set actions = 0 where id = $1", [other.challengeId]);
    for (const proof of [first, same])
      expect(await client.issue(agent.address, proof)).toMatchObject({ status: 201 });
    expect(await client.issue(agent.address, other)).toMatchObject(refusal(400, "invalid_challenge"));
    await network.moveTime(1);
    expect(await client.issue(agent.address, await client.prove(agent))).toMatchObject({ status: 201 });
  });

  it("returns the first key to a repetition on either side of a rotation of the master key", async () => {
    const { masterKey } = network.deps.config;
    const next = generatePrivateKey();
    const sides = [
      { masterKey, masterKeysOld: [next] },
      { masterKey: next, masterKeysOld: [masterKey] },
    ].map((keys) => authClient(network.app(keys)));
    for (const order of [sides, sides.toReversed()]) {
      const agent = newAgent();
      const body = await client.prove(agent);
      const call = { body, headers: { "idempotency-key": "once" } };
      const issue = (side: typeof client) => side.call("POST", `/v1/agents/${agent.address}/api-key`, call);
      const [first, again] = [await issue(order[0] ?? client), await issue(order[1] ?? client)];
      expect(ok(again, 201)).toEqual(ok(first, 201));
    }
  });

  it("returns 401 for a wrong signature, names the tries that are left, and keeps the challenge", async () => {
    const [agent, stranger] = [newAgent(), newAgent()];
    const { challengeId, message } = await client.challenge(agent.address);
    const signature = await stranger.signMessage({ message });
    for (const triesLeft of [4, 3, 2, 1]) {
      const answer = await client.issue(agent.address, { challengeId, signature });
      expect(answer).toMatchObject(refusal(401, "invalid_signature", { details: { triesLeft } }));
    }
    // A fifth bad one would have ended the challenge.
    const good = { challengeId, signature: await agent.signMessage({ message }) };
    expect(await client.issue(agent.address, good)).toMatchObject({ status: 201 });
  });

  it("returns 401 for the agent's own signature over another challenge or place", async () => {
    const agent = newAgent();
    const [{ challengeId, message }, other] = [
      await client.challenge(agent.address),
      await client.challenge(agent.address),
    ];
    const { domain, chainId, factory } = network.deps.deployment;
    const at = (here: string, there: string) => message.replaceAll(new RegExp(here, "gi"), there);
    const places = [at(domain, "other.test"), at(`${chainId}`, "1"), at(factory.slice(2), "00".repeat(20))];
    for (const text of [other.message, ...places]) {
      expect(text).not.toBe(message);
      const signature = await agent.signMessage({ message: text });
      expect(await client.issue(agent.address, { challengeId, signature })).toMatchObject(invalidSignature);
    }
  });

  it("counts concurrent bad tries exactly", async () => {
    const [agent, stranger] = [newAgent(), newAgent()];
    const { challengeId, message } = await client.challenge(agent.address);
    const signature = await stranger.signMessage({ message });
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => client.issue(agent.address, { challengeId, signature })),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(7);
  });

  it.each([
    "nonsense",
    "0x",
    "0x1234",
    "0xzz",
    `0x${"00".repeat(65)}`,
    `0x${"ff".repeat(65)}`,
    "x".repeat(9000),
  ])("returns 401 for a value that is not a signature (%#)", async (signature) => {
    const agent = newAgent();
    const { challengeId } = await client.challenge(agent.address);
    expect(await client.issue(agent.address, { challengeId, signature })).toMatchObject(invalidSignature);
  });

  it("stores every accepted form of a signature in the form that the chain accepts as delegation", async () => {
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const forms: ((signature: `0x${string}`) => string)[] = [
      (signature) => signature,
      (signature) => signature.toUpperCase().replace("0X", "0x"),
      // v as 0 or 1, the form of some hardware wallets.
      (signature) => signature.slice(0, -2) + (signature.endsWith("1b") ? "00" : "01"),
      (signature) => serializeCompactSignature(signatureToCompactSignature(parseSignature(signature))),
      // The malleable twin: s in the other half of the curve order.
      (signature) => {
        const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, "0");
        return `${signature.slice(0, 66)}${s}${signature.endsWith("1b") ? "1c" : "1b"}`;
      },
    ];
    for (const form of forms) {
      const agent = newAgent();
      const { challengeId, message } = await client.challenge(agent.address);
      const signature = form(await agent.signMessage({ message }));
      expect(await client.issue(agent.address, { challengeId, signature })).toMatchObject({ status: 201 });
      const stored = { purpose: "issue", signature: await agent.signMessage({ message }) };
      expect(await challengesOf(agent)).toMatchObject([stored]);
    }
  });
});

describe("bearer keys", () => {
  it("gives the same response for a missing, malformed, unknown and revoked key", async () => {
    const agent = newAgent();
    const { apiKey } = await client.signIn(agent);
    await client.revoke(agent.address, await client.prove(agent));
    const keys = [apiKey.replace("wc_test_", "wc_live_"), createKey("test").apiKey, apiKey];
    for (const authorization of ["", "Bearer ", ...keys.map((key) => `Bearer ${key}`)]) {
      const answer = await client.call("GET", "/v1/agents/me/api-keys", { headers: { authorization } });
      expect(answer, authorization).toMatchObject(
        refusal(401, "unauthorized", {
          message: "This call needs an active API key: Authorization: Bearer <API_KEY>.",
          hint: "Get one with POST /v1/agents/{address}/challenge, then POST /v1/agents/{address}/api-key.",
        }),
      );
    }
  });

  it("refuses a key that was revoked while its request held back the rest of its body", async () => {
    const agent = newAgent();
    const [{ apiKey, keyId }] = [await client.signIn(agent), await client.signIn(agent)];
    async function* heldBack() {
      yield Buffer.from("{");
      const proof = await client.prove(agent);
      expect(await client.revoke(agent.address, { ...proof, keyId })).toMatchObject({ status: 200 });
      yield Buffer.from('"url":"https://1.1.1.1/"}');
    }
    const answer = await app.request("/v1/agents/me/webhooks", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: ReadableStream.from(heldBack()),
      duplex: "half",
    });
    expect(answer.status).toBe(401);
  });

  it("never looks up a key whose checksum is wrong", async () => {
    const keys = { keptOwnerOf: () => undefined, ownerOf: () => expect.unreachable() };
    const blind = authClient(createApp({ ...network.deps, keys }));
    expect(await blind.list(`wc_test_${"0".repeat(49)}`)).toMatchObject({ status: 401 });
  });
});

describe("key owners in memory", () => {
  /** Another process: its own connections, cut or silenced at will, and the number of its lookups. */
  async function startProcess() {
    const { databaseUrl } = network.deps.config;
    const url = new URL(databaseUrl);
    const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    const far = createDatabase(url.href, { maxConnections: 1 });
    const { pool, db } = createDatabase(databaseUrl);
    let lookups = 0;
    const query = pool.query.bind(pool);
    pool.query = ((config: { name?: string }, ...rest: []) => {
      if (config.name === "api_key_owner") lookups += 1;
      return query(config as never, ...rest);
    }) as typeof pool.query;
    const notifications = createNotifications({ pool: far.pool });
    onTestFinished(async () => {
      await notifications.stop();
      await Promise.all([pool.end(), far.pool.end(), proxy.stop()]);
    });
    await expect.poll(() => notifications.isCurrent()).toBe(true);
    return {
      owners: createKeyOwners(db, notifications, 2),
      notifications,
      proxy,
      lookups: () => lookups,
    };
  }

  it("looks a key up once for a flood of requests, and keeps a bounded number", async () => {
    const { owners, lookups } = await startProcess();
    const keys = await Promise.all([1, 2, 3].map(async () => (await client.signIn(newAgent())).apiKey));
    const [first = ""] = keys;
    await Promise.all(Array.from({ length: 50 }, () => owners.ownerOf(first)));
    await owners.ownerOf(first);
    expect(lookups()).toBe(1);
    for (const key of keys) await owners.ownerOf(key);
    await owners.ownerOf(first);
    expect(lookups()).toBe(4);
  });

  it("refuses a key that was revoked by hand", async () => {
    const { owners, notifications } = await startProcess();
    const { apiKey, keyId } = await client.signIn(newAgent());
    expect(await owners.ownerOf(apiKey)).not.toBeNull();
    await network.pool.query("update app.api_key set revoked_at = now() where id = $1", [keyId]);
    await expect.poll(() => owners.ownerOf(apiKey)).toBeNull();
    expect(notifications.isCurrent()).toBe(true);
  });

  it.each(["goes silent", "breaks"])("refuses a revoked key if its LISTEN connection %s", async (fault) => {
    const { owners, proxy } = await startProcess();
    const agent = newAgent();
    const { apiKey } = await client.signIn(agent);
    expect(await owners.ownerOf(apiKey)).toBe(addressOf(agent));
    const proof = await client.prove(agent);
    await proxy.setMode(fault === "breaks" ? "refuse" : "black-hole");
    expect(await client.revoke(agent.address, proof)).toMatchObject({ status: 200 });
    expect(await owners.ownerOf(apiKey)).toBeNull();
  });
});

describe("listing", () => {
  it("has a next page even if none was asked for, beyond 1,000", async () => {
    const agent = newAgent();
    const { apiKey } = await client.signIn(agent);
    await network.pool.query(
      `insert into app.api_key (id, address, hash)
       select 'many ' || i, $1, 'many ' || i from generate_series(1, 1000) i`,
      [addressOf(agent)],
    );
    const first = (await client.list(apiKey)).body as Json;
    expect(first.data).toHaveLength(1000);
    const { body: second } = await client.list(apiKey, `?cursor=${encodeURIComponent(first.nextCursor)}`);
    expect(second).toEqual({ data: [expect.anything()], nextCursor: null });
    const ids = [...first.data, ...(second as Json).data].map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(1001);
    expect((await client.list(apiKey, "?limit=2")).data).toEqual(first.data.slice(0, 2));
    expect(await client.list(apiKey, "?limit=201")).toMatchObject(invalidRequest);
  });
});

describe("revoking", () => {
  it("counts bad signatures towards the same five tries, and revokes nothing", async () => {
    const [agent, thief] = [newAgent(), newAgent()];
    const { apiKey } = await client.signIn(agent);
    const { challengeId, message } = await client.challenge(agent.address);
    const signature = await thief.signMessage({ message });
    const bad = { challengeId, signature };
    for (let i = 0; i < 5; i++)
      expect(await client.revoke(agent.address, bad)).toMatchObject(invalidSignature);
    expect(await client.revoke(agent.address, bad)).toMatchObject(invalidChallenge);
    expect(await client.list(apiKey)).toMatchObject({ status: 200 });
  });

  it("keeps no signature of a revocation, so it never becomes a delegation", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    const proof = await client.prove(agent);
    // This uses up no challenge.
    for (const keyId of ["", "nope", "x".repeat(101)]) {
      const unknown = await client.revoke(agent.address, { ...proof, keyId });
      expect(unknown).toMatchObject(refusal(404, "key_not_found"));
    }
    const other = await client.revoke(agent.address, { ...proof, challengeId: "x".repeat(101) });
    expect(other).toMatchObject(invalidChallenge);
    await client.revoke(agent.address, proof);
    const kept = (await challengesOf(agent)).map(({ purpose, signature }) => ({ purpose, signature }));
    // The issuing signature is not kept either once no key is left.
    expect(kept).toEqual(
      expect.arrayContaining([
        { purpose: "issue", signature: null },
        { purpose: "revoke", signature: null },
      ]),
    );
  });
});

describe("storage of challenges", () => {
  it("deletes expired challenges but keeps the one that issued the newest key", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    await client.signIn(agent);
    for (let i = 0; i < 5; i++) await client.challenge(agent.address);
    await network.moveTime(400);
    for (let i = 0; i < 20; i++) await client.challenge(newAgent().address);
    expect((await challengesOf(agent)).map(({ purpose }) => purpose)).toEqual(["issue"]);
    const sql = "select 1 from app.challenge where expires_at <= $1 and signature is null";
    expect((await network.pool.query(sql, [network.deps.clock.now()])).rowCount).toBe(0);
  });
});
