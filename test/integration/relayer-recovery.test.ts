import type { Address } from "@working-contracts/protocol/types";
import { MethodNotFoundRpcError, parseTransaction } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import type { NewOperation } from "../../src/relayer/operations.js";
import type { OperationRow } from "../../src/relayer/outbox.js";
import { setSignerCall } from "../support/chain.js";
import { untilTrue } from "../support/test-chain.js";
import { freezeAt, type Intercept, PRICE, useRelayerNetwork } from "./relayer-network.js";

const CREATED = 1;

const withoutSimulateV1: Intercept = async (method) => {
  if (method === "eth_simulateV1") throw new MethodNotFoundRpcError(new Error("method not found"));
};

const network = await useRelayerNetwork();

describe("the relayer under faults", () => {
  let nextSigner = 0;
  beforeEach(() => {
    nextSigner += 1;
  });

  const signer = () => network.signer(nextSigner);

  async function creations(count: number): Promise<{ acts: NewOperation[]; rows: OperationRow[] }> {
    return stored(await network.agents(count));
  }

  async function stored(
    clients: PrivateKeyAccount[],
  ): Promise<{ acts: NewOperation[]; rows: OperationRow[] }> {
    const acts = await Promise.all(clients.map((client) => network.creation(client)));
    const rows = [];
    for (const act of acts) rows.push(await network.store(act));
    return { acts, rows };
  }

  /** Whether the Relay accepts the signer. */
  const allow = (allowed: boolean) => setSignerCall(network.deployment.relay, signer().address, allowed);

  async function expectAppliedOnce(acts: NewOperation[], rows: OperationRow[]): Promise<void> {
    for (const [index, act] of acts.entries()) {
      const outcome = await network.outcome(rows[index] as OperationRow);
      expect(outcome).toMatchObject({ reason: null, transactionHash: expect.any(String) });
      expect(await network.statusOf(act.escrow as Address)).toBe(CREATED);
      expect(await network.balanceOf(act.escrow as Address)).toBe(PRICE);
    }
  }

  const crashPoints = [
    "before_lease",
    "after_simulation",
    "after_commit",
    "after_broadcast",
    "after_receipt",
    "after_mined",
  ];
  it.each(crashPoints)("applies operations exactly once when its owner is lost %s", async (moment) => {
    nextSigner = 1;
    const frozen = freezeAt(moment);
    network.startRelayer({ signer: signer(), crashPoint: frozen.crashPoint });
    const { acts, rows } = await creations(5);
    await untilTrue(frozen.isReached);
    await network.cutLocks();

    network.startRelayer({ signer: signer() });
    await expectAppliedOnce(acts, rows);

    frozen.thaw();
    await untilTrue(
      async () =>
        (await network.publicClient.getTransactionCount(signer())) >=
        (await network.batchesOf(signer())).length,
    );
    const batches = await network.batchesOf(signer());
    expect(batches.map(({ accountNonce }) => accountNonce)).toEqual(batches.map((_, index) => index));
  });

  it("lets a zombie write nothing after its lock is lost", async () => {
    const frozen = freezeAt("after_signing");
    const zombie = network.startRelayer({ signer: signer(), crashPoint: frozen.crashPoint });
    const { acts, rows } = await creations(3);
    await untilTrue(frozen.isReached);
    await network.cutLocks();
    network.startRelayer({ signer: signer() });
    await expectAppliedOnce(acts, rows);
    const before = await network.batchesOf(signer());

    frozen.thaw();
    await untilTrue(() => network.logs.some(({ msg }) => msg === "relayer lost its signer"));

    expect(await network.batchesOf(signer())).toEqual(before);
    expect(before).toHaveLength(1);
    await zombie.stop();
  });

  it("shares the queue between two signers without doing anything twice", async () => {
    const other = signer();
    nextSigner += 1;
    network.startRelayer({ signer: signer(), options: { maxBatchSize: 3 } });
    network.startRelayer({ signer: other, options: { maxBatchSize: 3 } });
    const { acts, rows } = await creations(40);
    await expectAppliedOnce(acts, rows);
    for (const one of [signer(), other]) {
      const sizes = (await network.batchesOf(one)).map(({ operationIds }) => operationIds.length);
      expect(sizes).not.toEqual([]);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(3);
    }
  });

  it("replaces a transaction that became too cheap, with the same nonce and calls and a quarter more of both fees", async () => {
    let cheap: string | undefined;
    let isRejected = false;
    // As by a node with other thresholds.
    const intercept: Intercept = async (method, [raw]) => {
      if (method !== "eth_sendRawTransaction" || cheap === undefined || raw === cheap || isRejected) return;
      isRejected = true;
      throw new Error("replacement transaction underpriced");
    };
    await network.producer.pause();
    network.startRelayer({ signer: signer(), options: { maxInFlight: 1 }, intercept });
    const { acts, rows } = await prepared(2);
    await untilTrue(async () => (await network.batchesOf(signer())).length === 1);
    cheap = (await network.batchesOf(signer()))[0]?.attempts[0]?.raw;
    const base = (await network.publicClient.getBlock()).baseFeePerGas as bigint;
    await network.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: base * 10n + 10n ** 10n });

    network.producer.resume();

    await expectAppliedOnce(acts, rows);
    expect(isRejected).toBe(true);
    const [batch] = await network.batchesOf(signer());
    const transactions = (batch?.attempts ?? []).map(({ raw }) => parseTransaction(raw));
    expect(transactions.length).toBeGreaterThan(1);
    expect(batch?.transactionHash).not.toBe(batch?.attempts[0]?.hash);
    for (const [index, { nonce, data, to, ...fees }] of transactions.entries()) {
      const previous = transactions[index - 1];
      if (previous === undefined) continue;
      expect({ nonce, data, to }).toEqual({ nonce: previous.nonce, data: previous.data, to: previous.to });
      for (const field of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
        expect((fees[field] ?? 0n) * 100n).toBeGreaterThanOrEqual((previous[field] ?? 0n) * 125n);
    }
  });

  it("follows its operations through a reorg", async () => {
    // More than the blocks that are made before the reorg.
    network.startRelayer({ signer: signer(), confirmations: 1_000 });
    const { acts, rows } = await creations(4);
    await expectAppliedOnce(acts, rows);
    await network.producer.pause();
    const [before] = await network.batchesOf(signer());
    expect(before?.state).toBe("mined");
    await network.reorg(Number((await network.head()) - (before?.blockNumber ?? 0n)) + 1);
    expect(await network.publicClient.getTransactionCount(signer())).toBe(0);

    network.producer.resume();

    await untilTrue(async () => {
      const [batch] = await network.batchesOf(signer());
      return batch?.state === "mined" && batch.blockHash !== before?.blockHash;
    });
    await expectAppliedOnce(acts, rows);
    const [after] = await network.batchesOf(signer());
    expect(after?.transactionHash).toBe(before?.transactionHash);
    expect((await network.rowOf(rows[0] as OperationRow))?.blockHash).toBe(after?.blockHash);
  });

  it("requeues its operations once a foreign transaction has used their nonce for good", async () => {
    const { acts, rows } = await prepared(2);
    // Only now: it could take the first operation before the second is there.
    network.startRelayer({ signer: signer(), confirmations: 3, options: { maxInFlight: 1 } });
    await untilTrue(async () => (await network.batchesOf(signer())).length === 1);
    const [batch] = await network.batchesOf(signer());
    const hash = batch?.attempts[0]?.hash as Address;
    await untilTrue(() => network.knows(hash));
    await network.testClient.dropTransaction({ hash });
    const raw = await network.signForeign(signer(), 0);
    await network.publicClient.sendRawTransaction({ serializedTransaction: raw });

    network.producer.resume();

    await expectAppliedOnce(acts, rows);
    expect(network.logs.filter(({ alarm }) => alarm === "foreign_nonce")).toHaveLength(1);
    expect((await network.batchesOf(signer())).map(({ state }) => state)).toEqual([
      "superseded",
      expect.any(String),
    ]);
  });

  it("loses no operation when several batches in flight revert", async () => {
    const clients = await network.agents(3);
    await network.producer.pause();
    network.startRelayer({ signer: signer(), intercept: withoutSimulateV1 });
    const sent = [];
    for (const client of clients) {
      sent.push(await stored([client]));
      await untilTrue(async () => (await network.batchesOf(signer())).length === sent.length);
    }
    const [last] = (await network.batchesOf(signer())).slice(-1);
    await untilTrue(() => network.knows(last?.attempts[0]?.hash as Address));
    // Ahead of them in the same block, by its tip.
    const refused = network.ownerCall(allow(false));
    await untilTrue(async () => (await network.testClient.getTxpoolStatus()).pending === 4);

    network.producer.resume();

    await refused;
    await untilTrue(async () =>
      (await network.batchesOf(signer())).every(({ state }) => state === "reverted"),
    );
    await untilTrue(() => network.logs.some(({ alarm }) => alarm === "signer_not_allowed"));
    await network.ownerCall(allow(true));
    await expectAppliedOnce(
      sent.flatMap(({ acts }) => acts),
      sent.flatMap(({ rows }) => rows),
    );
  });

  it("loses no operation when a batch reverts as a whole", async () => {
    const { acts, rows } = await creations(2);
    const frozen = freezeAt("after_signing");
    // Without eth_simulateV1 no simulation shows that the Relay refuses the signer.
    const options = { maxInFlight: 1 };
    const { crashPoint } = frozen;
    network.startRelayer({ signer: signer(), options, crashPoint, intercept: withoutSimulateV1 });
    await untilTrue(frozen.isReached);
    await network.ownerCall(allow(false));
    const later = await creations(1);
    frozen.thaw();
    await untilTrue(async () => (await network.batchesOf(signer()))[0]?.state === "reverted");
    expect(await network.rowOf(rows[0] as OperationRow)).toMatchObject({
      state: "held",
      reason: "BatchReverted",
      tries: 1,
    });
    await untilTrue(() => network.logs.some(({ alarm }) => alarm === "signer_not_allowed"));
    // Another one can be pending before: a node can serve a block before its receipts.
    const reverted = network.logs.findLastIndex(({ alarm }) => alarm === "batch_reverted");
    expect(network.logs.slice(reverted).map(({ msg }) => msg)).not.toContain("batch sent");

    await network.ownerCall(allow(true));

    await expectAppliedOnce([...acts, ...later.acts], [...rows, ...later.rows]);
  });

  it("judges call by call if the node has no eth_simulateV1", async () => {
    network.startRelayer({ signer: signer(), intercept: withoutSimulateV1 });
    const { acts, rows } = await creations(3);
    const poor = await network.store(await network.creation(network.signer(51)));
    const [worker] = await network.agents(1);
    const codeless = await network.acceptance(worker, network.addressOf(network.signer(61)));
    const missing = await network.store(codeless);

    await expectAppliedOnce(acts, rows);
    expect(await network.outcome(poor)).toMatchObject({
      state: "rejected",
      reason: "PaymentFailed",
      batchId: null,
    });
    expect(await network.outcome(missing)).toMatchObject({
      state: "rejected",
      reason: "Reverted",
      batchId: null,
    });
  });

  it("marks an operation final once its block is as deep as configured, and no earlier", async () => {
    const confirmations = 4;
    network.startRelayer({ signer: signer(), confirmations });
    const { rows } = await prepared(1);
    const row = rows[0] as OperationRow;
    const stateOf = async () => (await network.rowOf(row))?.state;
    await untilTrue(async () => (await stateOf()) === "sent");
    const [sent] = await network.batchesOf(signer());
    await untilTrue(() => network.knows(sent?.attempts[0]?.hash as Address));
    for (let depth = 1; depth < confirmations; depth++) {
      await network.testClient.mine({ blocks: 1 });
      await untilTrue(async () => (await stateOf()) === "mined");
      // A few rounds of the relayer, so that an early verdict would show.
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(await stateOf(), `at depth ${depth}`).toBe("mined");
    }
    await network.testClient.mine({ blocks: 1 });
    await untilTrue(async () => (await stateOf()) === "final");
  });

  it("counts all of this for Prometheus, and logs no signature", async () => {
    const { text } = await network.metrics.expose();
    const name = "working_contracts_relayer";
    for (const event of ["sent", "replaced", "mined", "final", "reverted", "reorganized", "quarantined"]) {
      expect(text).toMatch(new RegExp(`^${name}_batches_total\\{event="${event}"\\} [1-9]`, "m"));
    }
    for (const outcome of ["mined", "rejected", "requeued"]) {
      expect(text).toMatch(new RegExp(`^${name}_operations_total\\{outcome="${outcome}"\\} [1-9]`, "m"));
    }
    for (const alarm of ["foreign_nonce", "batch_reverted"]) {
      expect(text).toMatch(new RegExp(`^${name}_alarms_total\\{name="${alarm}"\\} [1-9]`, "m"));
    }
    expect(text).toMatch(new RegExp(`^${name}_batch_operations_bucket\\{le="20"\\} [1-9]`, "m"));
    expect(text).toMatch(new RegExp(`^${name}_operation_seconds_count [1-9]`, "m"));
    const address = network.addressOf(network.signer(1));
    for (const gauge of ["max_fee_per_gas_wei", "gas_paid_wei_total", "signer_balance_wei"]) {
      expect(text).toMatch(new RegExp(`^${name}_${gauge}\\{signer="${address}"\\} [1-9]`, "m"));
    }
    expect(network.logs.length).toBeGreaterThan(50);
    expect(JSON.stringify(network.logs)).not.toMatch(/0x[0-9a-f]{128}/i);
  });

  /** Stores the operations while no block is made. The agents' money is minted first. */
  async function prepared(count: number): Promise<{ acts: NewOperation[]; rows: OperationRow[] }> {
    network.producer.resume();
    const clients = await network.agents(count);
    await network.producer.pause();
    return stored(clients);
  }
});
