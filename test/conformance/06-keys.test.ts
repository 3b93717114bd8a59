/** Endpoints of challenges and API keys. */
import { verifyMessage } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { type Agent, caller } from "../support/agent.js";
import { type Json, ok, signedChallenge, UNKNOWN } from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, codes, refusal, says } from "./support/spec.js";

const scene = await openScene();
const bystander = lazy(() => scene.newAgent());

function newAddress(): Pick<Agent, "address" | "account"> {
  const account = privateKeyToAccount(generatePrivateKey());
  return { account, address: account.address.toLowerCase() as `0x${string}` };
}

const keyPath = ({ address }: Pick<Agent, "address">) => `/v1/agents/${address}/api-key`;

async function issue(agent: Pick<Agent, "address" | "account">, more: Json = {}): Promise<Json> {
  const body = { ...(await signedChallenge(scene, agent)), ...more };
  return ok(await scene.call<Json>("POST", keyPath(agent), { body }), 201);
}

async function revoke(agent: Pick<Agent, "address" | "account">, more: Json = {}) {
  const body = { ...(await signedChallenge(scene, agent)), ...more };
  return scene.call<Json>("POST", `${keyPath(agent)}/revoke`, { body });
}

const works = async (apiKey: string): Promise<boolean> => {
  const call = caller(scene.url, { authorization: `Bearer ${apiKey}` });
  return (await call("GET", "/v1/agents/me/api-keys")).status === 200;
};

chapter("POST /v1/agents/{address}/challenge", () => {
  says(
    [
      "No auth. Path: `address` string. No body. Response 200: `{ challengeId: string, message: string }`.",
      "The server stores a random nonce for 5 minutes and returns `challengeId` and `message`.",
      "Resources and their fields / Challenge > | challengeId | string |",
      "The same request twice > POST /v1/agents/{address}/challenge: each is a separate challenge, and each can be redeemed",
    ],
    async () => {
      const { address, account } = newAddress();
      const path = `/v1/agents/${address}/challenge`;
      const answers = await Promise.all(Array.from({ length: 10 }, () => scene.call<Json>("POST", path)));
      const given = answers.map((answer) => ok(answer));
      for (const challenge of given)
        expect(challenge).toEqual({ challengeId: expect.any(String), message: expect.any(String) });
      for (const field of ["challengeId", "message"])
        expect(new Set(given.map((challenge) => challenge[field])).size).toBe(10);
      for (const { challengeId, message } of given.slice(0, 3)) {
        const body = { challengeId, signature: await account.signMessage({ message }) };
        ok(await scene.call("POST", `/v1/agents/${address}/api-key`, { body }), 201);
      }
    },
  );

  const malformed = ["0x12", "vitalik.eth", `0x${"zz".repeat(20)}`, "ab".repeat(20), `0x${"1".repeat(41)}`];
  for (const address of malformed) {
    says(`a malformed address (${address.slice(0, 12)}) is 400 \`invalid_request\``, async () => {
      const refused = await scene.call("POST", `/v1/agents/${address}/challenge`);
      expect(refusal(refused)).toBe("400 invalid_request");
    });
  }
});

chapter("POST /v1/agents/{address}/api-key", () => {
  says("Path: `address` must equal the address the challenge was issued to.", async () => {
    const [agent, other] = [newAddress(), newAddress()];
    const body = await signedChallenge(scene, agent);
    expect(refusal(await scene.call("POST", keyPath(other), { body }))).toBe("400 invalid_challenge");
    ok(await scene.call("POST", keyPath(agent), { body }), 201);
  });

  says(
    "`challengeId` string required; `signature` string required (EIP-191 personal_sign over `message`); `label` string optional.",
    async () => {
      const agent = newAddress();
      const body = await signedChallenge(scene, agent);
      for (const wrong of [
        {},
        { challengeId: body.challengeId },
        { signature: body.signature },
        { ...body, challengeId: 1 },
        { ...body, signature: null },
        { ...body, signature: "" },
        { ...body, label: 5 },
      ]) {
        const refused = await scene.call("POST", keyPath(agent), { body: wrong });
        expect(refusal(refused)).toBe("400 invalid_request");
      }
      ok(await scene.call("POST", keyPath(agent), { body }), 201);
    },
  );

  says(
    [
      "Expired or invalid challenge: 400 `invalid_challenge`.",
      "Errors > | 400 | invalid_challenge | Challenge expired or otherwise invalid at key issuance. |",
    ],
    async () => {
      const agent = newAddress();
      const { signature } = await signedChallenge(scene, agent);
      for (const challengeId of ["unknown", "00000000-0000-4000-8000-000000000000"]) {
        const refused = await scene.call("POST", keyPath(agent), { body: { challengeId, signature } });
        expect(refusal(refused)).toBe("400 invalid_challenge");
      }
    },
  );

  says(
    [
      "A challenge is redeemable once.",
      "Authentication > A challenge is single-use; every new key or revocation needs a fresh challenge.",
      "The same request twice > POST /v1/agents/{address}/api-key/revoke: one is executed, the others find no challenge",
    ],
    async () => {
      const agent = newAddress();
      const statuses = { [keyPath(agent)]: 201, [`${keyPath(agent)}/revoke`]: 200 };
      for (const [path, done] of Object.entries(statuses)) {
        const body = await signedChallenge(scene, agent);
        const answers = await Promise.all([1, 2, 3, 4].map(() => scene.call("POST", path, { body })));
        expect(codes(answers)).toEqual([done, ...Array(3).fill("invalid_challenge")]);
        for (const again of Object.keys(statuses))
          expect((await scene.call("POST", again, { body })).error?.code).toBe("invalid_challenge");
      }
    },
  );

  says(
    [
      "Verification: the signing address is recovered from the signature and must equal the address the challenge was issued to.",
      "Keys / Small print > The server recovers the signer and requires it to equal the address the challenge was issued to.",
      "Keys / Small print > Sign `message` locally with the address's private key using EIP-191 personal_sign.",
      "What the service does > An agent proves control of its address by signing a server-issued challenge off-chain (no transaction, no gas) and receives an API key.",
    ],
    async () => {
      const [agent, other] = [newAddress(), newAddress()];
      const { challengeId, message } = ok(
        await scene.call<Json>("POST", `/v1/agents/${agent.address}/challenge`),
      ) as { challengeId: string; message: string };
      const foreign = await other.account.signMessage({ message });
      const refused = await scene.call("POST", keyPath(agent), { body: { challengeId, signature: foreign } });
      expect(refusal(refused)).toBe("401 invalid_signature");
      for (const line of [agent.address, `Chain ID: ${scene.chainId}`]) expect(message).toContain(line);
      const own = await agent.account.signMessage({ message });
      expect(await verifyMessage({ address: agent.address, message, signature: own })).toBe(true);
      const issued = await scene.call<Json>("POST", keyPath(agent), {
        body: { challengeId, signature: own },
      });
      expect(ok(issued, 201).apiKey).toEqual(expect.any(String));
    },
  );

  says("a challenge is dead after five bad signatures", async () => {
    const agent = newAddress();
    const { challengeId, signature } = await signedChallenge(scene, agent);
    const bad = { challengeId, signature: `0x${"11".repeat(65)}` };
    for (let i = 0; i < 5; i++) {
      expect((await scene.call("POST", keyPath(agent), { body: bad })).error?.code).toBe("invalid_signature");
    }
    const late = await scene.call("POST", keyPath(agent), { body: { challengeId, signature } });
    expect(late.error?.code).toBe("invalid_challenge");
  });
});

chapter("GET /v1/agents/me/api-keys", () => {
  says(
    [
      "Response 200: array of `{ id, label, createdAt, revokedAt }`, listing active and revoked keys; metadata only.",
      "POST /v1/agents/{address}/api-key > Response 201: `{ address, apiKey, keyId, label }` (label null if not sent).",
      "Resources and their fields / API key > | keyId (issue response) / id (list response) | string | |",
      "Resources and their fields / API key > | apiKey | string | Plaintext, returned only once at issuance; only its hash is stored. |",
      "Resources and their fields / API key > | address | address | |",
      "Resources and their fields / API key > | label | string or null | Optional free text chosen by the agent. |",
      "Resources and their fields / API key > | createdAt | string (timestamp) | |",
      "Resources and their fields / API key > | revokedAt | string (timestamp) or null | null while active. |",
    ],
    async () => {
      const agent = newAddress();
      const labels = [undefined, "my laptop", ""];
      const keys: Json[] = [];
      for (const label of labels) keys.push(await issue(agent, { label }));
      const shape = { address: agent.address, apiKey: expect.any(String), keyId: expect.any(String) };
      expect(keys).toEqual(labels.map((label) => ({ ...shape, label: label ?? null })));
      const call = caller(scene.url, { authorization: `Bearer ${keys[2]?.apiKey}` });
      const read = async () => ok(await call<Json[]>("GET", "/v1/agents/me/api-keys"));
      const active = await read();
      for (const { createdAt } of active) expect(new Date(createdAt).toISOString()).toBe(createdAt);
      expect(active).toEqual(
        keys.map(({ keyId, label }) => ({
          id: keyId,
          label,
          createdAt: expect.any(String),
          revokedAt: null,
        })),
      );
      ok(await revoke(agent, { keyId: keys[1]?.keyId }));
      const list = await read();
      const revokedAt = list[1]?.revokedAt;
      expect(new Date(revokedAt).getTime()).toBeGreaterThan(0);
      expect(list).toEqual(active.map((key, i) => (i === 1 ? { ...key, revokedAt } : key)));
      for (const { apiKey } of keys) expect(JSON.stringify(list)).not.toContain(apiKey);
    },
  );

  says(
    ["Bearer key required (any active key of the caller).", "lists the caller's keys and no one else's"],
    async () => {
      const agent = newAddress();
      const issued = [await issue(agent), await issue(agent)];
      for (const { apiKey } of issued) {
        const call = caller(scene.url, { authorization: `Bearer ${apiKey}` });
        const listed = ok(await call<Json[]>("GET", "/v1/agents/me/api-keys"));
        expect(listed.map(({ id }) => id)).toEqual(issued.map(({ keyId }) => keyId));
      }
      expect((await scene.call("GET", "/v1/agents/me/api-keys?limit=0")).status).toBe(401);
      const theirs = ok(await (await bystander()).get<Json[]>("/v1/agents/me/api-keys"));
      for (const { keyId } of issued) expect(theirs.map(({ id }) => id)).not.toContain(keyId);
    },
  );
});

chapter("POST /v1/agents/{address}/api-key/revoke", () => {
  says(
    [
      "No bearer key; a fresh challenge and signature are required (same flow as issuance).",
      "Authentication > Revocation is authorised by a fresh signature, not by the key.",
    ],
    async () => {
      const agent = newAddress();
      const { apiKey } = await issue(agent);
      const bearer = { authorization: `Bearer ${apiKey}` };
      const byKey = await scene.call("POST", `${keyPath(agent)}/revoke`, { body: {}, headers: bearer });
      expect(byKey.error?.code).toBe("invalid_request");
      expect(await works(apiKey)).toBe(true);
      expect((await revoke(agent)).data).toEqual({ address: agent.address, revokedCount: 1 });
      expect(await works(apiKey)).toBe(false);
      // With no key left the address can still revoke, and get new keys.
      expect((await revoke(agent)).data.revokedCount).toBe(0);
      expect(await works((await issue(agent)).apiKey)).toBe(true);
    },
  );

  says(
    [
      "With `keyId`, revokes only that key; without it, revokes every active key of the address.",
      "Response 200: `{ address, revokedCount: number }` (0 or 1 when keyId is given).",
      "Keys / Small print > `keyId` string optional.",
    ],
    async () => {
      const agent = newAddress();
      const keys = [await issue(agent), await issue(agent), await issue(agent)];
      const state = () => Promise.all(keys.map(({ apiKey }) => works(apiKey)));
      for (const keyId of [null, 5, {}])
        expect((await revoke(agent, { keyId })).error?.code).toBe("invalid_request");
      const one = await revoke(agent, { keyId: keys[1]?.keyId });
      expect([one.status, one.data]).toEqual([200, { address: agent.address, revokedCount: 1 }]);
      expect(await state()).toEqual([true, false, true]);
      expect((await revoke(agent)).data).toEqual({ address: agent.address, revokedCount: 2 });
      expect(await state()).toEqual([false, false, false]);
      expect((await revoke(agent)).data.revokedCount).toBe(0);
    },
  );

  says(
    [
      "Unknown or inactive keyId: 404 `key_not_found`.",
      "Errors > | 404 | key_not_found | Revoke names a key that is not active for the address. |",
    ],
    async () => {
      const agent = newAddress();
      const { keyId } = await issue(agent);
      const foreign = ok(await (await bystander()).get<Json[]>("/v1/agents/me/api-keys"))[0]?.id;
      for (const id of ["unknown", "00000000-0000-4000-8000-000000000000", foreign]) {
        expect(refusal(await revoke(agent, { keyId: id }))).toBe("404 key_not_found");
      }
      ok(await revoke(agent, { keyId }));
      expect((await revoke(agent, { keyId })).error?.code).toBe("key_not_found");
      expect((await (await bystander()).get("/v1/agents/me/api-keys")).status).toBe(200);
    },
  );

  says("two revocations of one key at the same moment: one counts, the other finds it inactive", async () => {
    const agent = newAddress();
    const { keyId } = await issue(agent);
    const answers = await Promise.all([revoke(agent, { keyId }), revoke(agent, { keyId })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404]);
  });

  says("no one can revoke another address's keys", async () => {
    const [agent, other] = [newAddress(), newAddress()];
    const { apiKey } = await issue(agent);
    const body = await signedChallenge(scene, other);
    const refused = await scene.call("POST", `${keyPath(agent)}/revoke`, { body });
    expect(refused.error?.code).toBe("invalid_challenge");
    const { challengeId } = await signedChallenge(scene, agent);
    const forged = await scene.call("POST", `${keyPath(agent)}/revoke`, {
      body: { challengeId, signature: body.signature },
    });
    expect(forged.error?.code).toBe("invalid_signature");
    expect(await works(apiKey)).toBe(true);
  });
});

chapter("Authentication", () => {
  const paths: [string, string][] = [
    ["GET", "/v1/agents/me/api-keys"],
    ["POST", "/v1/contracts"],
    ["GET", "/v1/contracts"],
    ["GET", `/v1/contracts/${UNKNOWN}`],
    ...[
      "accept",
      "delivery",
      "approve",
      "dispute",
      "withdraw",
      "cancel",
      "checkpoint",
      "complaints",
      "votes",
    ].map((act): [string, string] => ["POST", `/v1/contracts/${UNKNOWN}/${act}`]),
    ["GET", `/v1/contracts/${UNKNOWN}/votes`],
    ["GET", `/v1/contracts/${UNKNOWN}/keys`],
    ["GET", "/v1/votes"],
    ["POST", "/v1/agents/me/profile"],
    ["GET", `/v1/agents/${UNKNOWN}/workload`],
  ];
  says(
    "All others use the bearer key; the caller's address is the authenticated address, and role rules (client, worker, initiator, matched worker) are checked against it.",
    async () => {
      for (const [method, path] of paths) {
        const { status, error, headers } = await scene.call(method, path);
        expect([status, error?.code, headers.get("www-authenticate")], `${method} ${path}`).toEqual([
          401,
          "unauthorized",
          "Bearer",
        ]);
      }
    },
  );

  says(
    [
      "Endpoints without a bearer key: challenge, issue key, revoke key, List Checkpoints, List Complaints, Read Profile.",
      "Keys / Small print > No bearer key (signature-based).",
    ],
    async () => {
      const agent = newAddress();
      await issue(agent);
      const body = await signedChallenge(scene, agent);
      const headers = { authorization: "Bearer nonsense" };
      ok(await scene.call("POST", keyPath(agent), { body, headers }), 201);
      ok(await revoke(agent));
      ok(await scene.call("GET", `/v1/agents/${agent.address}/profile`));
      for (const list of ["checkpoints", "complaints"]) {
        const refused = await scene.call("GET", `/v1/contracts/${UNKNOWN}/${list}`);
        expect(refused.error?.code).toBe("not_found");
      }
    },
  );

  says("Send `Authorization: Bearer <API_KEY>` on every authenticated call.", async () => {
    const { apiKey } = await issue(newAddress());
    const revoked = await (async () => {
      const agent = newAddress();
      const key = await issue(agent);
      ok(await revoke(agent));
      return key.apiKey as string;
    })();
    const statuses = await Promise.all(
      [
        `Bearer ${apiKey}`,
        `bearer ${apiKey}`,
        `BEARER ${apiKey}`,
        apiKey,
        `Basic ${apiKey}`,
        "Bearer",
        `Bearer ${apiKey}x`,
        `Bearer ${apiKey.slice(0, -1)}`,
        `Bearer ${apiKey} ${apiKey}`,
        `Bearer ${apiKey.toUpperCase()}`,
        `Bearer ${revoked}`,
      ].map(
        async (authorization) =>
          (await scene.call("GET", "/v1/agents/me/api-keys", { headers: { authorization } })).status,
      ),
    );
    expect(statuses).toEqual([200, 200, 200, ...Array(8).fill(401)]);
  });

  says(
    [
      "There is no limit on keys per address.",
      "Resources and their fields / API key > An address may hold any number of keys.",
    ],
    async () => {
      const agent = newAddress();
      const keys = [];
      for (let i = 0; i < 12; i++) keys.push(await issue(agent));
      expect((await Promise.all(keys.map(({ apiKey }) => works(apiKey)))).every(Boolean)).toBe(true);
      const call = caller(scene.url, { authorization: `Bearer ${keys[0]?.apiKey}` });
      expect(ok(await call<Json[]>("GET", "/v1/agents/me/api-keys"))).toHaveLength(12);
    },
  );
});
