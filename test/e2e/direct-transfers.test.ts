/** Direct transfers by strangers to the escrow. Each is used if it did what was asked, and otherwise refunded. */

import { concat, type Hex, hashTypedData, padHex, type TypedDataDefinition } from "viem";
import { expect, onTestFinished, test } from "vitest";
import type { Deps } from "../../src/deps.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { findOpening, refundDirectTransfer } from "../../src/payments/direct-transfer.js";
import type { Agent } from "../support/agent.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import {
  cancellationOf,
  frontRun,
  frontRunTogether,
  mined,
  type Opening,
  openFromBalance,
  sendUsd,
  setParameters,
  walletOf,
} from "../support/chain.js";
import { created, draft, ok } from "../support/contracts.js";
import { holdOperations } from "../support/held-operations.js";
import { authorize, quoteOf, type SignedPayment, signedCall, version2 } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const PRICE = 50_000_000n;
const STAKE = 2_500_000n;
const REFUNDED = expect.stringContaining("refunded");

const world = await useWorld();
const stranger = await world.newAgent();

async function openWithTermsOf(id: Hex, client: Agent): Promise<void> {
  const { data } = await client.get<TermsView>(`/v1/contracts/${id}/terms`);
  await openFromBalance(world, stranger, data);
}

test("a contract that a stranger funded and opened in two transactions is its caller's success", async () => {
  const client = await world.newAgent({ usd: "100" });
  const body = await draft(world);
  const { quote, payment, send } = await signedCall<ContractView>(client, "/v1/contracts", body, world);
  const moved = await frontRun(world, stranger, payment);
  await openWithTermsOf(quote.payTo, client);

  for (let i = 0; i < 2; i++) {
    const created = await send();
    expect(created.status).toBe(200);
    expect(created.data).toMatchObject({ id: quote.payTo, status: "created", escrowedFunds: "50.0" });
    expect(JSON.parse(atob(created.headers.get("payment-response") ?? ""))).toMatchObject({
      success: true,
      transaction: moved,
      amount: PRICE.toString(),
    });
  }
  expect(await world.usdOf(quote.payTo)).toBe(PRICE);
});

/** A client's two payments of one new contract, and the call that carries one of them. */
async function paidTwice() {
  const client = await world.newAgent({ usd: "100" });
  const body = JSON.stringify(await draft(world));
  const quote = quoteOf(await client.post("/v1/contracts", body));
  const [first, second] = [await authorize(client, quote, world), await authorize(client, quote, world)];
  const post = (payment: SignedPayment) =>
    client.post<ContractView>("/v1/contracts", body, version2(quote, payment));
  return { client, escrow: quote.payTo, body, first, second, post };
}

test.each(["the service", "a stranger"])(
  "of two payments that a stranger transferred before %s opened the escrow, one is the deposit and one is refunded",
  async (opener) => {
    const { client, escrow, first, second, post } = await paidTwice();
    const { data } = await client.get<TermsView>(`/v1/contracts/${escrow}/terms`);
    if (opener === "a stranger") {
      await frontRun(world, stranger, first);
      await frontRun(world, stranger, second);
      await openFromBalance(world, stranger, data);
    } else {
      await frontRunTogether(world, stranger, [first, second]);
    }

    expect((await post(first)).status).toBe(200);
    expect((await post(second)).error).toMatchObject({ code: "duplicate_contract", hint: REFUNDED });
    await expect.poll(() => world.usdOf(client.address)).toBe(PRICE);
    expect((await post(second)).error).toMatchObject({ code: "duplicate_contract" });
    await world.indexed();
    expect((await post(first)).status).toBe(200);
    expect((await post(second)).error).toMatchObject({ code: "duplicate_contract" });
    expect(await world.usdOf(escrow)).toBe(PRICE);
  },
);

/** A stranger's transactions with two payments of a contract and its opening. */
type Transactions = (
  first: SignedPayment,
  second: SignedPayment,
  opening: Opening,
) => (SignedPayment | Opening)[][];

test.each<[string, Transactions]>([
  ["before the opening, in its transaction", (first, second, opening) => [[first, second, opening]]],
  [
    "before and behind the opening, in its transaction",
    (first, second, opening) => [[first, opening, second]],
  ],
  [
    "by the opening and behind it, in its transaction",
    (first, second, opening) => [[{ ...opening, deposit: first }, second]],
  ],
  [
    "before the opening's transaction, and behind the opening in it",
    (first, second, opening) => [[first], [opening, second]],
  ],
])(
  "of two payments that a stranger moves %s, one is the deposit and one is refunded, whichever is sent first",
  async (_name, transactions) => {
    for (const isReversed of [false, true]) {
      const { client, escrow, first, second, post } = await paidTwice();
      const { data } = await client.get<TermsView>(`/v1/contracts/${escrow}/terms`);
      for (const steps of transactions(first, second, data)) await frontRunTogether(world, stranger, steps);
      await world.indexed();
      expect(await world.usdOf(escrow)).toBe(2n * PRICE);

      const posts = isReversed ? [second, first] : [first, second];
      for (let i = 0; i < 2; i++) {
        const responses = [];
        for (const payment of posts) responses.push(await post(payment));
        const refused = responses.filter(({ status }) => status !== 200);
        expect(refused).toMatchObject([{ error: { code: "duplicate_contract", hint: REFUNDED } }]);
        await expect.poll(() => world.usdOf(client.address)).toBe(PRICE);
        await world.indexed();
      }
      expect(await world.usdOf(escrow)).toBe(PRICE);
    }
  },
);

test.each(["the service", "a stranger"])(
  "a second payment that reaches the escrow after its opening by %s is refunded, and not taken for the deposit",
  async (opener) => {
    const { client, escrow, first, second, post } = await paidTwice();
    await frontRun(world, stranger, first);
    if (opener === "a stranger") await openWithTermsOf(escrow, client);
    await world.indexed();
    expect((await post(first)).status).toBe(200);

    await frontRun(world, stranger, second);
    expect((await post(second)).error).toMatchObject({ code: "duplicate_contract", hint: REFUNDED });
    await expect.poll(() => world.usdOf(client.address)).toBe(PRICE);
    expect((await post(first)).status).toBe(200);
    expect(await world.usdOf(escrow)).toBe(PRICE);
  },
);

test("a payment whose money opened the contract for another one's call is refunded if that one's money comes as well", async () => {
  const { client, escrow, first, second, post } = await paidTwice();
  await frontRun(world, stranger, second);
  expect((await post(first)).status).toBe(200);
  const { error } = await post(second);
  expect(error).toMatchObject({ code: "duplicate_contract", details: { contractId: escrow } });
  expect(error).not.toMatchObject({ hint: REFUNDED });
  expect(await world.usdOf(client.address)).toBe(PRICE);

  await frontRun(world, stranger, first);
  await world.indexed();
  expect((await post(second)).error).toMatchObject({ code: "duplicate_contract", hint: REFUNDED });
  await expect.poll(() => world.usdOf(client.address)).toBe(PRICE);
  expect(await world.usdOf(escrow)).toBe(PRICE);
  expect((await post(first)).status).toBe(200);
});

test("a payment whose money is about to open the contract for another one's call is not said to be refunded", async () => {
  const { client, escrow, body, first, second, post } = await paidTwice();
  const creation = await holdOperations(world, { escrow, kind: "create" });
  const creating = post(first);
  await creation.arrived();
  await frontRun(world, stranger, second);
  const { db, deployment, publicClient } = world;
  const deps = { db, deployment, publicClient, config: { gasPolicy: {} } } as unknown as Deps;
  const call = { name: "create", caller: client.address, rawBody: new TextEncoder().encode(body) };
  expect(await refundDirectTransfer(deps, second as never, call)).toBe(false);
  await creation.release();
  expect((await creating).status).toBe(200);
  expect([await world.usdOf(client.address), await world.usdOf(escrow)]).toEqual([PRICE, PRICE]);
});

test("a payment whose money opened the contract is not refused while another one's call is pending, and succeeds if that one fails", async () => {
  const { client, escrow, first, second, post } = await paidTwice();
  const creation = await holdOperations(world, { escrow, kind: "create" });
  const creating = post(first);
  await creation.arrived();
  await frontRun(world, stranger, second);
  await openWithTermsOf(escrow, client);
  expect(await post(second)).toMatchObject({ status: 503, error: { code: "settlement_pending" } });

  await creation.release();
  await creating;
  await expect.poll(async () => (await post(second)).status).toBe(200);
  expect((await post(first)).error).toMatchObject({ code: "duplicate_contract" });
  expect([await world.usdOf(client.address), await world.usdOf(escrow)]).toEqual([PRICE, PRICE]);
});

test("a second payment is not taken for the deposit if the node does not show its money", async () => {
  const { escrow, first, second, post } = await paidTwice();
  await frontRun(world, stranger, first);
  expect((await post(first)).status).toBe(200);
  await frontRun(world, stranger, second);
  await world.indexed();
  const { db, deployment, publicClient } = world;
  const behind = {
    ...publicClient,
    readContract: async (call: { functionName: string }) =>
      call.functionName === "balanceOf" ? PRICE : publicClient.readContract(call as never),
  };
  const config = { confirmations: 1_000_000, settlementWaitMs: 0 };
  const deps = { db, deployment, publicClient: behind, config } as unknown as Deps;
  const judged = findOpening(deps, second as never);
  await expect(judged).rejects.toMatchObject({ code: "settlement_pending" });
  expect(await world.usdOf(escrow)).toBe(2n * PRICE);
});

test("a payment at the escrow whose operation loses the race is refunded", async () => {
  const client = await world.newAgent({ usd: "100" });
  const [winner, loser] = [await world.newAgent({ usd: "10" }), await world.newAgent({ usd: "10" })];
  const { id } = await created(world, client);
  const path = `/v1/contracts/${id}/accept`;
  const { payment, send } = await signedCall(loser, path, { accept: true }, world);
  await frontRun(world, stranger, payment);
  const stored = async (agent: Agent) =>
    (
      await world.pool.query(
        "select 1 from app.operation where kind = 'accept' and escrow = $1 and caller = $2",
        [id, agent.address],
      )
    ).rowCount;

  await pauseBlocks(world.testClient);
  const winning = winner.pay<ContractView>(path, { accept: true });
  await expect.poll(() => stored(winner)).toBe(1);
  const losing = send();
  await expect.poll(() => stored(loser)).toBe(1);
  await resumeBlocks(world.testClient);

  expect((await winning).data).toMatchObject({ status: "matched", worker: winner.address });
  expect((await losing).error).toMatchObject({ code: "conflict", hint: REFUNDED });
  await expect.poll(() => world.usdOf(loser.address)).toBe(10_000_000n);
  expect(await world.usdOf(id as Hex)).toBe(52_500_000n);
});

test("a transfer counts for the nonce that made it alone, and takes no one else's money at the escrow", async () => {
  const client = await world.newAgent({ usd: "100" });
  const [winner, victim, thief] = [
    await world.newAgent({ usd: "10" }),
    await world.newAgent({ usd: "10" }),
    await world.newAgent({ usd: "10" }),
  ];
  const { id } = await created(world, client);
  const path = `/v1/contracts/${id}/accept`;
  const claiming = await signedCall(thief, path, { accept: true }, world);
  const moving = await signedCall(thief, path, { accept: true }, world);
  const own = await signedCall(victim, path, { accept: true }, world);
  expect((await winner.pay<ContractView>(path, { accept: true })).data).toMatchObject({ status: "matched" });
  await frontRun(world, stranger, own.payment);

  const changes = { nonce: claiming.payment.nonce, to: thief.address, value: 0n };
  const used = await authorize(thief, claiming.quote, { ...world, changes });
  await frontRunTogether(world, stranger, [used, moving.payment]);
  expect(await world.usdOf(id as Hex)).toBe(57_500_000n);

  expect((await claiming.send()).error).not.toMatchObject({ hint: REFUNDED });
  expect((await moving.send()).error).toMatchObject({ hint: REFUNDED });
  await expect.poll(() => world.usdOf(thief.address)).toBe(10_000_000n);
  expect((await claiming.send()).error).not.toMatchObject({ hint: REFUNDED });
  expect((await own.send()).error).toMatchObject({ hint: REFUNDED });
  await expect.poll(() => world.usdOf(victim.address)).toBe(10_000_000n);
  expect(await world.usdOf(id as Hex)).toBe(52_500_000n);
});

test("money that opened the escrow is refunded to no one: what lies there afterwards is other payers'", async () => {
  const client = await world.newAgent({ usd: "50" });
  const [winner, victim] = [await world.newAgent({ usd: "10" }), await world.newAgent({ usd: "10" })];
  const body = JSON.stringify(await draft(world));
  const quote = quoteOf(await client.post("/v1/contracts", body));
  const id = quote.payTo as Hex;
  const ofStake = await authorize(client, quote, { ...world, changes: { value: STAKE } });
  const rest = await authorize(client, quote, { ...world, changes: { value: PRICE - STAKE } });
  await frontRun(world, stranger, ofStake);
  await frontRun(world, stranger, rest);
  await openWithTermsOf(id, client);

  const path = `/v1/contracts/${id}/accept`;
  const own = await signedCall(victim, path, { accept: true }, world);
  expect((await winner.pay<ContractView>(path, { accept: true })).data).toMatchObject({ status: "matched" });
  await frontRun(world, stranger, own.payment);

  const again = await client.post(path, { accept: true }, version2(own.quote, ofStake));
  expect(again.error).toMatchObject({ code: "forbidden" });
  expect(again.error).not.toMatchObject({ hint: REFUNDED });
  expect((await own.send()).error).toMatchObject({ code: "conflict", hint: REFUNDED });
  await expect.poll(() => world.usdOf(victim.address)).toBe(10_000_000n);
  expect(await world.usdOf(client.address)).toBe(0n);
  expect(await world.usdOf(id)).toBe(PRICE + STAKE);
});

test("money that opened the escrow pays for nothing else, even if an action costs as much", async () => {
  // Two stakes of others make up the bond, which is as high as the price.
  const former = await setParameters(world, { disputeBondRatio: 10_000, workerStakeRatio: 5_000 });
  onTestFinished(async () => void (await setParameters(world, former)));
  const client = await world.newAgent({ usd: "1" });
  const [winner, victim] = [await world.newAgent({ usd: "1" }), await world.newAgent({ usd: "1" })];
  const quote = quoteOf(
    await client.post("/v1/contracts", JSON.stringify(await draft(world, { budgetOrPrice: 1 }))),
  );
  const id = quote.payTo;
  const deposit = await authorize(client, quote, world);
  await frontRun(world, stranger, deposit);
  await openWithTermsOf(id, client);
  const path = `/v1/contracts/${id}/accept`;
  const others = [
    await signedCall(victim, path, { accept: true }, world),
    await signedCall(victim, path, { accept: true }, world),
  ];
  ok(await winner.pay(path, { accept: true }));
  for (const { payment } of others) await frontRun(world, stranger, payment);
  ok(await winner.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));

  const dispute = `/v1/contracts/${id}/dispute`;
  const bond = quoteOf(await client.post(dispute));
  expect(bond.amount).toBe(quote.amount);
  expect((await client.post(dispute, undefined, version2(bond, deposit))).status).toBe(402);
  for (const { send } of others) expect((await send()).error).toMatchObject({ hint: REFUNDED });
  await expect.poll(() => world.usdOf(victim.address)).toBe(1_000_000n);
});

test("a bond as high as the deposit, moved by a stranger, is not taken for the deposit", async () => {
  const former = await setParameters(world, { disputeBondRatio: 10_000 });
  onTestFinished(async () => void (await setParameters(world, former)));
  const worker = await world.newAgent({ usd: "10" });
  for (const isCollected of [true, false]) {
    const { client, escrow, first, post } = await paidTwice();
    await world.fundUsd(client.address, "50");
    const { data } = await client.get<TermsView>(`/v1/contracts/${escrow}/terms`);
    await frontRunTogether(world, stranger, [isCollected ? { ...data, deposit: first } : first]);
    await world.indexed();
    if (!isCollected) ok(await post(first));

    ok(await worker.pay(`/v1/contracts/${escrow}/accept`, { accept: true }));
    ok(await worker.post(`/v1/contracts/${escrow}/delivery`, { delivery: "ipfs://output" }));
    const path = `/v1/contracts/${escrow}/dispute`;
    const [bond, late] = [
      await signedCall(client, path, undefined, world),
      await signedCall(client, path, undefined, world),
    ];
    await frontRun(world, stranger, bond.payment);
    ok(await bond.send());
    await frontRun(world, stranger, late.payment);
    expect((await late.send()).error).toMatchObject({ code: "conflict", hint: REFUNDED });
    await expect.poll(() => world.usdOf(client.address)).toBe(PRICE);
    expect(await world.usdOf(escrow)).toBe(2n * PRICE + STAKE);
    expect(ok(await post(first))).toMatchObject({ status: isCollected ? "disputed" : "created" });
  }
});

test("a deposit of nothing whose nonce was used or cancelled is refused, and another one opens the escrow", async () => {
  const former = await setParameters(world, { workerStakeRatio: 0 });
  onTestFinished(async () => void (await setParameters(world, former)));
  const worker = await world.newAgent();
  const body = await draft(world, { initiator: "worker" });
  const sign = () => signedCall<ContractView>(worker, "/v1/contracts", body, world);
  const [used, cancelled, fresh] = [await sign(), await sign(), await sign()];
  await frontRun(world, stranger, used.payment);
  const { nonce } = cancelled.payment;
  const wallet = await walletOf(world, worker);
  const cancellation = await cancellationOf(world.deployment, worker.account, nonce);
  await mined(world, await wallet.sendTransaction(cancellation));
  for (const { send } of [used, cancelled]) expect(quoteOf(await send()).error).toBe("authorization_used");
  expect(ok(await fresh.send())).toMatchObject({ status: "created", workerStake: "0.0" });
});

test("a call that is refused with a payment for another escrow neither opens that one, nor succeeds when it is repeated", async () => {
  const client = await world.newAgent({ usd: "100" });
  const { id } = await created(world, await world.newAgent({ usd: "100" }));
  const path = `/v1/contracts/${id}/accept`;
  ok(await (await world.newAgent({ usd: "10" })).pay(path, { accept: true }));
  const own = await signedCall<ContractView>(client, "/v1/contracts", await draft(world), world);
  await frontRun(world, stranger, own.payment);
  for (let i = 0; i < 2; i++) {
    const { error } = await client.post(path, { accept: true }, version2(own.quote, own.payment));
    expect(error).toMatchObject({ code: "conflict" });
    expect(error).not.toMatchObject({ hint: REFUNDED });
    await world.indexed();
  }
  expect(ok(await own.send())).toMatchObject({ id: own.quote.payTo, status: "created" });
});

test("a payment that is used for another call beside its own is credited for its own", async () => {
  const agent = await world.newAgent({ usd: "10" });
  const { id } = await created(world, await world.newAgent({ usd: "100" }));
  const own = await signedCall<ContractView>(agent, `/v1/contracts/${id}/accept`, { accept: true }, world);
  await frontRun(world, stranger, own.payment);
  // A thief of the API key pays for a contract that can no longer be matched, and names the agent's payment.
  const funder = await world.newAgent({ usd: "1" });
  const body = JSON.stringify(
    await draft(world, { budgetOrPrice: "1", matchDeadline: await world.inSeconds(60) }),
  );
  const quote = quoteOf(await agent.post("/v1/contracts", body));
  await sendUsd(world, funder, quote.payTo, BigInt(quote.amount));
  await world.increaseTime(60);
  const named = { ...own.payment, to: quote.payTo, value: BigInt(quote.amount) };
  expect((await agent.post("/v1/contracts", body, version2(quote, named))).error).toBeDefined();
  await world.indexed();
  expect(ok(await own.send())).toMatchObject({ status: "matched", worker: agent.address });
});

test("a contract wallet's payment is credited or refunded with the very signature that it made", async () => {
  const agent = await world.newAgent({ usd: "10" });
  // Accepts signatures whose first word is the digest and whose last byte is 1: no recovery byte, as in a Safe's.
  await world.testClient.setCode({
    address: agent.address,
    bytecode: "0x6064356004351460a43560f81c60011416631626ba7e60e01b0260005260206000f3",
  });
  const signTypedData = async (typed: TypedDataDefinition) =>
    concat([hashTypedData(typed), padHex("0x01", { size: 33 })]);
  const wallet = { ...agent, account: { ...agent.account, signTypedData } as Agent["account"] };
  const client = await world.newAgent({ usd: "100" });
  const [open, taken] = [
    await created<ContractView>(world, client),
    await created<ContractView>(world, client),
  ];
  const pathOf = ({ id }: ContractView) => `/v1/contracts/${id}/accept`;
  const accepting = await signedCall<ContractView>(wallet, pathOf(open), { accept: true }, world);
  const late = await signedCall(wallet, pathOf(taken), { accept: true }, world);
  ok(await (await world.newAgent({ usd: "10" })).pay(pathOf(taken), { accept: true }));
  for (const { payment } of [accepting, late]) await frontRun(world, stranger, payment);

  expect(ok(await accepting.send())).toMatchObject({ status: "matched", worker: agent.address });
  expect((await late.send()).error).toMatchObject({ code: "conflict", hint: REFUNDED });
  await expect.poll(() => world.usdOf(agent.address)).toBe(7_500_000n);
});
