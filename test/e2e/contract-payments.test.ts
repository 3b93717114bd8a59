/** Failures between a quote and a settled payment: replays, races, strangers, wrong numbers. */

import { setTimeout as delay } from "node:timers/promises";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { parseStoredTerms } from "../../src/db/onchain.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { createOperation } from "../../src/relayer/operations.js";
import type { Agent, ApiResponse } from "../support/agent.js";
import { frontRun, signForSimulations, walletOf } from "../support/chain.js";
import { created, draft, HOUR, newPair, ok } from "../support/contracts.js";
import { authorize, quoteOf, type SignedPayment, signedCall, version2 } from "../support/payment.js";
import { signedHeaders, toSign } from "../support/signed-actions.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);
const stranger = await world.newAgent();

const token = () => ({ address: world.deployment.asset.address, abi: testUsdAbi }) as const;

const isUsed = (payment: SignedPayment) =>
  world.publicClient.readContract({
    ...token(),
    functionName: "authorizationState",
    args: [payment.from, payment.nonce],
  });

describe("a settled payment", () => {
  test("returns the same bytes to a repetition, and marks them", async () => {
    const body = await draft(world);
    const { quote, payment, send } = await signedCall<ContractView>(client, "/v1/contracts", body, world);
    const first = await send();
    expect(first.status).toBe(200);
    expect(first.data.id).toBe(quote.payTo);
    expect(first.headers.get("idempotent-replay")).toBeNull();

    await client.post(`/v1/contracts/${quote.payTo}/cancel`);
    const again = await send();
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replay")).toBe("true");
    expect(again.headers.get("payment-response")).toBe(first.headers.get("payment-response"));

    // As if a reorg had put the payment into another transaction since.
    await world.pool.query("update app.operation set transaction_hash = $1 where nonce = $2", [
      `0x${"ab".repeat(32)}`,
      payment.nonce,
    ]);
    const later = await send();
    expect(later.headers.get("payment-response")).toBe(first.headers.get("payment-response"));
  });
});

describe("the same bytes", () => {
  test("can be paid again if a reorg removed the contract for good", async () => {
    const body = JSON.stringify(await draft(world));
    const { payTo } = quoteOf(await client.post("/v1/contracts", body));
    // The state after a response whose contract a reorg removed and whose operation was then rejected.
    await world.pool.query("update app.terms set opened_at = now() where id = $1", [payTo]);
    const created = await client.pay<ContractView>("/v1/contracts", body);
    expect([created.status, created.data.id]).toEqual([200, payTo]);
  });
});

test("attempts at the same moment are limited to five for a caller, and do not count for others", async () => {
  const payers = [await world.newAgent({ usd: "0" }), await world.newAgent({ usd: "0" })];
  const bodies = await Promise.all(Array.from({ length: 8 }, async () => JSON.stringify(await draft(world))));
  const answers = await Promise.all(
    payers.map((payer) => Promise.all(bodies.map((body) => payer.post("/v1/contracts", body)))),
  );
  const expected = [402, 402, 402, 402, 402, 429, 429, 429];
  const statuses = answers.map((own) => own.map(({ status }) => status).sort());
  expect(statuses).toEqual([expected, expected]);
});

describe("an authorization that a stranger submits to the token first", () => {
  test("still creates the contract if the stranger opened the escrow with it", async () => {
    const body = JSON.stringify(await draft(world));
    const { quote, payment, send } = await signedCall<ContractView>(client, "/v1/contracts", body, world);
    const { data } = await client.get<TermsView>(`/v1/contracts/${quote.payTo}/terms`);
    const { target, data: calldata } = createOperation({
      deployment: world.deployment,
      escrow: quote.payTo,
      caller: client.address,
      terms: parseStoredTerms(data.escrowTerms),
      authorization: payment,
    });
    const hash = await (await walletOf(world, stranger)).sendTransaction({ to: target, data: calldata });
    await world.publicClient.waitForTransactionReceipt({ hash });
    const created = await send();
    expect(created.status).toBe(200);
    expect(created.data).toMatchObject({ id: quote.payTo, status: "created" });
    const receipt = JSON.parse(atob(created.headers.get("payment-response") ?? ""));
    expect(receipt).toMatchObject({ success: true, transaction: hash });
    expect((await client.post("/v1/contracts", body)).error?.code).toBe("duplicate_contract");
  });
});

test("a payment that was refused for lack of money is taken once the payer has it", async () => {
  const payer = await world.newAgent({ usd: "1" });
  const { send } = await signedCall(payer, "/v1/contracts", await draft(world), world);
  expect(quoteOf(await send()).error).toBe("insufficient_funds");
  await world.fundUsd(payer.address, "49");
  expect((await send()).status).toBe(200);
});

describe("a wallet that signs only for simulations", () => {
  test("burns the operator's gas a few times, and then must wait", async () => {
    const agent = await world.newAgent({ usd: "100" });
    await signForSimulations(world, agent);
    const { send } = await signedCall(agent, "/v1/contracts", await draft(world), world);
    const refusal = await refusedForGood(async () => {
      const answer = await send();
      expect([503, 429]).toContain(answer.status);
      return answer;
    });
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(3_000);
    const { rows } = await world.pool.query(
      "select reason, count(*)::int as count from app.operation where caller = $1 group by reason",
      [agent.address],
    );
    expect(rows).toEqual([{ reason: "PaymentFailed", count: 3 }]);
    expect(await world.usdOf(agent.address)).toBe(100_000_000n);
  });

  /** Repeats a call until it is refused with 429. */
  async function refusedForGood(call: () => Promise<ApiResponse>): Promise<ApiResponse> {
    let answer = await call();
    for (let calls = 1; calls < 300 && answer.status !== 429; calls++) {
      await delay(100);
      answer = await call();
    }
    expect(answer.error?.code).toBe("rate_limited");
    return answer;
  }

  /** The operations that the agent failed on chain with until its call was refused. */
  async function failuresOf(agent: Agent, call: () => Promise<ApiResponse>): Promise<unknown[]> {
    await refusedForGood(call);
    return world.query(
      "select kind, count(*)::int as count from app.operation where caller = $1 and state = 'rejected' group by kind",
      [agent.address],
    );
  }

  test("must wait also with actions that it signs", async () => {
    const agent = await world.newAgent({ usd: "100", permission: { operatorActions: "none" } });
    const { id } = await created<{ id: string }>(world, agent);
    const path = `/v1/contracts/${id}/cancel`;
    const sign = toSign(await agent.post(path));
    await signForSimulations(world, agent);
    // Its own key's signature would do without the wallet's code.
    const headers = await signedHeaders(stranger, sign);
    const cancel = () => agent.post(path, undefined, headers);
    expect(await failuresOf(agent, cancel)).toEqual([{ kind: "cancel", count: 3 }]);
  });

  test("must wait also for the refund of a direct transfer, for which it is charged itself", async () => {
    const [client, agent] = [await world.newAgent({ usd: "100" }), await world.newAgent({ usd: "10" })];
    const { id } = await created<{ id: Hex }>(world, client);
    const path = `/v1/contracts/${id}/accept`;
    const { payment, send } = await signedCall(agent, path, { accept: true }, world);
    await frontRun(world, stranger, payment);
    ok(await (await world.newAgent({ usd: "10" })).pay(path, { accept: true }));
    const charged = async () =>
      world.query<{ used: string }>("select used from app.gas_account where address = $1", [client.address]);
    const before = await charged();
    await signForSimulations(world, agent);

    expect(await failuresOf(agent, send)).toEqual([{ kind: "refund-direct-transfer", count: 3 }]);
    expect(await world.usdOf(id)).toBe(55_000_000n);
    expect(await charged()).toEqual(before);
  });
});

// Last, because it moves the chain's time.
describe("a deadline that passes between quote and payment", () => {
  test("leaves the authorization unused", async () => {
    const client = await world.newAgent({ usd: "1000" });
    const { id } = await created(world, client);
    const path = `/v1/contracts/${id}/accept`;
    const quote = quoteOf(await worker.post(path, { accept: true }));
    const body = JSON.stringify(await draft(world));
    const createQuote = quoteOf(await client.post("/v1/contracts", body));
    const stranded = await signedCall(client, "/v1/contracts", await draft(world), world);
    await frontRun(world, stranger, stranded.payment);
    await world.increaseTime(HOUR);

    const payment = await authorize(worker, quote, world);
    await expect.poll(async () => (await worker.post(path, { accept: true })).error?.code).toBe("conflict");
    expect((await worker.post(path, { accept: true }, version2(quote, payment))).error?.code).toBe(
      "conflict",
    );
    const createPayment = await authorize(client, createQuote, world);
    const late = await client.post("/v1/contracts", body, version2(createQuote, createPayment));
    expect(late.error?.code).toBe("conflict");
    expect(await isUsed(payment)).toBe(false);
    expect(await isUsed(createPayment)).toBe(false);

    // Money that a stranger transferred to the escrow by then is refunded through it.
    const before = await world.usdOf(client.address);
    expect((await stranded.send()).error?.code).toBe("conflict");
    await expect.poll(() => world.usdOf(stranded.quote.payTo)).toBe(0n);
    expect(await world.usdOf(client.address)).toBeGreaterThanOrEqual(before + 50_000_000n);
  });
});
