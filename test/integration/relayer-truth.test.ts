import type { Address } from "@working-contracts/protocol/types";
import { type Hex, parseTransaction, toHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { batch } from "../../src/db/schema.js";
import type { SignerContext } from "../../src/relayer/context.js";
import { readOutboxState } from "../../src/relayer/limits.js";
import type { NewOperation } from "../../src/relayer/operations.js";
import type { OperationRow } from "../../src/relayer/outbox.js";
import { reopenBatches } from "../../src/relayer/results.js";
import { waitingForLock } from "../support/database.js";
import { untilTrue } from "../support/test-chain.js";
import { freezeAt, PRICE, useRelayerNetwork } from "./relayer-network.js";

const MATCHED = 2;

const network = await useRelayerNetwork();

describe("the relayer's beliefs", () => {
  let nextSigner = 0;
  beforeEach(() => {
    nextSigner += 1;
  });

  const signer = () => network.signer(nextSigner);
  const roundsThatFailedOf = (message: string) =>
    network.logs.filter(
      (line) => line.msg === "relayer round failed" && JSON.stringify(line).includes(message),
    ).length;
  const alarms = (name: string) => network.logs.filter(({ alarm }) => alarm === name).length;

  async function stored(): Promise<{ act: NewOperation; row: OperationRow }> {
    const [client] = await network.agents(1);
    const act = await network.creation(client);
    return { act, row: await network.store(act) };
  }

  async function expectApplied(act: NewOperation, row: OperationRow): Promise<void> {
    expect(await network.outcome(row)).toMatchObject({ reason: null, transactionHash: expect.any(String) });
    expect(await network.balanceOf(act.escrow as Address)).toBe(PRICE);
  }

  /** Leaves a batch of `signer()` signed, stored and never broadcast. Its owner is gone for good. */
  async function abandoned(): Promise<{ act: NewOperation; row: OperationRow }> {
    const frozen = freezeAt("after_commit");
    const relayer = network.startRelayer({ signer: signer(), crashPoint: frozen.crashPoint });
    const operation = await stored();
    await untilTrue(frozen.isReached);
    await network.cutLocks();
    // Stopped first: it would otherwise broadcast the batch when it is back.
    const stopped = relayer.stop();
    frozen.crash();
    await stopped;
    return operation;
  }

  it("sends nothing under a lease that lapsed meanwhile, because another signer can judge by now", async () => {
    let laps = 0;
    network.startRelayer({
      signer: signer(),
      crashPoint: async (point) => {
        if (point !== "after_signing" || laps > 0) return;
        laps += 1;
        await network.pool.query("update app.operation set leased_until = now() - interval '1 second'");
      },
    });
    const { act, row } = await stored();

    await expectApplied(act, row);

    expect(laps).toBe(1);
    expect(roundsThatFailedOf("the lease of some operations lapsed")).toBe(1);
    expect(await network.batchesOf(signer())).toHaveLength(1);
  });

  it("releases no operation that another signer has leased since", async () => {
    const { act, row } = await stored();
    const other = network.addressOf(network.signer(nextSigner + 1));
    network.startRelayer({
      signer: signer(),
      intercept: async (method) => {
        if (method !== "eth_simulateV1") return undefined;
        await network.pool.query(
          "update app.operation set signer = $1, leased_until = now() + interval '1 second' where id = $2 and signer <> $1",
          [other, row.id],
        );
        throw new Error("the node is slow");
      },
    });
    await untilTrue(async () => (await network.rowOf(row))?.signer === other);
    await untilTrue(() => roundsThatFailedOf("the node is slow") > 0);
    expect((await network.rowOf(row))?.leasedUntil).not.toBeNull();
    await network.stopRelayers();
    network.startRelayer({ signer: signer() });

    await expectApplied(act, row);
  });

  it("judges an operation on no older state than the one that made it possible", async () => {
    const [client, worker] = await network.agents(2);
    const frozen = freezeAt("before_lease");
    network.startRelayer({ signer: signer(), crashPoint: frozen.crashPoint });
    const decoy = await stored();
    await untilTrue(frozen.isReached);
    nextSigner += 1;
    const other = network.startRelayer({ signer: signer() });
    await expectApplied(decoy.act, decoy.row);
    const escrow = await network.created(client);
    await other.stop();
    const accepted = await network.store(await network.acceptance(worker, escrow));

    frozen.thaw();

    expect(await network.outcome(accepted)).toMatchObject({ reason: null });
    expect(await network.statusOf(escrow)).toBe(MATCHED);
  });

  it("waits with its judgement while its node is behind what another node showed", async () => {
    const [client, worker] = await network.agents(2);
    const other = network.startRelayer({ signer: signer() });
    const old = await network.publicClient.request({
      method: "eth_getBlockByNumber",
      params: ["latest", false],
    } as never);
    const escrow = await network.created(client);
    await other.stop();
    const accepted = await network.store(await network.acceptance(worker, escrow));
    nextSigner += 1;
    let isBehind = true;
    network.startRelayer({
      signer: signer(),
      intercept: async (method) =>
        isBehind && method === "eth_getBlockByNumber" ? { result: old } : undefined,
    });
    await untilTrue(() => network.logs.some(({ msg }) => msg === "the node is behind the outbox"));
    expect(await network.rowOf(accepted)).toMatchObject({ state: "queued", reason: null });

    isBehind = false;

    expect(await network.outcome(accepted)).toMatchObject({ reason: null });
  });

  it("reopens no final batch because its node is behind that batch's block", async () => {
    const relayer = network.startRelayer({ signer: signer() });
    const { act, row } = await stored();
    await expectApplied(act, row);
    await untilTrue(async () => (await network.batchesOf(signer()))[0]?.state === "final");
    await relayer.stop();
    const [done] = await network.batchesOf(signer());
    const old = await network.publicClient.request({
      method: "eth_getBlockByNumber",
      params: [toHex((done?.blockNumber ?? 0n) - 1n), false],
    });
    const seen = network.logs.length;
    const later = await stored();
    let isBehind = true;
    network.startRelayer({
      signer: signer(),
      intercept: async (method, [block]) =>
        isBehind && method === "eth_getBlockByNumber"
          ? { result: block === "latest" ? old : null }
          : undefined,
    });

    const isWaiting = () =>
      network.logs.slice(seen).some(({ msg }) => msg === "the node is behind the outbox");
    await untilTrue(isWaiting);
    expect((await network.batchesOf(signer()))[0]?.state).toBe("final");
    expect(network.logs.slice(seen).filter(({ alarm }) => alarm !== undefined)).toEqual([]);

    isBehind = false;
    await expectApplied(later.act, later.row);
  });

  it("waits while a contract's own block is gone, even if newer ones stand", async () => {
    const [client, another, worker] = await network.agents(3);
    const other = network.startRelayer({ signer: signer(), confirmations: 1000 });
    const escrow = await network.created(client);
    await network.created(another);
    await other.stop();
    const setHash = (hash: string) =>
      network.pool.query("update app.operation set block_hash = $1 where escrow = $2", [hash, escrow]);
    const { rows } = await network.pool.query<{ hash: string }>(
      "select block_hash as hash from app.operation where escrow = $1",
      [escrow],
    );
    await setHash(`0x${"00".repeat(32)}`);
    const accepted = await network.store(await network.acceptance(worker, escrow));
    nextSigner += 1;
    const seen = network.logs.length;
    network.startRelayer({ signer: signer() });
    await untilTrue(() =>
      network.logs.slice(seen).some(({ msg }) => msg === "the node is behind the outbox"),
    );
    expect(await network.rowOf(accepted)).toMatchObject({ state: "queued", reason: null });

    await setHash(rows[0]?.hash as string);

    expect(await network.outcome(accepted)).toMatchObject({ reason: null });
  });

  it("judges on the block that one node names, never on another node's branch", async () => {
    const { publicClient, producer } = network;
    const [client, worker] = await network.agents(2);
    const first = network.startRelayer({ signer: signer(), confirmations: 1000 });
    const escrow = await network.created(client);
    const accepted = await network.acceptance(worker, escrow);
    await first.stop();
    await producer.pause();
    const head = await network.head();
    const { rows } = await network.pool.query<{ block: string }>(
      "select block_number as block from app.operation where escrow = $1",
      [escrow],
    );
    const lost = new Map<unknown, unknown>();
    for (let number = BigInt(rows[0]?.block ?? 0); number <= head; number++) {
      const params = [toHex(number), false];
      lost.set(params[0], await publicClient.request({ method: "eth_getBlockByNumber", params } as never));
    }
    lost.set("latest", lost.get(toHex(head)));
    await network.reorg(lost.size - 1);

    nextSigner += 1;
    const own = network.addressOf(signer());
    let isSplit = true;
    network.startRelayer({
      signer: signer(),
      intercept: async (method, [at]) =>
        isSplit && method === "eth_getBlockByNumber" && lost.has(at) ? { result: lost.get(at) } : undefined,
    });
    const row = await network.store(accepted);
    const isJudged = async (): Promise<boolean> =>
      (await network.rowOf(row))?.state !== "queued" ||
      network.logs.some(({ msg, signer: by }) => msg === "relayer round failed" && by === own);
    await untilTrue(isJudged);
    expect(await network.rowOf(row)).toMatchObject({ state: "queued", reason: null });

    isSplit = false;
    network.startRelayer({ signer: network.signer(nextSigner - 1) });
    producer.resume();
    expect(await network.outcome(row)).toMatchObject({ reason: null });
  });

  it("keeps a rival behind an acceptance that was answered before a reorg undid it", async () => {
    const [client, answered, rival] = await network.agents(3);
    const first = network.startRelayer({ signer: signer() });
    const escrow = await network.created(client);
    await first.stop();
    const taken = await network.store(await network.acceptance(answered, escrow));
    const answer = { status: 200, body: {}, headers: {}, transaction: `0x${"11".repeat(32)}` };
    await network.pool.query(
      `update app.operation set state = 'held', reason = 'WrongStatus', published_at = now(), response = $1,
         retry_at = now() + interval '1 second' where id = $2`,
      [answer, taken.id.toString()],
    );
    const waiting = await network.store(await network.acceptance(rival, escrow));

    network.startRelayer({ signer: signer() });

    expect(await network.outcome(taken)).toMatchObject({ reason: null });
    expect(await network.outcome(waiting)).toMatchObject({ state: "rejected", reason: "WrongStatus" });
  });

  it("reports a failure on chain once its block is deep, judges the operation again first, and stops no rivals", async () => {
    const [client, worker, rival, another = client] = await network.agents(4);
    const first = network.startRelayer({ signer: signer() });
    const escrow = await network.created(client);
    await first.stop();
    const frozen = freezeAt("after_signing");
    nextSigner += 1;
    network.startRelayer({ signer: signer(), confirmations: 4, crashPoint: frozen.crashPoint });
    const late = await network.store(await network.acceptance(worker, escrow));
    await untilTrue(frozen.isReached);
    // An agent can act on chain without the service.
    const from = rival.address;
    const { target, data } = await network.acceptance(rival, escrow);
    await network.testClient.setBalance({ address: from, value: 10n ** 18n });
    await network.testClient.impersonateAccount({ address: from });
    const transaction = { from, to: target, data, gas: "0xf4240" };
    await network.testClient.request({ method: "eth_sendTransaction", params: [transaction] } as never);
    await untilTrue(async () => (await network.statusOf(escrow)) === MATCHED);
    await network.producer.pause();

    frozen.thaw();
    await untilTrue(async () => {
      const hash = (await network.batchesOf(signer()))[0]?.attempts[0]?.hash;
      return hash !== undefined && network.knows(hash);
    });
    await network.testClient.mine({ blocks: 1 });
    await untilTrue(async () => (await network.batchesOf(signer()))[0]?.state === "mined");

    expect(await network.waiter.waitFor(late.id, { timeoutMs: 1000 })).toBeNull();
    const next = await network.store(await network.acceptance(another, escrow));
    expect(await network.outcome(next)).toMatchObject({ state: "rejected", reason: "WrongStatus" });
    expect(await network.rowOf(late)).toMatchObject({ state: "sent", tries: 0 });
    const gasPolicy = { allowance: late.gasLimit, budget: 0, perFee: 0 };
    const more = await readOutboxState(network.db, { caller: late.caller as Address, gasPolicy });
    expect(more.gasRefusal).not.toBeNull();
    network.producer.resume();
    expect(await network.outcome(late)).toMatchObject({ state: "rejected", reason: "WrongStatus", tries: 1 });
  });

  it("broadcasts what a removed signer has signed, and records the result", async () => {
    const { act, row } = await abandoned();
    expect((await network.rowOf(row))?.state).toBe("sent");

    network.startFollower();

    await expectApplied(act, row);
    expect((await network.batchesOf(signer())).map(({ state }) => state)).toEqual([
      expect.stringMatching(/mined|final/),
    ]);
  });

  it("sends a removed signer's final batch again if a reorg removes it, and holds up no other signer", async () => {
    const relayer = network.startRelayer({ signer: signer() });
    const { act, row } = await stored();
    await expectApplied(act, row);
    await untilTrue(async () => (await network.batchesOf(signer()))[0]?.state === "final");
    await network.producer.pause();
    await relayer.stop();
    const { blockNumber } = await network.outcome(row);
    await network.reorg(Number((await network.head()) - (blockNumber ?? 0n)) + 1);
    expect(await network.balanceOf(act.escrow as Address)).toBe(0n);
    network.producer.resume();

    network.startFollower();

    await untilTrue(async () => (await network.balanceOf(act.escrow as Address)) === PRICE);
    await expectApplied(act, row);
    nextSigner += 1;
    network.startRelayer({ signer: signer() });
    const other = await stored();
    await expectApplied(other.act, other.row);
  });

  it("raises an alarm if a removed signer's transaction is too cheap", async () => {
    const { act, row } = await abandoned();
    await network.producer.pause();
    await network.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 11n });
    network.producer.resume();
    network.startFollower();

    await untilTrue(() => alarms("signer_missing") > 0);
    await network.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n });
    await expectApplied(act, row);
  });

  it("leaves a live signer's transactions to that signer", async () => {
    network.startFollower();
    network.startRelayer({ signer: signer() });
    const { act, row } = await stored();
    await expectApplied(act, row);
    await untilTrue(async () => (await network.batchesOf(signer()))[0]?.state === "final");
    expect((await network.batchesOf(signer()))[0]?.epoch).toBe(1n);
  });

  it("does not take a missing receipt as proof that a transaction is lost", async () => {
    let isLying = true;
    let asked = 0;
    network.startRelayer({
      signer: signer(),
      intercept: async (method) => {
        if (!isLying || method !== "eth_getTransactionReceipt") return undefined;
        asked += 1;
        return { result: null };
      },
    });
    const { act, row } = await stored();
    await untilTrue(async () => (await network.batchesOf(signer()))[0]?.state === "quarantined");
    await network.testClient.mine({ blocks: 20 });
    const before = asked;
    await untilTrue(() => asked > before + 2);
    expect((await network.rowOf(row))?.state).toBe("sent");

    isLying = false;

    await expectApplied(act, row);
    expect(await network.batchesOf(signer())).toHaveLength(1);
  });

  it("looks again after few blocks if a node shows a transaction's nonce before its receipt", async () => {
    const looks: bigint[] = [];
    let isMining = false;
    network.startRelayer({
      signer: signer(),
      intercept: async (method) => {
        if (method === "eth_getTransactionCount" && isMining) {
          isMining = false;
          return { result: "0x1" };
        }
        if (method !== "eth_getTransactionReceipt") return undefined;
        looks.push(await network.publicClient.getBlockNumber({ cacheTime: 0 }));
        isMining = looks.length === 1;
        return isMining ? { result: null } : undefined;
      },
    });
    const { act, row } = await stored();
    await expectApplied(act, row);
    const [first = 0n, second = 0n] = looks;
    expect(Number(second - first)).toBeLessThan(10);
  });

  it("rechecks a batch whose block left the chain, even if a newer one stands", async () => {
    const confirmations = 200;
    network.startRelayer({ signer: signer(), confirmations });
    const first = await stored();
    await expectApplied(first.act, first.row);
    const second = await stored();
    await expectApplied(second.act, second.row);
    const [older] = await network.batchesOf(signer());
    const abandonedBlock = `0x${"ab".repeat(32)}`;
    for (const table of ["batch", "operation"]) {
      await network.pool.query(`update app.${table} set block_hash = $1 where block_hash = $2`, [
        abandonedBlock,
        older?.blockHash,
      ]);
    }

    await network.testClient.mine({ blocks: confirmations });
    await untilTrue(async () => (await network.batchesOf(signer())).every(({ state }) => state === "final"));

    expect((await network.batchesOf(signer()))[0]?.blockHash).toBe(older?.blockHash);
    expect((await network.rowOf(first.row))?.blockHash).toBe(older?.blockHash);
  });

  it("ends deep enough batches behind more than it checks in one round", async () => {
    const [deep, newer, confirmations] = [50, 250, 100];
    await network.producer.pause();
    const places = [];
    for (const count of [deep, newer]) {
      const { number, hash } = await network.publicClient.getBlock();
      places.push(
        ...Array<Partial<typeof batch.$inferInsert>>(count).fill({ blockNumber: number, blockHash: hash }),
      );
      await network.testClient.mine({ blocks: count === deep ? confirmations : 1 });
    }
    await network.testClient.setNonce({ address: signer().address, nonce: places.length });
    await network.db.insert(batch).values(
      places.map((place, accountNonce) => ({
        ...place,
        signer: network.addressOf(signer()),
        epoch: 1n,
        accountNonce,
        attempts: [],
        state: "mined" as const,
      })),
    );
    const states = async () => (await network.batchesOf(signer())).map(({ state }) => state);

    network.startRelayer({ signer: signer(), confirmations });

    const expected = [...Array(deep).fill("final"), ...Array(newer).fill("mined")];
    await untilTrue(async () => (await states()).includes("final"));
    expect(await states()).toEqual(expected);
    await network.testClient.mine({ blocks: confirmations });
    network.producer.resume();
    await untilTrue(async () => (await states()).every((state) => state === "final"));
  });

  it("records nothing beside a block that its node does not show", async () => {
    let hidden: string | undefined;
    network.startRelayer({
      signer: signer(),
      confirmations: 1000,
      intercept: async (method, [block]) =>
        method === "eth_getBlockByNumber" && block === hidden ? { result: null } : undefined,
    });
    const first = await stored();
    await expectApplied(first.act, first.row);
    hidden = toHex((await network.rowOf(first.row))?.blockNumber ?? 0n);
    const second = await stored();
    // The relayer sends nothing until the block that it misses is as deep as it looks.
    await network.testClient.mine({ blocks: 64 });
    const secondHash = async () => (await network.batchesOf(signer()))[1]?.attempts[0]?.hash as Hex;
    await untilTrue(async () => (await secondHash()) !== undefined);
    const { blockNumber } = await network.publicClient.waitForTransactionReceipt({
      hash: await secondHash(),
    });
    await untilTrue(async () => (await network.head()) > blockNumber + 5n);
    expect((await network.rowOf(second.row))?.state).toBe("sent");

    hidden = undefined;

    await expectApplied(second.act, second.row);
  });

  it("fills an account nonce that a reorg freed from a foreign transaction", async () => {
    const [client] = await network.agents(1);
    const before = await network.head();
    const foreign = await network.signForeign(signer(), 0);
    const hash = await network.publicClient.sendRawTransaction({ serializedTransaction: foreign });
    await network.publicClient.waitForTransactionReceipt({ hash });
    network.startRelayer({ signer: signer(), confirmations: 1000 });
    const act = await network.creation(client);
    const row = await network.store(act);
    await expectApplied(act, row);
    await network.producer.pause();
    const depth = Number((await network.head()) - before);
    await network.reorg(depth);
    expect(await network.balanceOf(act.escrow as Address)).toBe(0n);
    network.producer.resume();

    await untilTrue(async () => (await network.balanceOf(act.escrow as Address)) === PRICE);

    await untilTrue(async () => (await network.batchesOf(signer())).every(({ state }) => state === "mined"));
    expect(
      (await network.batchesOf(signer())).map(({ accountNonce, operationIds }) => [
        accountNonce,
        operationIds,
      ]),
    ).toEqual([
      [1, [row.id]],
      [0, []],
    ]);
    expect(alarms("foreign_nonce")).toBeGreaterThan(0);
  });

  it("replaces only with fees that the signer can pay for, and otherwise resends the older transaction", async () => {
    const { act, row } = await stored();
    await network.producer.pause();
    network.startRelayer({ signer: signer(), options: { maxInFlight: 1 } });
    await untilTrue(async () => (await network.batchesOf(signer())).length === 1);
    const [sent] = await network.batchesOf(signer());
    const hash = sent?.attempts[0]?.hash as Hex;
    const { gas, maxFeePerGas = 0n } = parseTransaction(sent?.attempts[0]?.raw as Hex);
    await network.testClient.setBalance({ address: signer().address, value: (gas ?? 0n) * maxFeePerGas });
    // It falls by an eighth each block: so much above the fee that no late turn of the loop lets the transaction in.
    const raise = () => network.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: 4n * maxFeePerGas });
    await raise();
    let isDear = true;
    const raising = (async () => {
      while (isDear) {
        // A busy machine loses a connection now and then; the next turn sets it again.
        await raise().catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    network.producer.resume();
    await untilTrue(() => alarms("signer_without_gas") > 0);
    await network.testClient.dropTransaction({ hash });
    isDear = false;
    await raising;
    await network.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: maxFeePerGas / 4n });

    await expectApplied(act, row);

    expect((await network.batchesOf(signer()))[0]?.attempts).toHaveLength(1);
  });

  it("sends no batch that its balance does not cover beside those in flight", async () => {
    const first = await stored();
    const second = await network.creation((await network.agents(1))[0]);
    await network.producer.pause();
    let asked = 0;
    network.startRelayer({
      signer: signer(),
      intercept: async (method) => void (method === "eth_getBalance" && asked++),
    });
    await untilTrue(async () => (await network.batchesOf(signer())).length === 1);
    const [sent] = await network.batchesOf(signer());
    const { gas = 0n, maxFeePerGas = 0n } = parseTransaction(sent?.attempts[0]?.raw as Hex);
    await network.testClient.setBalance({
      address: signer().address,
      value: (gas * maxFeePerGas * 3n) / 2n,
    });
    const alarmsBefore = alarms("signer_without_gas");
    asked = 0;
    const row = await network.store(second);
    // Its balance was not enough, or the operation is in a batch.
    await untilTrue(async () => asked > 0 && (await network.rowOf(row))?.leasedUntil === null);
    expect(await network.batchesOf(signer())).toHaveLength(1);
    expect(alarms("signer_without_gas")).toBe(alarmsBefore);

    network.producer.resume();

    await expectApplied(first.act, first.row);
    await expectApplied(second, row);
  });

  it("finds out that a batch which it had abandoned was applied after a reorg", async () => {
    const [client] = await network.agents(1);
    await network.producer.pause();
    const act = await network.creation(client);
    const row = await network.store(act);
    network.startRelayer({ signer: signer(), options: { maxInFlight: 1 } });
    const sent = async () => (await network.batchesOf(signer()))[0]?.attempts[0]?.hash as Address;
    await untilTrue(async () => (await sent()) !== undefined);
    const hash = await sent();
    await untilTrue(() => network.knows(hash));
    await network.testClient.dropTransaction({ hash });
    const foreign = await network.signForeign(signer(), 0);
    await network.publicClient.sendRawTransaction({ serializedTransaction: foreign });
    const before = await network.head();
    network.producer.resume();
    await expectApplied(act, row);
    expect((await network.batchesOf(signer())).map(({ state }) => state)).toEqual([
      "superseded",
      expect.stringMatching(/mined|final/),
    ]);

    await network.producer.pause();
    const depth = Number((await network.head()) - before);
    await network.reorg(depth);
    network.producer.resume();

    await untilTrue(async () =>
      (await network.batchesOf(signer())).every(({ state }) => state === "mined" || state === "final"),
    );
    const [first] = await network.batchesOf(signer());
    expect(await network.rowOf(row)).toMatchObject({
      reason: null,
      batchId: first?.id,
      transactionHash: hash,
    });
    expect(await network.balanceOf(act.escrow as Address)).toBe(PRICE);
  });

  it("knows an operation's dependencies even if their block is lost at the very moment of the choice", async () => {
    const { db, pool, producer } = network;
    const [client, worker, other] = await network.agents(3);
    const owner = network.addressOf(signer());
    const first = network.startRelayer({ signer: signer(), confirmations: 1000 });
    const escrow = await network.created(client);
    const accepted = await network.outcome(await network.store(await network.acceptance(worker, escrow)));
    await first.stop();
    nextSigner += 1;
    await pool.query(`create function wait_at_lease() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(1); return new; end $$`);
    await pool.query(`create trigger wait_at_lease before update on app.operation for each row
      when (old.leased_until is null and new.leased_until is not null) execute function wait_at_lease()`);
    const gate = await pool.connect();
    try {
      await gate.query("select pg_advisory_lock(1)");
      const rival = await network.store(await network.acceptance(other, escrow));
      network.startRelayer({ signer: signer() });
      // Until it is chosen.
      await untilTrue(async () => (await waitingForLock(pool)) === 1);
      await producer.pause();
      await network.reorg(Number((await network.head()) - (accepted.blockNumber ?? 0n)) + 1);
      // As the first signer's owner does when it sees the block removed.
      const { rows } = await pool.query("select epoch from app.signer_epoch where signer = $1", [owner]);
      const context = { db, signer: owner, epoch: BigInt(rows[0].epoch) };
      await reopenBatches(context as SignerContext, [accepted.batchId as bigint]);
      await gate.query("select pg_advisory_unlock(1)");
      const isJudged = async (): Promise<boolean> =>
        (await network.rowOf(rival))?.state !== "queued" ||
        network.logs.some(
          ({ msg, signer: by }) =>
            msg === "the node is behind the outbox" && by === network.addressOf(signer()),
        );
      await untilTrue(isJudged);
      expect((await network.rowOf(rival))?.state).toBe("queued");

      network.startRelayer({ signer: network.signer(nextSigner - 1) });
      producer.resume();
      expect(await network.outcome(rival)).toMatchObject({ state: "rejected", reason: "WrongStatus" });
      expect(await network.rowOf(accepted)).toMatchObject({ reason: null, batchId: accepted.batchId });
    } finally {
      gate.release(true);
      await pool.query("drop function wait_at_lease cascade");
    }
  });
});
