import { sql } from "drizzle-orm";
import type { PrivateKeyAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { ADVISORY_LOCKS } from "../../src/db/client.js";
import { INDEX_CHANGED } from "../../src/db/onchain.js";
import { acceptOperation, refundDirectTransferOperation } from "../../src/relayer/operations.js";
import { enqueue, type OperationRow } from "../../src/relayer/outbox.js";
import { cancellationOf } from "../support/chain.js";
import { untilTrue } from "../support/test-chain.js";
import { PRICE, STAKE, useRelayerNetwork } from "./relayer-network.js";

const MATCHED = 2;

/** Whether an operation becomes final in the round that finds its receipt depends on that round's head. */
const fate = ({ state, reason }: OperationRow) => (state === "rejected" ? `rejected ${reason}` : "applied");

const network = await useRelayerNetwork();

describe("the relayer's queue", () => {
  it("applies operations while the log is written and webhooks are matched, however long that takes", async () => {
    const others = await network.pool.connect();
    try {
      await others.query("insert into app.event_log (id, last_position) values (1, 0)");
      await others.query("begin");
      await others.query("select from app.event_log for update");
      await others.query("select pg_advisory_xact_lock($1)", [ADVISORY_LOCKS.webhookMatching]);
      network.startRelayer();
      const [client] = await network.agents(1);
      const row = await network.store(await network.creation(client));
      expect(fate(await network.outcome(row))).toBe("applied");
      // Still held: a connection that is silent for too long loses its locks.
      await others.query("commit");
    } finally {
      others.release(true);
    }
  });

  it("sends one batch behind another although account nonces get one more digit", async () => {
    const clients = await network.agents(3);
    const signer = network.signer(31);
    const address = network.addressOf(signer);
    await network.testClient.setNonce({ address, nonce: 9 });
    await network.producer.pause();
    const rows = [];
    for (const client of clients) rows.push(await network.store(await network.creation(client)));
    network.startRelayer({ signer, options: { maxBatchSize: 1 } });

    await untilTrue(async () => (await network.batchesOf(signer)).length === clients.length);

    network.producer.resume();
    expect((await Promise.all(rows.map((row) => network.outcome(row)))).map(fate)).toEqual(
      rows.map(() => "applied"),
    );
    expect((await network.batchesOf(signer)).map(({ accountNonce }) => accountNonce)).toEqual([9, 10, 11]);
  });

  it("finds a receipt as soon as the index has its block, however rarely it polls", async () => {
    const [client] = await network.agents(1);
    const row = await network.store(await network.creation(client));
    network.startRelayer({ options: { pollIntervalMs: 600_000 } });
    await untilTrue(async () => {
      const batches = await network.batchesOf(network.signer(0));
      const { batchId } = (await network.rowOf(row)) ?? {};
      const hash = batches.find(({ id }) => id === batchId)?.attempts[0]?.hash;
      if (hash === undefined) return false;
      return network.publicClient.getTransactionReceipt({ hash }).then(Boolean, () => false);
    });
    await network.db.execute(sql`select pg_notify(${INDEX_CHANGED}, '')`);
    expect(fate(await network.outcome(row))).toBe("applied");
  });

  it("rejects a poisoned operation and executes the others of its batch", async () => {
    const clients = await network.agents(5);
    const acts = await Promise.all(clients.map((client) => network.creation(client)));
    const poor = await network.creation(network.signer(50));
    const underpaid = await network.creation(clients[0], { value: PRICE - 1n });
    const codeless = await network.acceptance(clients[1], network.addressOf(network.signer(60)));
    const all = [...acts.slice(0, 2), poor, underpaid, codeless, ...acts.slice(2)];
    const rows = [];
    for (const act of all) rows.push(await network.store(act));

    network.startRelayer();
    const outcomes = await Promise.all(rows.map((row) => network.outcome(row)));

    expect(outcomes.map(fate)).toEqual([
      "applied",
      "applied",
      "rejected PaymentFailed",
      "rejected PaymentFailed",
      "rejected Reverted",
      "applied",
      "applied",
      "applied",
    ]);
    expect(outcomes[2]?.batchId).toBeNull();
  });

  it("rejects new operations when the queue is full, and still knows the stored ones", async () => {
    const [one, two, three] = await network.agents(3);
    const acts = await Promise.all([network.creation(one), network.creation(two), network.creation(three)]);
    const full = {
      code: "unavailable",
      options: expect.objectContaining({ retryable: true, retryAfterSeconds: 10 }),
    };
    const first = await enqueue(network.db, acts[0], { maxQueued: 2 });
    const second = await enqueue(network.db, acts[1], { maxQueued: 2 });

    await expect(enqueue(network.db, acts[2], { maxQueued: 2 })).rejects.toMatchObject(full);
    expect((await enqueue(network.db, acts[0], { maxQueued: 2 })).existing).toBe(true);

    network.startRelayer();
    await Promise.all([network.outcome(first.operation), network.outcome(second.operation)]);
  });

  it("ends operations that expired in the queue, even while fees are beyond its cap", async () => {
    const [client] = await network.agents(1);
    network.startRelayer({ options: { maxFeePerGas: 1n } });
    const act = await network.creation(client, { validBefore: (await network.chainTime()) + 100 });
    const row = await network.store(act);
    await untilTrue(() => network.logs.some(({ alarm }) => alarm === "fee_cap_reached"));
    await network.testClient.increaseTime({ seconds: 200 });

    expect(await network.outcome(row)).toMatchObject({ state: "rejected", reason: "Expired", batchId: null });
  });

  it("holds the refund of a direct transfer while the token is paused, and executes it afterwards", async () => {
    const [client, payer] = await network.agents(2);
    network.startRelayer();
    const escrow = await network.created(client);
    const authorization = await network.authorize(payer, escrow, STAKE);
    const caller = network.addressOf(payer);
    const before = await network.balanceOf(caller);
    await network.broadcast(authorization);
    await network.setPaused(true);
    const refund = refundDirectTransferOperation({ escrow, caller, amount: STAKE, authorization });
    const row = await network.store(refund);
    await untilTrue(async () => (await network.rowOf(row))?.state !== "queued");
    expect(await network.rowOf(row)).toMatchObject({ state: "held", reason: "TokenPaused" });

    await network.setPaused(false);

    expect(fate(await network.outcome(row))).toBe("applied");
    expect(await network.balanceOf(caller)).toBe(before);
  });

  it("holds payments while the token is paused, and applies them afterwards", async () => {
    const clients = await network.agents(2);
    await network.setPaused(true);
    network.startRelayer();
    const rows = [];
    for (const client of clients) rows.push(await network.store(await network.creation(client)));
    for (const row of rows) {
      await untilTrue(async () => (await network.rowOf(row))?.state === "held");
      expect(await network.rowOf(row)).toMatchObject({ reason: "TokenPaused", batchId: null });
    }
    await network.stopRelayers();
    await network.pool.query("update app.operation set tries = 9, retry_at = now() where state = 'held'");

    await network.setPaused(false);
    network.startRelayer();

    const outcomes = await Promise.all(rows.map((row) => network.outcome(row)));
    expect(outcomes.map(fate)).toEqual(["applied", "applied"]);
    // However long the pause was, neither is suspected, so they share a batch.
    expect(outcomes[0]?.batchId).toBe(outcomes[1]?.batchId);
  });

  it("does not use the money of someone else's authorization for an action", async () => {
    const [client, payer, thief] = await network.agents(3);
    const { deployment } = network;
    network.startRelayer();
    const escrow = await network.created(client);
    const transferred = await network.authorize(payer, escrow, STAKE);
    await network.broadcast(transferred);
    const cancelled = await network.authorize(thief, escrow, STAKE);
    await network.ownerCall(await cancellationOf(deployment, thief, cancelled.nonce));

    const accept = (agent: PrivateKeyAccount, authorization: typeof transferred, seen: boolean) =>
      network.store(
        acceptOperation({
          deployment,
          escrow,
          caller: network.addressOf(agent),
          authorization,
          directTransfer: seen,
        }),
      );
    expect(fate(await network.outcome(await accept(thief, cancelled, false)))).toBe(
      "rejected AuthorizationUsed",
    );
    expect(fate(await network.outcome(await accept(payer, transferred, false)))).toBe(
      "rejected AuthorizationUsed",
    );
    expect(fate(await network.outcome(await accept(payer, transferred, true)))).toBe("applied");
    expect(await network.statusOf(escrow)).toBe(MATCHED);
  });

  it("notifies waiters by polling when notifications do not arrive", async () => {
    const [client] = await network.agents(1);
    const row = await network.store(await network.creation(client));
    await network.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'notifications' and datname = current_database()",
    );

    const waits = Array.from({ length: 500 }, () => network.waiter.waitFor(row.id, { timeoutMs: 60_000 }));
    const tooShort = network.waiter.waitFor(row.id, { timeoutMs: 1 });
    network.startRelayer();

    expect(await tooShort).toBeNull();
    for (const settled of await Promise.all(waits)) expect(settled?.transactionHash).not.toBeNull();
  });
});
