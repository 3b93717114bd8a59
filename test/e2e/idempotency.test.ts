/** Creations whose response was lost: a repetition creates nothing more, and gets the first. */
import { describe, expect, it } from "vitest";
import { draftOf, newAgent } from "../support/client-agents.js";
import { checkpointBody, type Json, matched, newPair, ok, signedChallenge } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const HOOK = { url: "http://127.0.0.1:9/hook" };

const world = await useWorld();
const pair = await newPair(world);
const { id } = await matched(world, pair);

const key = (text: string) => ({ "idempotency-key": text });

describe("a repeated creation with the same Idempotency-Key", () => {
  it("returns the first API key, even to concurrent calls, and no one else's", async () => {
    const { address, account } = await world.newAgent();
    const proof = await signedChallenge(world, { address, account });
    const issue = (body: Json, text?: string) =>
      world.call<Json>("POST", `/v1/agents/${address}/api-key`, {
        body,
        headers: text === undefined ? {} : key(text),
      });
    const issued = await Promise.all([1, 2, 3].map(() => issue({ ...proof, label: "a" }, "first")));
    const [first] = issued.map((answer) => ok(answer, 201));
    for (const answer of issued) expect(answer.data).toEqual(first);
    const { apiKey } = first as { apiKey: string };
    const keys = await world.call<Json[]>("GET", "/v1/agents/me/api-keys", {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    expect(keys.data.map(({ label }) => label)).toEqual([null, "a"]);

    const wrongSignature = proof.signature.replace(/..$/, (v) => (v === "1b" ? "1c" : "1b"));
    for (const answer of [
      await issue(proof),
      await issue(proof, "second"),
      await issue({ ...proof, label: "b" }, "first"),
      await issue({ ...proof, signature: wrongSignature }, "first"),
    ]) {
      expect(answer.error?.code).toBe("invalid_challenge");
    }
    await world.pool.query("update app.api_key set revoked_at = now() where id = $1", [first?.keyId]);
    expect((await issue(proof, "first")).error?.code).toBe("invalid_challenge");
  });

  it("returns the first webhook with its secret, and creates another for other bytes or another caller", async () => {
    const { client, worker } = pair;
    const create = (agent = client, body: Json = HOOK) =>
      agent.post<Json>("/v1/agents/me/webhooks", body, key("hook"));
    const [first, again] = await Promise.all([create(), create()]);
    expect(ok(again, 201)).toEqual(ok(first, 201));
    expect(first.data.secret).toMatch(/^whsec_/);
    const others = [await create(client, { ...HOOK, description: "other" }), await create(worker)];
    expect(new Set([first, ...others].map((answer) => ok(answer, 201).id)).size).toBe(3);
    expect((await client.get<Json[]>("/v1/agents/me/webhooks")).data).toHaveLength(2);
  });

  it("returns the first version of a profile", async () => {
    const agent = await world.newAgent();
    const update = (text: string) =>
      agent.post<Json>("/v1/agents/me/profile", { displayName: "Ada" }, key(text));
    const [first, again] = await Promise.all([update("one"), update("one")]);
    expect(ok(again, 201)).toEqual(ok(first, 201));
    ok(await update("two"), 201);
    const versions = await world.query("select id from app.profile where agent = $1", [agent.address]);
    expect(versions).toHaveLength(2);
  });

  it("returns the first complaint and the first checkpoint", async () => {
    const { client, worker } = pair;
    const complain = (anyCase = id) =>
      client.post<Json>(`/v1/contracts/${anyCase}/complaints`, { evidence: { late: true } }, key("late"));
    const upper = `0x${id.slice(2).toUpperCase()}` as typeof id;
    const [complaint, same] = await Promise.all([complain(), complain(upper)]);
    expect(ok(same, 201)).toEqual(ok(complaint, 201));
    expect((await client.get<Json[]>(`/v1/contracts/${id}/complaints`)).data).toHaveLength(1);

    const body = await checkpointBody(world);
    const submit = () => worker.post<Json>(`/v1/contracts/${id}/checkpoint`, body, key("hour 1"));
    expect(ok(await submit(), 201)).toEqual(ok(await submit(), 201));
    expect((await client.get<Json[]>(`/v1/contracts/${id}/checkpoints`)).data).toHaveLength(1);
    // Without the key it is a second one, which does not follow the first.
    expect((await worker.post(`/v1/contracts/${id}/checkpoint`, body)).error?.code).toBe("conflict");
  });
});

it("the client repeats a request whose response was lost: nothing is created twice, and no action is a conflict", async () => {
  let lost = 0;
  const fetchAndLose: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const canBeLost = init?.method === "POST" && /(api-key|webhooks|profile|cancel)$/.test(String(input));
    if (!canBeLost || lost++ % 2 === 1) return response;
    throw new TypeError("the connection broke");
  };
  const agent = await newAgent(world, { fetch: fetchAndLose });
  const { id: hook } = await agent.webhooks.create(HOOK);
  await agent.setProfile({ displayName: "Ada" });
  const { id } = await agent.create(await draftOf(agent));
  expect((await agent.cancel(id)).status).toMatch(/^cancelled-/);

  expect(lost).toBe(8);
  expect(await agent.apiKeys()).toHaveLength(1);
  expect(await agent.webhooks.list()).toHaveLength(1);

  await agent.webhooks.replay(hook, { after: "0" });
  await agent.webhooks.update(hook, { disabled: true });
  expect(await agent.webhooks.get(hook)).toMatchObject({ status: "disabled" });
  await agent.webhooks.remove(hook);
  expect(await agent.webhooks.list()).toEqual([]);
});

it("a repeated action with the same Idempotency-Key gets the first response, and without the key or with another one a conflict", async () => {
  const { client, worker } = pair;
  const { id } = await matched(world, pair);
  const deliver = (text: string) =>
    worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }, key(text));
  const approve = (headers: Record<string, string>) =>
    client.post<Json>(`/v1/contracts/${id}/approve`, undefined, headers);
  expect(ok(await deliver("one"))).toEqual(ok(await deliver("one")));
  expect((await deliver("two")).error?.code).toBe("conflict");
  const first = ok(await approve(key("one")));
  expect(first).toMatchObject({ status: "resolved" });
  expect(ok(await approve(key("one")))).toEqual(first);
  for (const headers of [{}, key("two")]) expect((await approve(headers)).error?.code).toBe("conflict");
});
