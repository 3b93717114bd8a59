/**
 * Rows 47 to 49: processes are killed (-9) at every step of the actions that no payment carries. Guards: the action is
 * in the outbox before anything is sent; a repeated request finds the operation that has no response yet; a
 * complaint's id follows from its Idempotency-Key; the same share keeps its time.
 */
import { describe, expect, it } from "vitest";
import { until } from "../../tools/local/processes.js";
import type { ApiResponse } from "../support/agent.js";
import { ok } from "../support/contracts.js";
import { signedHeaders, toSign } from "../support/signed-actions.js";
import { type Action, disputed, newJuror, prepareActions, send, signingPair } from "./support/actions.js";
import type { GateName } from "./support/gate.js";
import { killAt, killOnCall, type Start } from "./support/kill.js";
import { expectTruth, useScene } from "./support/story.js";

const scene = await useScene("actions");
const { cluster, customers, clients, workers } = scene;
let actions: Action[];
let responses: Promise<ApiResponse<unknown>[]>;

describe("signed actions and the opening of a vote, when their API processes are killed", () => {
  it("before the outbox write, the repeated request stores them", async () => {
    await killApisAt("operation_insert", true);
    await expectOnce(200);
  });

  it("after the outbox write, the repeated request finds them", async () => {
    const { blocks, apis } = cluster;
    await start(() => blocks.pause());
    await untilStored();
    await Promise.all(apis.map((one) => one.kill()));
    blocks.resume();
    await Promise.all(apis.map((one) => one.start()));
    await expectOnce(200);
  });

  it("before their responses are stored, the repeated request gets a response", async () => {
    await killApisAt("answer_keep", true);
    await expectOnce(200);
  });

  it("with the responses stored but not sent, the repeated request is refused, because they are done", async () => {
    await killApisAt("answer_keep", false);
    await expectOnce(409);
  });
});

describe("signed actions and the opening of a vote, when their relayer is killed", () => {
  it("before the batch is stored, another batch carries them", async () => {
    await killAt(cluster, { gate: "batch_insert", when: "before", start });
    await expectOnce(200);
  });

  it("with the batch stored but not broadcast, the same bytes carry them", async () => {
    const isAwaited = ({ method }: { method: string }) => method === "eth_sendRawTransaction";
    await killOnCall(cluster, { isAwaited, when: "before", start });
    await expectOnce(200);
  });

  it("while it stores the receipt, its successor records them", async () => {
    await killAt(cluster, { gate: "batch_mined", when: "before", start });
    await expectOnce(200);
  });
});

it.each([
  ["a signed complaint", true],
  ["a complaint that its agent's key alone files", false],
])("%s is filed by the repeated request, once, if its write is lost", async (_complaint, isSigned) => {
  const [client, worker] = isSigned ? await signingPair(scene) : ([clients[0], workers[0]] as const);
  const { id } = ok(await customers.create(client));
  ok(await customers.accept(worker, id));
  const path = `/v1/contracts/${id}/complaints`;
  const unsigned = { agent: client, path, body: JSON.stringify({ evidence: { what: "late" } }), headers: {} };
  const signature = isSigned ? await signedHeaders(client, toSign(await send(scene, unsigned))) : {};
  const complaint = { ...unsigned, headers: { ...signature, "idempotency-key": "late" } };

  await cluster.gates.close("complaint_insert");
  const sent = send(scene, complaint);
  await killWriter("complaint_insert", true);
  const first = await sent;
  expect(first.status).toBe(201);
  expect((await send(scene, complaint)).body).toEqual(first.body);
  const { rows } = await cluster.pool.query("select id from app.complaint where contract_id = $1", [id]);
  expect(rows).toHaveLength(1);
});

describe("a share of a sealed delivery, when its API process is killed", () => {
  it("before it is stored, the repeated request stores it", async () => {
    const { share, read } = await prepareShare();
    await cluster.gates.close("share_insert");
    const sent = send(scene, share);
    await killWriter("share_insert", true);
    const answer = await sent;
    expect(answer.status).toBe(200);
    expect(await read()).toEqual([answer.data]);
  });

  it("after it is stored, the repeated request gets the response that was lost", async () => {
    const { share, read } = await prepareShare();
    await cluster.gates.close("share_insert");
    const first = customers.attempt(share.agent, share.path, share.body);
    await killWriter("share_insert", false);
    expect(await first).toBeNull();
    await cluster.heal();
    const [stored] = await read();
    const answer = await send(scene, share);
    expect([answer.status, answer.data]).toEqual([200, stored]);
    expect(await read()).toEqual([stored]);

    const other = { ...share, body: share.body.replace("a.b.c.d", "a.b.c.e") };
    const replaced = ok(await send(scene, other)) as { sharedAt: string };
    expect(await read()).toEqual([replaced]);
    expect(replaced.sharedAt).not.toBe((stored as typeof replaced).sharedAt);
  });
});

/** A share that a party can send to a Backup Agent, and how that agent reads it. */
async function prepareShare(): Promise<{
  share: Pick<Action, "agent" | "path" | "body" | "headers">;
  read(): Promise<unknown[]>;
}> {
  const juror = await newJuror(scene);
  const id = await disputed(scene);
  ok(await customers.insist(() => customers.attempt(juror, `/v1/contracts/${id}/keys`, "", {}, "GET")));
  const path = `/v1/contracts/${id}/delivery/shares`;
  const body = JSON.stringify({ recipient: juror.address, jwe: "e30.a.b.c.d" });
  return {
    share: { agent: workers[0], path, body, headers: {} },
    read: async () =>
      ok(await customers.insist(() => customers.attempt(juror, path, "", {}, "GET"))) as unknown as unknown[],
  };
}

/** Sends all actions at once. */
const start: Start = async (prepare) => {
  actions = await prepareActions(scene);
  await prepare();
  responses = Promise.all(actions.map((action) => send(scene, action)));
  responses.catch(() => {});
  return { done: responses };
};

const untilStored = (): Promise<void> =>
  until("all are stored", async () => (await operationsOf(actions)).flat().length === actions.length, {
    timeoutMs: 60_000,
    intervalMs: 20,
  });

/** Kills every API process once all actions wait at the gate. If `isLost`, their writes never arrive. */
async function killApisAt(gate: GateName, isLost: boolean): Promise<void> {
  const { blocks, gates, apis, processAt } = cluster;
  // One block for all: writers of responses lock rows that the relayer changes before it sends more.
  const sharesBlock = gate === "answer_keep";
  await start(async () => {
    if (sharesBlock) await blocks.pause();
    await gates.close(gate);
  });
  if (sharesBlock) await untilStored();
  blocks.resume();
  const waiting = async () =>
    (await gates.writers(gate)).filter(({ port }) => apis.includes(processAt(port)));
  const areThere = async (): Promise<boolean> => {
    const writers = await waiting();
    return (gate === "answer_keep" ? await keptBy(writers) : writers.length) >= actions.length;
  };
  await until("all actions wait", areThere, { timeoutMs: 60_000, intervalMs: 20 });
  const writers = await waiting();
  await Promise.all(apis.map((one) => one.kill()));
  if (isLost) await Promise.all(writers.map((writer) => gates.drop(writer)));
  await gates.open(gate);
  await Promise.all(apis.map((one) => one.start()));
}

/** Actions whose responses these writers hold: one statement can store several. */
async function keptBy(writers: readonly { pid: number }[]): Promise<number> {
  const { rows } = await cluster.pool.query<{ count: number }>(
    `select count(*)::int from app.operation
     where response is null and kind = any($1) and caller = any($2)
       and xmax in (select backend_xid from pg_stat_activity where pid = any($3))`,
    [
      actions.map(({ kind }) => kind),
      actions.map(({ agent }) => agent.address),
      writers.map(({ pid }) => pid),
    ],
  );
  return rows[0]?.count ?? 0;
}

/** Kills the process that waits at the gate. */
async function killWriter(gate: GateName, isLost: boolean): Promise<void> {
  const { gates, processAt } = cluster;
  const writer = await gates.reached(gate);
  await processAt(writer.port).kill();
  if (isLost) await gates.drop(writer);
  await gates.open(gate);
}

interface Operation {
  state: string;
  data: unknown;
}

/** The operations of each action, with the result in the first response. */
const operationsOf = (all: Action[]): Promise<Operation[][]> =>
  Promise.all(
    all.map(async ({ kind, agent, escrow }) => {
      const { rows } = await cluster.pool.query<Operation>(
        `select state, (response ->> 'body')::jsonb -> 'data' as data from app.operation
        where kind = $1 and caller = $2 and escrow is not distinct from $3`,
        [kind, agent.address, escrow],
      );
      return rows;
    }),
  );

/** Each action was applied once. Its caller got that status, and with 200 the stored response. */
async function expectOnce(status: 200 | 409): Promise<void> {
  const got = await responses;
  expect(got.map((one) => one.status)).toEqual(actions.map(() => status));
  await expectTruth(scene);
  for (const [at, operations] of (await operationsOf(actions)).entries()) {
    expect(operations).toEqual([{ state: "final", data: expect.anything() }]);
    if (status === 200) expect(got[at]?.data).toEqual(operations[0]?.data);
  }
}
