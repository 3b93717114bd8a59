/**
 * Rows 22 to 26, 28, 29, 32, 34: payments with which others interfere, that arrive all at once, or that arrive too late.
 * Guards: the unique authorization; simulation before anything is published; one competing payment for an escrow at a
 * time; `notAfter`; the gas check of the Relay; the queue's limit, checked before a payment is quoted.
 */

import { testUsdAbi } from "@working-contracts/protocol/abi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { type Address, encodeFunctionData, type Hex } from "viem";
import { expect, it } from "vitest";
import { createDatabase } from "../../src/db/client.js";
import { MAX_QUEUED } from "../../src/relayer/limits.js";
import { acceptOperation, type NewOperation } from "../../src/relayer/operations.js";
import { enqueue } from "../../src/relayer/outbox.js";
import { encodeBatch } from "../../src/relayer/transaction.js";
import { until } from "../../tools/local/processes.js";
import type { Agent } from "../support/agent.js";
import { cancellationOf, setSignerCall, transferData } from "../support/chain.js";
import type { Authorization } from "../support/payment.js";
import { accountOf } from "./support/cluster.js";
import type { Payment } from "./support/customers.js";
import { expectTruth, startStory, useScene } from "./support/story.js";

const GOOD_ONES = 100;
const scene = await useScene("payments");
const { cluster, customers, clients, workers } = scene;

const isUsed = ({ authorization: { from, nonce } }: Payment) =>
  cluster.publicClient.readContract({
    address: cluster.deployment.asset.address,
    abi: testUsdAbi,
    functionName: "authorizationState",
    args: [from, nonce],
  });

/** A creation that is stored and not yet sent: the relayers are frozen. */
async function waitingCreation(client: Agent, changes?: Partial<Authorization>): Promise<Payment> {
  for (const relayer of cluster.relayers) relayer.freeze();
  const payment = await customers.signedCreation(client, changes);
  expect((await customers.send(payment))?.status).toBe(503);
  return payment;
}

it("row 22: a loser's stake that a stranger transfers in the winner's own transaction is refunded", async () => {
  const { deployment } = cluster;
  const created = await customers.create(clients[0]);
  const escrow = created.data.id as Address;
  const [winner, loser] = workers;
  const losing = await customers.signedAcceptance(loser, escrow);
  const winning = await customers.signedAcceptance(winner, escrow);
  const before = await customers.usdOf(loser.address);
  const { authorization } = winning;
  const accepting = acceptOperation({ deployment, escrow, caller: winner.address, authorization });
  const calls = [
    { target: deployment.asset.address, gasLimit: 150_000, data: transferData(losing.authorization) },
    { target: accepting.target as Address, gasLimit: 250_000, data: accepting.data as Hex },
  ];
  const { relay } = deployment;
  const owner = cluster.owner.account.address;
  await cluster.ownerCall(setSignerCall(relay, owner, true));
  await cluster.ownerCall({ to: relay, data: encodeBatch(calls) });
  await cluster.ownerCall(setSignerCall(relay, owner, false));
  expect([await isUsed(losing), await isUsed(winning)]).toEqual([true, true]);
  expect(await customers.usdOf(loser.address)).toBeLessThan(before);

  expect((await customers.settle(losing)).status).toBe(409);

  const isBack = async (): Promise<boolean> => (await customers.usdOf(loser.address)) === before;
  await until("the stake is refunded", isBack, { timeoutMs: 60_000 });
  // Both moved without a call to the service.
  for (const payment of [losing, winning]) customers.forget(payment);
  scene.allowed.ignoredEscrows.add(escrow);
});

it("row 23: a cancelled authorization pays for nothing, and a nonce pays once", async () => {
  const client = clients[1];
  const cancelled = await customers.signedCreation(client);
  const { nonce } = cancelled.authorization;
  await cluster.ownerCall(await cancellationOf(cluster.deployment, client.account, nonce));
  expect((await customers.settle(cancelled)).status).toBe(402);

  const first = await customers.signedCreation(client);
  const second = await customers.signedCreation(client, {
    nonce: first.authorization.nonce,
  });
  const answers = await Promise.all([customers.settle(first), customers.settle(second)]);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
});

it("row 24: gas and returndata bombs cost a hundred other operations nothing", async () => {
  // Harmless while the base fee is zero, as in a simulation (BASEFEE ISZERO). On chain it loops, or reverts with huge
  // data.
  const bombs: [Address, Hex][] = [
    [`0x${"b0".repeat(20)}`, "0x48156009575b6005565b00"],
    [`0x${"b1".repeat(20)}`, "0x4815600c57620190006000fd5b00"],
  ];
  for (const relayer of cluster.relayers) relayer.freeze();
  const database = createDatabase(cluster.postgres.url, { maxConnections: 1 });
  const ids: bigint[] = [];
  const act = { kind: "claim-deferred", escrow: null, caller: null, signed: false } as const;
  for (const [target, bytecode] of bombs) {
    await cluster.testClient.setCode({ address: target, bytecode });
    const bomb: NewOperation = { ...act, target, data: "0x", gasLimit: 100_000, onceKey: `bomb:${target}` };
    ids.push((await enqueue(database.db, bomb)).operation.id);
  }
  // Cheap operations, so that a hundred fit into the bombs' batch.
  const spenders = Array.from(
    { length: GOOD_ONES },
    (_, index) => accountOf(`spender ${index}`).account.address,
  );
  for (const spender of spenders) {
    const data = encodeFunctionData({ abi: testUsdAbi, functionName: "approve", args: [spender, 1n] });
    const target = cluster.deployment.asset.address;
    await enqueue(database.db, { ...act, target, data, gasLimit: 60_000, onceKey: `good:${spender}` });
  }
  await database.pool.end();
  const { rows: before } = await cluster.pool.query("select id from app.operation");
  // Each agent can have five attempts at once.
  const crowd = await customers.join(GOOD_ONES / 5);
  const creating = crowd.flatMap((client) => Array.from({ length: 5 }, () => customers.create(client)));
  const arrived = async (): Promise<boolean> =>
    (await cluster.pool.query("select id from app.operation")).rows.length >= before.length + GOOD_ONES;
  await until("the others are queued", arrived, { timeoutMs: 60_000 });
  for (const relayer of cluster.relayers) relayer.thaw();

  expect(new Set((await Promise.all(creating)).map(({ status }) => status))).toEqual(new Set([200]));
  await expectTruth(scene);
  const { rows } = await cluster.pool.query(
    `select state, transaction_hash is not null as published, (length(reason_data) - 2) / 2 as bytes
      from app.operation where id = any($1) order by id`,
    [ids.map(String)],
  );
  for (const id of ids) {
    const { rows: batches } = await cluster.pool.query(
      "select 1 from app.batch where $1 = any(operation_ids) and cardinality(operation_ids) > $2",
      [id.toString(), GOOD_ONES],
    );
    expect(batches).not.toEqual([]);
  }
  for (const spender of spenders) {
    const allowed = await cluster.publicClient.readContract({
      address: cluster.deployment.asset.address,
      abi: testUsdAbi,
      functionName: "allowance",
      args: [cluster.deployment.relay, spender],
    });
    expect(allowed).toBe(1n);
  }
  // Of the huge revert data only these bytes are copied and paid for.
  expect(rows).toEqual([
    { state: "rejected", published: true, bytes: 0 },
    { state: "rejected", published: true, bytes: 256 },
  ]);
});

it("row 25: too little gas reverts the whole batch and fails no operation", async () => {
  const payment = await waitingCreation(clients[2]);
  const [stored] = await customers.operationsOf(payment);
  if (stored === undefined) throw new Error("not stored");
  // The owner allows itself, which uses no nonce of a signer.
  const owner = cluster.owner.account.address;
  const { relay } = cluster.deployment;
  await cluster.ownerCall(setSignerCall(relay, owner, true));
  const hash = await cluster.owner.sendTransaction({
    to: relay,
    gas: BigInt(Math.floor(stored.gas_limit * 0.9)),
    data: encodeBatch([{ target: stored.target, gasLimit: stored.gas_limit, data: stored.data }]),
  });
  const { status } = await cluster.publicClient.waitForTransactionReceipt({ hash, pollingInterval: 50 });
  expect(status).toBe("reverted");
  expect(await isUsed(payment)).toBe(false);
  await cluster.ownerCall(setSignerCall(relay, owner, false));
  for (const relayer of cluster.relayers) relayer.thaw();
  expect((await customers.settle(payment)).status).toBe(200);
});

it("row 26: an authorization that expires in the queue is reported as expired, and its money is untouched", async () => {
  const validBefore = BigInt((await cluster.chainTime()) + 120);
  const payment = await waitingCreation(clients[0], { validBefore });
  await cluster.moveTime(300);
  for (const relayer of cluster.relayers) relayer.thaw();
  expect((await customers.settle(payment)).status).toBe(402);
  expect(await isUsed(payment)).toBe(false);
  const expired = { state: "rejected", reason: "Expired", published_at: null };
  expect(await customers.operationsOf(payment)).toMatchObject([expired]);
});

it("row 26: an authorization that expires before its block is made is reported as expired, not as a false signature", async () => {
  const validBefore = BigInt((await cluster.chainTime()) + 120);
  const payment = await customers.signedCreation(clients[0], { validBefore });
  await cluster.blocks.pause();
  expect((await customers.send(payment))?.status).toBe(503);
  const isPublished = async (): Promise<boolean> => {
    const { pending } = await cluster.testClient.getTxpoolStatus();
    return pending > 0;
  };
  await until("the payment is in the pool", isPublished, { timeoutMs: 30_000 });
  await cluster.moveTime(300);
  cluster.blocks.resume();
  expect((await customers.settle(payment)).status).toBe(402);
  expect(await isUsed(payment)).toBe(false);
  const expired = { state: "rejected", reason: "Expired", tries: 1, published_at: expect.any(Date) };
  expect(await customers.operationsOf(payment)).toMatchObject([expired]);
});

it("row 28: identical requests to two processes are one operation with one response", async () => {
  const payment = await customers.signedCreation(clients[1]);
  const answers = await Promise.all(Array.from({ length: 10 }, () => customers.settle(payment)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(await customers.operationsOf(payment)).toHaveLength(1);
});

it("row 29: of 32 agents who race for one tender over two processes, exactly one is matched", async () => {
  const agents = await customers.join(32);
  const created = await customers.create(clients[2]);
  const { id } = created.data;
  const stakes = await Promise.all(agents.map((agent) => customers.signedAcceptance(agent, id)));
  const answers = await Promise.all(stakes.map((stake) => customers.settle(stake)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(31);
  // No loser's signature ever left the service.
  const { rows } = await cluster.pool.query(
    "select id from app.operation where escrow = $1 and kind = 'accept' and published_at is not null",
    [id],
  );
  expect(rows).toHaveLength(1);
});

it("row 32: with the queue full a call is rejected before a payment is asked for or used", async () => {
  const client = clients[1];
  const payment = await customers.signedCreation(client);
  await cluster.pool.query(
    `insert into app.operation (kind, target, data, gas_limit, state, retry_at)
     select 'claim-deferred', '0x', '0x', 1, 'held', now() + interval '1 hour' from generate_series(1, $1)`,
    [MAX_QUEUED],
  );
  const post = async () => customers.attempt(client, "/v1/contracts", await customers.draft());
  for (let attempt = 0; attempt < LIMITS.pendingAttempts; attempt++) {
    const unpaid = await post();
    expect([unpaid?.status, unpaid?.headers.get("payment-required")]).toEqual([503, null]);
    expect(Number(unpaid?.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  const paid = await customers.send(payment);
  expect([paid?.status, paid?.error?.code]).toEqual([503, "unavailable"]);
  expect(await isUsed(payment)).toBe(false);
  await cluster.pool.query("delete from app.operation where target = '0x' and data = '0x'");
  expect((await customers.settle(payment)).status).toBe(200);
  // None of the refused drafts counts as an unpaid attempt.
  expect((await post())?.status).toBe(402);
});

it("row 34: a deadline that passes before inclusion leaves the authorization unused", async () => {
  const worker = workers[0];
  const created = await customers.create(clients[0]);
  const late = await customers.signedAcceptance(worker, created.data.id, {
    validBefore: BigInt((await cluster.chainTime()) + 100_000),
  });
  await cluster.blocks.pause();
  expect((await customers.send(late))?.status).toBe(503);
  // The next block comes after the match deadline.
  await cluster.moveTime(3700);
  cluster.blocks.resume();
  expect((await customers.settle(late)).status).toBe(409);
  expect(await isUsed(late)).toBe(false);
  scene.allowed.ignoredEscrows.add(created.data.id);
  await (await startStory(scene)).done;
});
