/**
 * Rows 1, 5 and 30: a process is killed (-9) at every step of a payment, or its client disconnects. Guards: the outbox
 * is written before anything is sent; a batch is committed before it is broadcast; receipts decide; the first response
 * is stored; a repeated request finds its operation by authorization or request hash. Rows 41 to 44: so are gas accounts,
 * receipts, webhooks and purges.
 */
import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { until } from "../../tools/local/processes.js";
import { listen } from "../support/listen.js";
import type { GateName } from "./support/gate.js";
import { killAt as killAtGate, killOnCall as killOnNodeCall, type Start } from "./support/kill.js";
import type { RpcCall } from "./support/rpc-proxy.js";
import { expectGasChargedOnce, expectTruth, startStory, useScene } from "./support/story.js";

const scene = await useScene("crash", { env: { WEBHOOKS_TO_PRIVATE_ADDRESSES: "true" } });
const { cluster, customers, clients } = scene;

describe("when an API process is killed", () => {
  it("before the outbox write, nothing is stored, and the repeated request stores the operation", () =>
    killAt("api", "operation_insert", "before"));

  it("after the outbox write, the repeated request finds the operation on another process", () =>
    killAt("api", "operation_insert", "after"));

  it("after indexing but before the response is stored, the repeated request gets a new response", () =>
    killAt("api", "answer_keep", "before"));

  it("with the response stored but not sent, the repeated request gets the stored response", async () => {
    await killAt("api", "answer_keep", "after");
    await expectSameReceipt();
  });

  it("while its clients wait for the chain, another process serves them", async () => {
    const { done } = await startStory(scene, () => cluster.blocks.pause());
    await waitingOperations(4);
    await cluster.apis[0]?.kill();
    cluster.blocks.resume();
    await done;
  });
});

describe("when a relayer process is killed", () => {
  it("after signing but before the batch is stored, nothing is sent, and another batch carries the operations", () =>
    killAt("relayer", "batch_insert", "before"));

  it("with the batch stored but not broadcast, its successor sends the same bytes", () =>
    killOnCall("eth_sendRawTransaction", "before"));

  it("after broadcast, its successor reads the receipt", () => killOnCall("eth_sendRawTransaction", "after"));

  it("after mining, with the receipt in memory, its successor reads the receipt again", () =>
    killOnCall("eth_getTransactionReceipt", "after"));

  it("while it stores the receipt, the write happens completely or not at all", async () => {
    await killAt("relayer", "batch_mined", "before");
    await expectGasChargedOnce(scene);
  });

  it("after it stored the receipt, its successor continues from there", async () => {
    await killAt("relayer", "batch_mined", "after");
    await expectGasChargedOnce(scene);
  });
});

describe("when the workers are killed", () => {
  it("while a webhook's target holds its response, another worker sends the same event again", async () => {
    const client = clients[2];
    const ids: string[] = [];
    const target = createServer((request, response) => {
      ids.push(String(request.headers["webhook-id"]));
      if (ids.length > 1) response.end();
    });
    const { url } = await listen(target);
    const registered = await client.call("POST", "/v1/agents/me/webhooks", {
      body: { url: `${url}/`, types: ["contract.created"] },
    });
    expect(registered.status).toBe(201);

    expect((await customers.create(client)).status).toBe(200);
    await until("the event is sent", async () => ids.length === 1, { timeoutMs: 30_000 });
    await Promise.all(cluster.relayers.map((one) => one.kill()));
    await cluster.pool.query("update app.webhook set leased_until = now() - interval '1 second'");
    await cluster.heal();
    await until("the event is sent again", async () => ids.length > 1, { timeoutMs: 60_000 });
    expect(ids[1]).toBe(ids[0]);
    target.closeAllConnections();
    target.close();
  });

  it("while others purge and a creation is pending, its texts stay, and those of an unpaid attempt go", async () => {
    const [payer, idle] = clients;
    const unpaid = await customers.signedCreation(idle);
    const paid = await customers.signedCreation(payer);
    customers.forget(unpaid);
    const isHeld = async ({ authorization: { to } }: typeof unpaid): Promise<boolean> =>
      (await cluster.pool.query("select 1 from app.terms where id = $1", [to.toLowerCase()])).rows.length > 0;
    await cluster.blocks.pause();
    const settled = customers.settle(paid);
    await waitingOperations(1);
    await Promise.all(cluster.relayers.map((one) => one.kill()));
    await cluster.pool.query(
      "update app.terms set first_quoted_at = now() - interval '2 hours' where opened_at is null",
    );
    await Promise.all(cluster.relayers.map((one) => one.start()));
    await until("the unpaid texts are gone", async () => !(await isHeld(unpaid)), {
      timeoutMs: 90_000,
    });
    expect(await isHeld(paid)).toBe(true);
    cluster.blocks.resume();
    expect((await settled).status).toBe(200);
  });
});

describe("a client that disconnects", () => {
  it("leaves its operation pending, and gets the outcome when it returns", async () => {
    const client = clients[0];
    const payment = await customers.signedCreation(client);
    const before = await customers.usdOf(client.address);
    const abort = new AbortController();
    const url = cluster.apis[0]?.url;
    await cluster.blocks.pause();
    const sent = fetch(`${url}${payment.path}`, {
      method: "POST",
      body: payment.body,
      headers: {
        authorization: `Bearer ${client.apiKey}`,
        "content-type": "application/json",
        ...payment.headers,
      },
      signal: abort.signal,
    });
    sent.catch(() => {});
    const isStored = async (): Promise<boolean> => (await customers.operationsOf(payment)).length > 0;
    await until("its operation is stored", isStored, { timeoutMs: 30_000, intervalMs: 20 });
    abort.abort();
    await expect(sent).rejects.toThrow();
    cluster.blocks.resume();
    await until("its money has moved", async () => (await customers.usdOf(client.address)) < before, {
      timeoutMs: 30_000,
    });
    await expectTruth(scene);
    expect(payment.truth?.status).toBe(200);
  });
});

/** Every process replays a paid call with the receipt that its first response had, byte by byte. */
async function expectSameReceipt(): Promise<void> {
  const payment = customers.payments.find(({ truth }) => truth?.status === 200);
  if (payment === undefined) throw new Error("no payment succeeded");
  const { agent, path, body, headers, truth } = payment;
  const receipt = truth?.headers.get("payment-response");
  expect(receipt).toEqual(expect.any(String));
  for (const _ of cluster.apis) {
    const again = await customers.insist(() => customers.attempt(agent, path, body, headers));
    expect([again.status, again.headers.get("payment-response")]).toEqual([200, receipt]);
  }
}

const start: Start = (prepare) => startStory(scene, prepare);

/** Kills the process of that role at the gate, and expects that everything ends well. */
async function killAt(role: "api" | "relayer", gate: GateName, when: "before" | "after"): Promise<void> {
  const victim = await killAtGate(cluster, { gate, when, start });
  expect(victim.name).toMatch(new RegExp(`^${role}`));
}

/** The same at a relayer's call to the node. */
async function killOnCall(method: string, when: "before" | "after"): Promise<void> {
  const isAwaited = (call: RpcCall) => call.method === method;
  const victim = await killOnNodeCall(cluster, { isAwaited, when, start });
  expect(victim.name).toMatch(/^relayer/);
}

async function waitingOperations(count: number): Promise<void> {
  const open = "select count(*)::int as count from app.operation where state in ('queued', 'sent')";
  const areThere = async (): Promise<boolean> => (await cluster.pool.query(open)).rows[0].count >= count;
  await until(`${count} operations are waiting`, areThere, { timeoutMs: 30_000, intervalMs: 20 });
}
