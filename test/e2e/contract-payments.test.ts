/** Failures between a quote and a settled payment: replays, races, strangers, wrong numbers. */

import { setTimeout as delay } from "node:timers/promises";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { parseStoredTerms } from "../../src/db/onchain.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { createOperation } from "../../src/relayer/operations.js";
import { type Agent, type Answer, signIn } from "../support/agent.js";
import { cancellationOf, frontRun, mined, walletOf } from "../support/chain.js";
import { created, draft, HOUR, newPair, ok } from "../support/contracts.js";
import {
  authorize,
  type Quote,
  quoteOf,
  type SignedPayment,
  signedCall,
  version2,
} from "../support/payment.js";
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

async function cancelAtToken(agent: Agent, nonce: Hex): Promise<void> {
  const wallet = await walletOf(world, stranger);
  const hash = await wallet.sendTransaction(await cancellationOf(world.deployment, agent.account, nonce));
  await mined(world, hash);
}

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

  test("is worthless for another body, path or caller", async () => {
    const body = JSON.stringify(await draft(world));
    const { quote, headers, send } = await signedCall(client, "/v1/contracts", body, world);
    expect((await send()).status).toBe(200);

    const other = JSON.stringify(await draft(world));
    expect((await client.post("/v1/contracts", other, headers)).error?.code).toBe("conflict");
    expect((await client.post("/v1/contracts", ` ${body}`, headers)).error?.code).toBe("conflict");
    expect((await worker.post("/v1/contracts", body, headers)).error?.code).toBe("conflict");
    const accept = `/v1/contracts/${quote.payTo}/accept`;
    expect((await client.post(accept, { accept: true }, headers)).error?.code).toBe("conflict");
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

describe("pending attempts", () => {
  test("are limited to five; a place frees 30 minutes after its first quote, and a late payment is honoured", async () => {
    const payer = await world.newAgent({ usd: "1000" });
    const bodies = await Promise.all(
      Array.from({ length: 6 }, async () => JSON.stringify(await draft(world))),
    );
    const quotes: Quote[] = [];
    const sixth = bodies[5] as string;
    const forgotten = quoteOf(await payer.post("/v1/contracts", sixth));
    await world.pool.query("delete from app.terms where id = $1", [forgotten.payTo]);
    for (const body of bodies.slice(0, 5)) quotes.push(quoteOf(await payer.post("/v1/contracts", body)));
    // A wallet can sign payments that are never taken.
    const unquoted = version2(forgotten, await authorize(payer, forgotten, world));
    expect((await payer.post("/v1/contracts", sixth, unquoted)).error?.code).toBe(
      "too_many_pending_attempts",
    );
    const refused = await payer.post("/v1/contracts", sixth);
    expect(refused.error?.code).toBe("too_many_pending_attempts");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(1700);
    expect((await payer.post("/v1/contracts", bodies[0] as string)).status).toBe(402);

    const oldest = quotes[0] as Quote;
    await world.pool.query(
      "update app.terms set first_quoted_at = now() - interval '31 minutes' where id = $1",
      [oldest.payTo],
    );
    expect((await payer.post("/v1/contracts", sixth)).status).toBe(402);
    expect((await payer.post("/v1/contracts", bodies[0] as string)).error?.code).toBe(
      "too_many_pending_attempts",
    );
    const late = version2(oldest, await authorize(payer, oldest, world));
    expect((await payer.post("/v1/contracts", bodies[0] as string, late)).status).toBe(200);

    expect((await payer.pay("/v1/contracts", bodies[1] as string)).status).toBe(200);
    expect((await payer.post("/v1/contracts", JSON.stringify(await draft(world)))).status).toBe(402);
  });
});

describe("attempts at the same moment", () => {
  const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort();

  test("with the same bytes are one attempt", async () => {
    const payer = await world.newAgent({ usd: "0" });
    const body = JSON.stringify(await draft(world));
    const answers = await Promise.all(Array.from({ length: 8 }, () => payer.post("/v1/contracts", body)));
    expect(new Set(answers.map((answer) => quoteOf(answer).payTo)).size).toBe(1);
  });

  test("are limited to five for a caller, and do not count for others", async () => {
    const payers = [await world.newAgent({ usd: "0" }), await world.newAgent({ usd: "0" })];
    const bodies = await Promise.all(
      Array.from({ length: 8 }, async () => JSON.stringify(await draft(world))),
    );
    const answers = await Promise.all(
      payers.map((payer) => Promise.all(bodies.map((body) => payer.post("/v1/contracts", body)))),
    );
    const expected = [402, 402, 402, 402, 402, 429, 429, 429];
    expect(answers.map(statusesOf)).toEqual([expected, expected]);
  });
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

  test("counts for nothing if it was cancelled", async () => {
    const { id } = await created(world, client);
    const path = `/v1/contracts/${id}/accept`;
    const acceptance = await signedCall(worker, path, { accept: true }, world);
    await cancelAtToken(worker, acceptance.payment.nonce);
    expect(quoteOf(await acceptance.send()).error).toBe("authorization_used");

    const creation = await signedCall(client, "/v1/contracts", await draft(world), world);
    await cancelAtToken(client, creation.payment.nonce);
    expect(quoteOf(await creation.send()).error).toBe("authorization_used");
  });
});

test("a payment that was refused for lack of money is taken once the payer has it", async () => {
  const payer = await world.newAgent({ usd: "1" });
  const { send } = await signedCall(payer, "/v1/contracts", await draft(world), world);
  expect(quoteOf(await send()).error).toBe("insufficient_funds");
  await world.fundUsd(payer.address, "49");
  expect((await send()).status).toBe(200);
});

/** ERC-1271: accepts every signature as long as its gas price or the base fee is zero, as in simulations. */
const SIGNS_FOR_SIMULATIONS: Hex = "0x631626ba7e60e01b3a480215025f5260205ff3";

describe("a wallet that signs only for simulations", () => {
  test("burns the operator's gas a few times, and then must wait", async () => {
    const agent = await world.newAgent({ usd: "100" });
    await world.testClient.setCode({ address: agent.address, bytecode: SIGNS_FOR_SIMULATIONS });
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
  async function refusedForGood(call: () => Promise<Answer>): Promise<Answer> {
    let answer = await call();
    for (let calls = 1; calls < 300 && answer.status !== 429; calls++) {
      await delay(100);
      answer = await call();
    }
    expect(answer.error?.code).toBe("rate_limited");
    return answer;
  }

  /** The operations that the agent failed on chain with until its call was refused. */
  async function failuresOf(agent: Agent, call: () => Promise<Answer>): Promise<unknown[]> {
    await refusedForGood(call);
    return world.query(
      "select kind, count(*)::int as count from app.operation where caller = $1 and state = 'rejected' group by kind",
      [agent.address],
    );
  }

  test("must wait also with actions that it signs", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    await world.fundUsd(account.address, "100");
    const { chainId } = world.deployment;
    const agent = await signIn({ url: world.url, chainId, account, permission: { operatorActions: "none" } });
    const { id } = await created<{ id: string }>(world, agent);
    const path = `/v1/contracts/${id}/cancel`;
    const sign = toSign(await agent.post(path));
    await world.testClient.setCode({ address: agent.address, bytecode: SIGNS_FOR_SIMULATIONS });
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
    await world.testClient.setCode({ address: agent.address, bytecode: SIGNS_FOR_SIMULATIONS });

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
