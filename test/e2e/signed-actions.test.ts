/** Agents that leave nothing, or not everything, to the operator: each action carries their own signature. */
import { RefusedToSign } from "@working-contracts/client/index";
import { delegationAbi } from "@working-contracts/protocol/abi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { type Address, concat } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { type Agent, signIn } from "../support/agent.js";
import { alone, isDelegated } from "../support/chain.js";
import { changing, draftOf, newAgent } from "../support/client-agents.js";
import {
  checkpointBody,
  created,
  delivered,
  type Json,
  matched,
  newJuror,
  ok,
} from "../support/contracts.js";
import { holdOperations } from "../support/held-operations.js";
import { signedHeaders, toSign } from "../support/signed-actions.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const strict = () => world.newAgent({ usd: "5000", permission: { operatorActions: "none" } });
const [client, worker] = await Promise.all([strict(), strict()]);

/** Signs in again, and leaves to the operator what is given, by default nothing. */
function signInAs({ account }: Pick<Agent, "account">, permission: Json = { operatorActions: "none" }) {
  return signIn({ url: world.url, chainId: world.deployment.chainId, account, permission });
}

const approval = (id: string) => `/v1/contracts/${id}/approve`;

/** Asks what to sign, and signs it. */
const signed = async (agent: Agent, path: string, body?: Json) =>
  signedHeaders(agent, toSign(await agent.post(path, body)));

/** A contract under review, whose parties signed what led to it. */
async function underReview(): Promise<{ id: Address }> {
  const { id } = await matched<{ id: Address }>(world, { client, worker });
  const path = `/v1/contracts/${id}/delivery`;
  const body = { delivery: "ipfs://output" };
  ok(await worker.post(path, body, await signed(worker, path, body)));
  return { id };
}

test("an agent leaves some actions to the operator, until a time", async () => {
  const until = await world.inSeconds(60);
  const permission = { operatorActions: ["deliver"], operatorUntil: until };
  const partly = await signInAs(await world.newAgent({ usd: "500" }), permission);
  const { id } = await delivered(world, { client, worker: partly });
  expect(await isDelegated(world, partly, "deliver")).toBe(true);
  expect(await isDelegated(world, partly, "approve")).toBe(false);
  ok(await client.post(approval(id), undefined, await signed(client, approval(id))));

  const next = await matched(world, { client, worker: partly });
  expect(await partly.post(`/v1/contracts/${next.id}/withdraw`)).toMatchObject({ status: 403 });
  await world.increaseTime(61);
  const late = await partly.post(`/v1/contracts/${next.id}/delivery`, { delivery: "ipfs://output" });
  expect(late).toMatchObject({ status: 403, error: { code: "forbidden" } });
});

test("an agent that leaves nothing to the operator signs for a deadline of its own, and is refused if it ends within six seconds or is too far ahead", async () => {
  const { id } = await underReview();
  const now = await world.now();
  const asked = await client.post(approval(id), undefined, { "Action-Deadline": String(now + 50) });
  expect(toSign(asked).message.deadline).toBe(now + 50);
  const headers = await signedHeaders(client, toSign(asked));
  // The service can know a block of the last seconds later than this test.
  for (const deadline of [now - 1, now + 3, now + 86_400 + 60]) {
    const late = await client.post(approval(id), undefined, {
      ...headers,
      "Action-Deadline": `${deadline}`,
    });
    const message = expect.stringContaining("at least 6 seconds ahead, and at most a day");
    expect(late).toMatchObject({ status: 400, error: { code: "invalid_request", message } });
  }
  const other = await client.post(approval(id), undefined, {
    ...headers,
    "Action-Deadline": `${now + 51}`,
  });
  expect(other).toMatchObject({ status: 401, error: { code: "invalid_signature" } });
  ok(await client.post(approval(id), undefined, headers));
});

test("a Worker whose deliveries expire before they are relayed has ten of them stored", async () => {
  const { id } = await matched<{ id: Address }>(world, { client, worker });
  const path = `/v1/contracts/${id}/delivery`;
  const delivery = await holdOperations(world, { escrow: id, kind: "deliver" });
  for (let i = 0; i < 12; i++) {
    const body = { delivery: `ipfs://${i}` };
    const delivering = worker.post(path, body, await signed(worker, path, body));
    await delivery.arrived();
    await world.moveTime(600);
    await delivery.release();
    expect(await delivering).toMatchObject({ status: 409, error: { retryable: true } });
  }
  await delivery.end();
  const stored = () => world.query("select 1 from app.delivery where contract_id = $1", [id]);
  expect(await stored()).toHaveLength(10);
  const body = { delivery: "ipfs://output" };
  ok(await worker.post(path, body, await signed(worker, path, body)));
  expect(await stored()).toHaveLength(10);
  expect(ok(await client.get<Json>(`/v1/contracts/${id}`)).delivery).not.toBeNull();
});

// From here on no test moves the time by more than seconds.
test.concurrent("the key of an account that runs code without ERC-1271 (EIP-7702) can sign its actions, as on chain", async () => {
  const agent = await strict();
  const path = `/v1/contracts/${(await created(world, agent)).id}/cancel`;
  const headers = await signed(agent, path);
  const bytecode = concat(["0xef0100", world.deployment.factory]);
  await world.testClient.setCode({ address: agent.address, bytecode });
  ok(await agent.post(path, undefined, headers));
});

describe.concurrent("an agent that leaves nothing to the operator", () => {
  type Action = () => Promise<{ path: string; body?: Json; agent: Agent; status?: number }>;
  const running = () => matched<{ id: Address }>(world, { client, worker });
  const actions: Record<string, Action> = {
    approves: async () => ({ path: approval((await underReview()).id), agent: client }),
    async delivers() {
      const { id } = await running();
      return { path: `/v1/contracts/${id}/delivery`, body: { delivery: "ipfs://output" }, agent: worker };
    },
    withdraws: async () => ({ path: `/v1/contracts/${(await running()).id}/withdraw`, agent: worker }),
    async cancels() {
      const { id } = await created(world, client);
      return { path: `/v1/contracts/${id}/cancel`, agent: client };
    },
    async declines() {
      const { id } = await created(world, client, { worker: worker.address, awardMethod: "direct_award" });
      return { path: `/v1/contracts/${id}/accept`, body: { accept: false }, agent: worker };
    },
    unstakes: async () => ({ path: "/v1/agents/me/unstake", agent: await signInAs(await newJuror(world)) }),
    async complains() {
      const body = { evidence: { what: "late" } };
      return { path: `/v1/contracts/${(await running()).id}/complaints`, body, agent: client, status: 201 };
    },
  };

  test.each(Object.entries(actions))("%s only with its signature for it", async (_, prepare) => {
    const { path, body, agent, status = 200 } = await prepare();
    const unsigned = await agent.post(path, body);
    expect(unsigned).toMatchObject({ status: 403, error: { code: "forbidden" } });
    expect(unsigned.error?.message).toContain("needs your own signature");

    const sign = toSign(unsigned);
    expect(sign.message).toMatchObject({ agent: agent.address, nonce: "0" });
    const stranger = { ...agent, account: privateKeyToAccount(generatePrivateKey()) };
    const forged = await agent.post(path, body, await signedHeaders(stranger, sign));
    expect(forged).toMatchObject({ status: 401, error: { code: "invalid_signature" } });

    expect((await agent.post(path, body, await signedHeaders(agent, sign))).status).toBe(status);
    expect(await isDelegated(world, agent, "approve")).toBe(false);
  });

  test("gets its first complaint again by its Idempotency-Key, whatever has become of its signature", async () => {
    const path = `/v1/contracts/${(await matched(world, { client, worker })).id}/complaints`;
    const body = { evidence: { what: "late" } };
    const key = { "idempotency-key": "late" };
    const signature = await signedHeaders(client, toSign(await client.post(path, body, key)));
    const first = await client.post<Json>(path, body, { ...signature, ...key });
    expect(ok(await client.post<Json>(path, body, key), 201)).toEqual(ok(first, 201));
    // Everyone can read the signature, so whoever has the key could otherwise file it again and again.
    expect(ok(await client.post<Json>(path, body, signature), 201)).toEqual(ok(first, 201));
    expect(ok(await client.get<Json[]>(path))).toHaveLength(1);
  });

  test("shows its signatures by complaint, next to the complaints", async () => {
    const path = `/v1/contracts/${(await matched(world, { client, worker })).id}/complaints`;
    const file = async (what: string): Promise<[id: string, signed: Json]> => {
      const body = { evidence: { what } };
      const headers = await signed(client, path, body);
      const shown = {
        signature: headers["Action-Signature"],
        nonce: "0",
        deadline: Number(headers["Action-Deadline"]),
      };
      const filed = await client.post<Json>(path, body, headers);
      expect(filed).toMatchObject({ status: 201, body: { signed: shown } });
      return [filed.data.id, shown];
    };
    const both = [await file("late"), await file("rude")];
    expect(await client.get(path)).toMatchObject({ body: { signed: Object.fromEntries(both) } });
    const { body } = await client.get(`${path}?limit=1`);
    expect((body as Json).signed).toEqual(Object.fromEntries(both.slice(0, 1)));
  });

  test("is not asked to sign a complaint beyond its limit", async () => {
    const { id } = await matched(world, { client, worker });
    const path = `/v1/contracts/${id}/complaints`;
    for (let filed = 0; filed < LIMITS.complaintsPerRole; filed++) {
      const body = { evidence: { filed } };
      ok(await client.post(path, body, await signed(client, path, body)), 201);
    }
    expect(await client.post(path, { evidence: {} })).toMatchObject({
      status: 429,
      error: { code: "too_many_complaints" },
    });
  });

  test("ends signatures that it has not used", async () => {
    const { id } = await underReview();
    const headers = await signed(client, approval(id));
    await (await alone(world, client)).cancelSignatures(id);

    const cancelled = await client.post(approval(id), undefined, headers);
    expect(cancelled).toMatchObject({ status: 401, error: { code: "invalid_signature" } });
    expect(toSign(cancelled).message.nonce).toBe("1");
    ok(await client.post(approval(id), undefined, await signedHeaders(client, toSign(cancelled))));
  });
});

test.concurrent("a challenge whose permission has ended already is refused", async () => {
  const body = { operatorUntil: await world.inSeconds(-1) };
  const answer = await client.call("POST", `/v1/agents/${client.address}/challenge`, { body });
  expect(answer).toMatchObject({ status: 400, error: { code: "invalid_request" } });
});

test.concurrent("an agent's key alone complains as the delegation allows that its owner registered on chain", async () => {
  const agent = await signInAs(await world.newAgent({ usd: "500" }), {});
  const { id } = await matched<{ id: Address }>(world, { client, worker: agent });
  const complain = (what: string) => agent.post(`/v1/contracts/${id}/complaints`, { evidence: { what } });
  ok(await complain("late"), 201);
  const owner = await alone(world, agent);
  await world.increaseTime(2);
  await owner.register("none");
  expect(await complain("by whoever has the key")).toMatchObject({
    status: 403,
    error: { code: "forbidden" },
  });
  await world.increaseTime(2);
  await owner.register("all");
  ok(await complain("rude"), 201);
});

test.concurrent("a narrower sign-in has replaced the earlier one when the client is connected", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  await (await alone(world, { account })).register("all");
  expect(await isDelegated(world, account, "approve")).toBe(true);
  await world.increaseTime(2);
  await newAgent(world, { account, node: world.info.rpcUrl, usd: "0", patienceMs: 3_000 });
  expect(await isDelegated(world, account, "approve")).toBe(false);
});

describe.concurrent("the client", () => {
  const newClient = (send = fetch) => newAgent(world, { operator: "none", fetch: send, clock: "service" });

  test("signs every action itself, and never delegates", async () => {
    const [buyer, seller] = [await newClient(), await newClient()];
    const { id } = await buyer.create(await draftOf(buyer));
    await seller.accept(id);
    await seller.deliver(id, "ipfs://page");
    expect(await seller.complain(id, { what: "slow", undefined: undefined })).toMatchObject({
      status: "pending",
    });
    expect((await buyer.approve(id)).status).toBe("resolved");
    const other = await buyer.create(await draftOf(buyer, { title: "Another page" }));
    expect((await buyer.cancel(other.id)).status).toBe("cancelled-by-initiator");
    for (const { address } of [buyer, seller]) {
      const [issuedAt] = await world.publicClient.readContract({
        address: world.deployment.delegation,
        abi: delegationAbi,
        functionName: "grants",
        args: [address as Address, world.deployment.relay],
      });
      expect(issuedAt).toBe(0);
    }
  });

  test("signs what a later sign-in of its address no longer leaves to the operator", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const buyer = await newClient();
    const seller = await newAgent(world, { account, operator: "all", clock: "service" });
    const { id } = await buyer.create(await draftOf(buyer));
    await seller.accept(id);
    await world.increaseTime(2);
    await newAgent(world, { account, usd: "0", clock: "service" });
    expect((await seller.deliver(id, "ipfs://page")).status).toBe("under-review");
  });

  test("refuses to sign another delivery than its own", async () => {
    const swapping: typeof fetch = async (input, init) => {
      const url = String(input);
      if (!url.endsWith("/delivery")) return fetch(input, init);
      return fetch(url, { ...init, body: JSON.stringify({ delivery: "ipfs://garbage" }) });
    };
    const [buyer, seller] = [await newClient(), await newClient(swapping)];
    const { id } = await buyer.create(await draftOf(buyer));
    await seller.accept(id);
    await expect(seller.deliver(id, "ipfs://page")).rejects.toThrow(RefusedToSign);
    expect((await buyer.get(id)).status).toBe("matched");
  });

  test("refuses to deliver without a checkpoint that the service hides or changes", async () => {
    let change: (data: Json[]) => Json[] = (data) => data;
    const lying = changing<Json[]>(/\/checkpoints$/, (data) => change(data));
    const [buyer, seller] = [await newClient(), await newClient(lying)];
    const { id } = await buyer.create(await draftOf(buyer));
    await seller.accept(id);
    for (const i of [1, 2]) {
      const data = { tokens: i };
      const body = await checkpointBody(world, { fromSequence: i, toSequence: i, data });
      await seller.checkpoint(id, body as never);
    }
    const lies = [
      (data: Json[]) => data.slice(1),
      (data: Json[]) => data.map((one) => ({ ...one, data: { tokens: 0 } })),
    ];
    for (const lie of lies) {
      change = lie;
      await expect(seller.deliver(id, "ipfs://page")).rejects.toThrow("a checkpoint that you submitted");
    }
    change = (data) => [{ ...data[0], data: {} }, ...data];
    await expect(seller.deliver(id, "ipfs://page")).rejects.toThrow("the service asks to sign");
    for (const lie of [
      (data: Json[]) => [...data, { ...data[1], data: { tokens: 0 } }],
      (data: Json[]) => data.toReversed(),
    ]) {
      change = lie;
      await expect(seller.deliver(id, "ipfs://page")).rejects.toThrow("was not submitted from here");
    }
    change = (data) => data;
    expect((await seller.deliver(id, "ipfs://page")).status).toBe("under-review");
  });
});
