/**
 * Rows 1, 5 and 30: a process is killed (-9) at every step of a payment, or its client disconnects. Guards: the outbox
 * is written before anything is sent; a batch is committed before it is broadcast; receipts decide; the first response
 * is stored; a repeated request finds its operation by authorization or request hash.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../src/indexer/supervision/processes.js";
import type { Agent } from "../support/agent.js";
import type { GateName } from "./support/gate.js";
import { RESET, type RpcCall } from "./support/rpc-proxy.js";
import type { ServiceProcess } from "./support/service-process.js";
import { expectTruth, openScene, type Scene, startStory } from "./support/story.js";

let scene: Scene;

beforeAll(async () => {
  scene = await openScene("crash");
});
afterEach(() => scene.cluster.heal());
afterAll(() => scene?.cluster.stop());

describe("when an API process is killed", () => {
  it("before the outbox write, nothing is stored, and the repeated request stores the operation", async () => {
    const victim = await killAt("operation_insert", true);
    expect(victim.name).toMatch(/^api/);
    await expectTruth(scene);
  });

  it("after the outbox write, the repeated request finds the operation on another process", async () => {
    const victim = await killAt("operation_insert", false);
    expect(victim.name).toMatch(/^api/);
    await expectTruth(scene);
  });

  it("after indexing but before the response is stored, the repeated request gets a new response", async () => {
    const victim = await killAt("answer_keep", true);
    expect(victim.name).toMatch(/^api/);
    await expectTruth(scene);
  });

  it("with the response stored but not sent, the repeated request gets the stored response", async () => {
    const victim = await killAt("answer_keep", false);
    expect(victim.name).toMatch(/^api/);
    await expectTruth(scene);
  });

  it("while its clients wait for the chain, another process serves them", async () => {
    const { cluster } = scene;
    const { done } = await startStory(scene, () => cluster.blocks.pause());
    await waitingOperations(4);
    await cluster.apis[0]?.kill();
    cluster.blocks.resume();
    await done;
    await expectTruth(scene);
  });
});

describe("when a relayer process is killed", () => {
  it("after signing but before the batch is stored, nothing is sent, and another batch carries the operations", async () => {
    const victim = await killAt("batch_insert", true);
    expect(victim.name).toMatch(/^relayer/);
    await expectTruth(scene);
  });

  it("with the batch stored but not broadcast, its successor sends the same bytes", async () => {
    const victim = await killOnCall(({ method }) => method === "eth_sendRawTransaction", "before");
    expect(victim.name).toMatch(/^relayer/);
    await expectTruth(scene);
  });

  it("after broadcast, its successor reads the receipt", async () => {
    const victim = await killOnCall(({ method }) => method === "eth_sendRawTransaction", "after");
    expect(victim.name).toMatch(/^relayer/);
    await expectTruth(scene);
  });

  it("after mining, with the receipt in memory, its successor reads the receipt again", async () => {
    const victim = await killOnCall(({ method }) => method === "eth_getTransactionReceipt", "after");
    expect(victim.name).toMatch(/^relayer/);
    await expectTruth(scene);
  });

  it("while it stores the receipt, the write happens completely or not at all", async () => {
    const victim = await killAt("batch_mined", true);
    expect(victim.name).toMatch(/^relayer/);
    await expectTruth(scene);
  });

  it("after it stored the receipt, its successor continues from there", async () => {
    const victim = await killAt("batch_mined", false);
    expect(victim.name).toMatch(/^relayer/);
    await expectTruth(scene);
  });
});

describe("a client that disconnects", () => {
  it("leaves its operation pending, and gets the outcome when it returns", async () => {
    const { cluster, customers, clients } = scene;
    const client = clients[0] as Agent;
    const asked = await customers.quoted(client, "/v1/contracts", await customers.draft());
    if ("refusal" in asked) throw new Error("no quote");
    const { payment } = asked;
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
    const isStored = async (): Promise<boolean> => {
      const { rows } = await cluster.pool.query("select 1 from app.operation where nonce = $1", [
        payment.authorization.nonce,
      ]);
      return rows.length > 0;
    };
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

/** Kills the process that reaches the gate. If `isLost`, its write never arrives; otherwise it does. */
async function killAt(gate: GateName, isLost: boolean): Promise<ServiceProcess> {
  const { cluster } = scene;
  const { done } = await startStory(scene, () => cluster.gates.close(gate));
  const writer = await cluster.gates.reached(gate);
  const victim = cluster.processAt(writer.port);
  await victim.kill();
  if (isLost) await cluster.gates.drop(writer);
  await cluster.gates.open(gate);
  await done;
  return victim;
}

/** Kills the first relayer that makes such a call: before the node receives the call, or when its response is there. */
async function killOnCall(
  isAwaited: (call: RpcCall) => boolean,
  when: "before" | "after",
): Promise<ServiceProcess> {
  const { cluster } = scene;
  let victim: ServiceProcess | undefined;
  let killed: Promise<void> | undefined;
  const lieInWait = async (): Promise<void> => {
    for (const relayer of cluster.relayers) {
      relayer.rpc.setRule(async (call, forward) => {
        if (!isAwaited(call) || (victim !== undefined && victim !== relayer)) return forward();
        if (when === "after") {
          const answer = await forward();
          if (!("result" in answer) || answer.result === null) return answer;
          if (victim !== undefined && victim !== relayer) return answer;
        }
        victim ??= relayer;
        killed ??= relayer.kill();
        return RESET;
      });
    }
  };
  const { done } = await startStory(scene, lieInWait);
  await until("a relayer is killed", async () => killed !== undefined, { timeoutMs: 60_000 });
  await killed;
  cluster.setRules(null);
  await done;
  if (victim === undefined) throw new Error("no relayer was killed");
  return victim;
}

async function waitingOperations(count: number): Promise<void> {
  const open = "select count(*)::int as count from app.operation where state in ('queued', 'sent')";
  const areThere = async (): Promise<boolean> =>
    (await scene.cluster.pool.query(open)).rows[0].count >= count;
  await until(`${count} operations are waiting`, areThere, { timeoutMs: 30_000, intervalMs: 20 });
}
