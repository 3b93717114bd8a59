/**
 * A service that is interrupted, restarted and at its limits. Calls whose outcome is not known in time return 503, never
 * a fresh quote, and the outcome on repetition. Attacks at the operator's gas end at the limits. Without the service the
 * parties still get every unit out of the escrows.
 */

import { setTimeout as delay } from "node:timers/promises";
import { verifyContract } from "@working-contracts/client/verify/verify";
import type { Outcome } from "@working-contracts/protocol/outcomes";
import { type Address, padHex, parseEther, parseUnits } from "viem";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { indexedBlock } from "../../src/db/onchain.js";
import { loadContractForAction } from "../../src/features/contracts/actions.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import { type ContractView, loadContract, viewContract } from "../../src/features/contracts/view.js";
import type { StakeView } from "../../src/features/stakes/routes.js";
import { localAccount } from "../../tools/local/network.js";
import { startRpcProxy } from "../faults/support/rpc-proxy.js";
import { type Agent, type ApiResponse, caller, signIn } from "../support/agent.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import {
  alone,
  cancellationOf,
  frontRun,
  mined,
  openFromBalance,
  ownersWallet,
  sendUsd,
  setSignerCall,
  signForSimulations,
  tokensOf,
  walletOf,
} from "../support/chain.js";
import {
  ballot,
  created,
  DAY,
  delivered,
  disputed,
  draft,
  eventually,
  matched,
  newJuror,
  newPair,
  ok,
  signedChallenge,
  vote,
} from "../support/contracts.js";
import { authorize, quoteOf, signedCall, version2 } from "../support/payment.js";
import { signedHeaders, toSign } from "../support/signed-actions.js";
import { startApi, startStack } from "../support/stack.js";
import { useWorld } from "../support/world.js";
import { worstGas } from "../support/worst-gas.js";

/** Short, as calls wait this long while the chain is stopped. On a busy machine other calls repeat themselves. */
const WAIT_MS = "2000";
/** For tests in which the chain never stops. */
const PATIENT_MS = "25000";
const stack = await startStack({ env: { SETTLEMENT_WAIT_MS: WAIT_MS, MINIMUM_PRICE: "0.000001" } });
afterAll(() => stack.stop());
const world = await useWorld(stack.info);
const { client, worker } = await newPair(world);

/** Runs `story` while the chain makes no blocks. */
async function withoutBlocks(story: () => Promise<void>): Promise<void> {
  await pauseBlocks(world.testClient);
  try {
    await story();
  } finally {
    await resumeBlocks(world.testClient);
  }
}

test("a pending payment is 503 until it is mined, then the first response", async () => {
  const before = await world.usdOf(client.address);
  const body = JSON.stringify(await draft(world));
  const { send } = await signedCall(client, "/v1/contracts", body, world);
  await withoutBlocks(async () => {
    for (let i = 0; i < 2; i++) {
      const pending = await send();
      expect(pending.status).toBe(503);
      expect(pending.error).toMatchObject({ code: "settlement_pending", retryable: true });
      expect(Number(pending.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(pending.headers.get("payment-required")).toBeNull();
    }
    // Without the payment as well: the service must not ask for a second signature.
    expect((await client.post("/v1/contracts", body)).error?.code).toBe("settlement_pending");
  });
  await expect.poll(async () => (await send()).status).toBe(200);
  expect(await world.usdOf(client.address)).toBe(before - 50_000_000n);
});

test("while the index lags behind a state that it already showed, reads never go back in time", async () => {
  const { id } = await matched(world, { client, worker });
  const body = await draft(world);
  const { quote, send } = await signedCall<ContractView>(client, "/v1/contracts", body, world);
  const repeated = async () => {
    const { status, data, headers } = await send();
    return [status, data?.id, headers.get("idempotent-replay")];
  };
  await expect.poll(async () => (await repeated())[0]).toBe(200);
  await world.indexed();
  // The event log stores its progress with each event that it finds. From here on it finds none.
  const isLevel =
    "select scanned_id is not distinct from (select max(id) from onchain.escrow_event) as level from app.event_log";
  await expect.poll(async () => (await world.pool.query(isLevel)).rows[0]?.level).toBe(true);
  const reads = ["", "/votes", "/ledger", "/settlement", "/checkpoints", "/complaints"].map(
    (part) => `/v1/contracts/${id}${part}`,
  );
  const ofClient = ["workload", "record", "stake"].map((part) => `/v1/agents/${client.address}/${part}`);
  const paths = [...reads, ...ofClient, "/v1/contracts", "/v1/contracts?q=nobody-wrote-this", "/v1/votes"];
  const quoted = (await signedCall(worker, "/v1/contracts", await draft(world), world)).quote.payTo;
  const unknown = [`/v1/contracts/0x${"12".repeat(20)}`, `/v1/contracts/${quoted}/terms`];
  const answers = async () => {
    const read = await Promise.all([...paths, ...unknown].map((path) => client.get(path)));
    const delivered = await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://early" });
    return [...read, delivered].map(({ status, error }) => [status, error?.code]);
  };
  const refused = Array(paths.length + unknown.length + 1).fill([503, "unavailable"]);
  const { rows } = await world.pool.query<{ schema: string }>(
    "select table_schema as schema from information_schema.tables where table_name = 'working_contract' and table_type = 'BASE TABLE'",
  );
  const changes = [
    (isReady: boolean) =>
      `update ${rows[0]?.schema}._ponder_meta set value = jsonb_set(value, '{is_ready}', '${Number(isReady)}')`,
    (isAsFar: boolean) =>
      `update app.event_log set scanned_block = scanned_block ${isAsFar ? "-" : "+"} 1000000`,
    (isThere: boolean) =>
      isThere
        ? "alter view onchain.gone rename to working_contract"
        : "alter view onchain.working_contract rename to gone",
  ];
  for (const change of changes) {
    await world.pool.query(change(false));
    try {
      expect(await answers(), change(false)).toEqual(refused);
      // Earlier responses are repeated, and new agents can sign in.
      expect(await repeated(), change(false)).toEqual([200, quote.payTo, "true"]);
      expect((await world.newAgent()).apiKey).not.toBe("");
    } finally {
      await world.pool.query(change(true));
    }
  }
  for (const path of paths) expect((await client.get(path)).status, path).toBe(200);
  for (const path of unknown) expect((await client.get(path)).status, path).toBe(404);
});

test("while the index is far behind the chain, reads and actions are refused", async () => {
  const { id } = await matched<{ id: Address }>(world, { client, worker });
  const shown = (await indexedBlock(world.db)) ?? 0n;
  for (const read of [loadContract, loadContractForAction, viewContract]) {
    const readAt = (block: bigint) =>
      read({ db: world.db, clock: { now: () => 0, knownBlock: () => block } }, id);
    expect(await readAt(shown)).not.toBeNull();
    await expect(readAt(shown + 1_000_000n)).rejects.toMatchObject({ code: "unavailable" });
  }
});

test("an action without a payment is completed by its repetition", async () => {
  const { id } = await matched(world, { client, worker });
  const path = `/v1/contracts/${id}/delivery`;
  // An agent's first action includes its delegation, which this test does not cover.
  await expect.poll(async () => (await worker.post(path, { delivery: "ipfs://x" })).status).toBe(200);
  const approve = `/v1/contracts/${id}/approve`;
  await expect.poll(async () => (await client.post(approve)).status).toBe(200);
  const next = await matched(world, { client, worker });
  await withoutBlocks(async () => {
    const pending = await worker.post(`/v1/contracts/${next.id}/delivery`, { delivery: "ipfs://y" });
    expect(pending.error?.code).toBe("settlement_pending");
    const other = await worker.post(`/v1/contracts/${next.id}/delivery`, { delivery: "ipfs://z" });
    expect(other.error?.code).toBe("conflict");
    expect(await world.query("select 1 from app.delivery where contract_id = $1", [next.id])).toHaveLength(1);
  });
  await expect
    .poll(
      async () =>
        (await worker.post<ContractView>(`/v1/contracts/${next.id}/delivery`, { delivery: "ipfs://y" })).data
          ?.status,
    )
    .toBe("under-review");
  expect((await worker.post(`/v1/contracts/${next.id}/delivery`, { delivery: "ipfs://y" })).error?.code).toBe(
    "conflict",
  );
});

test("an action whose signature expired before it was relayed is to be signed again", async () => {
  const agent = await world.newAgent({ usd: "100", permission: { operatorActions: "none" } });
  const { id } = await created<{ id: string }>(world, agent);
  const path = `/v1/contracts/${id}/cancel`;
  const sign = async () => signedHeaders(agent, toSign(await agent.post(path)));
  // It waits for longer.
  const patient = await startApi(stack.info);
  onTestFinished(patient.stop);
  const call = caller(patient.url, { authorization: `Bearer ${agent.apiKey}` });
  await allowSigners(false);
  onTestFinished(() => allowSigners(true));
  const waiting = call("POST", path, { headers: await sign() });
  await operationOf(id, ({ state }) => state === "queued");
  await world.moveTime(600);
  const { error } = await waiting;
  expect(error).toMatchObject({ message: expect.stringContaining("Sign it again"), retryable: true });
  await allowSigners(true);
  // A signer that was not allowed asks again only after ten seconds.
  ok(await call("POST", path, { headers: await sign() }));
});

test("an authorization that was published is never answered with a fresh quote while it can still be used", async () => {
  const payer = await world.newAgent({ usd: "1000" });
  const other = await world.newAgent();
  const body = JSON.stringify(await draft(world));
  const { quote, send } = await signedCall(payer, "/v1/contracts", body, world);
  await withoutBlocks(async () => {
    expect((await send()).status).toBe(503);
    // With a higher fee it is included first. The waiting batch then reverts as a whole, and its bytes are public.
    await allowSigners(false);
  });
  onTestFinished(() => allowSigners(true));
  await operationOf(quote.payTo, ({ state, reason }) => state === "held" && reason === "BatchReverted");
  await sendUsd(world, payer, other.address, await world.usdOf(payer.address));
  await allowSigners(true);
  await operationOf(quote.payTo, ({ state }) => state === "rejected");

  const refused = await send();
  expect(refused.headers.get("payment-required")).toBeNull();
  expect(refused.error).toMatchObject({ code: "conflict", details: { reason: "insufficient_funds" } });

  await sendUsd(world, other, payer.address, await world.usdOf(other.address));
  // A client that starts from scratch would sign a second payment.
  const again = await payer.post("/v1/contracts", body);
  expect(again.headers.get("payment-required")).toBeNull();
  expect(again.error).toMatchObject({ code: "conflict", details: { nonce: expect.any(String) } });
  // Nor if a later one of the same action was cancelled.
  const later = padHex("0x01", { size: 32 });
  const cancelling = await walletOf(world, payer);
  await mined(
    world,
    await cancelling.sendTransaction(await cancellationOf(world.deployment, payer.account, later)),
  );
  const copied = `insert into app.operation select (json_populate_record(o, json_build_object(
    'id', o.id + 1000000, 'nonce', $2::text, 'updated_at', now()))).* from app.operation o where escrow = $1`;
  await world.pool.query(copied, [quote.payTo, later]);
  expect((await payer.post("/v1/contracts", body)).error).toMatchObject({ details: again.error?.details });
  await expect.poll(async () => (await send()).status).toBe(200);
  expect(await world.usdOf(payer.address)).toBe(950_000_000n);
});

async function allowSigners(allowed: boolean): Promise<void> {
  const owner = ownersWallet(world);
  for (const index of [1, 2]) {
    await owner.sendTransaction({
      ...setSignerCall(world.deployment.relay, localAccount(index).address, allowed),
      gas: 100_000n,
      maxFeePerGas: 10n ** 12n,
      maxPriorityFeePerGas: 10n ** 11n,
    });
  }
}

async function operationOf(
  escrow: string,
  isAwaited: (row: { state: string; reason: string | null }) => boolean,
): Promise<void> {
  const newest = "select state, reason from app.operation where escrow = $1 order by id desc limit 1";
  await expect.poll(async () => (await world.pool.query(newest, [escrow])).rows.some(isAwaited)).toBe(true);
}

test("a pending stake is quoted once, paid once, and reported to whichever of its caller's requests comes first", async () => {
  const agent = await world.newAgent();
  await world.grantTokens(agent.address, 1000);
  const path = "/v1/agents/me/stake";
  const body = { amount: "10" };
  const { quote, send } = await signedCall<StakeView>(agent, path, body, world);
  const second = version2(quote, await authorize(agent, quote, world));
  await withoutBlocks(async () => {
    expect((await send()).error?.code).toBe("settlement_pending");
    expect((await agent.post(path, body)).error?.code).toBe("settlement_pending");
    expect((await agent.post(path, body, second)).error?.code).toBe("conflict");
    const third = await signedCall(agent, path, { amount: "20" }, world);
    expect((await third.send()).error?.code).toBe("conflict");
    // However long it is pending.
    const age =
      "update app.operation set created_at = created_at - $2::interval where caller = $1 and response is null";
    await world.pool.query(age, [agent.address.toLowerCase(), "1 hour"]);
    expect((await agent.post(path, body)).error?.code).toBe("settlement_pending");
    await world.pool.query(age, [agent.address.toLowerCase(), "-1 hour"]);
  });
  // The payment is lost: the agent starts from scratch, as stock clients do.
  const answered = async () => {
    const { status, data, headers } = await agent.post<StakeView>(path, body);
    return { status, staked: data?.staked, receipt: headers.get("payment-response") };
  };
  await expect.poll(answered).toEqual({ status: 200, staked: "10.0", receipt: expect.any(String) });
  expect((await send()).headers.get("idempotent-replay")).toBe("true");
  // From now on it asks for another stake.
  expect(quoteOf(await agent.post(path, body)).amount).toBe(quote.amount);
  expect((await agent.pay<StakeView>(path, body)).data?.staked).toBe("20.0");

  // Its response was never read: an hour later, the same bytes ask for another stake.
  const last = version2(quote, await authorize(agent, quote, world));
  await withoutBlocks(async () => {
    expect((await agent.post(path, body, last)).error?.code).toBe("settlement_pending");
  });
  const age = `update app.operation set created_at = now() - interval '1 hour'
    where caller = $1 and state in ('mined', 'final') and response is null`;
  await expect
    .poll(async () => (await world.pool.query(age, [agent.address.toLowerCase()])).rowCount)
    .toBe(1);
  expect(quoteOf(await agent.post(path, body)).amount).toBe(quote.amount);
});

describe("a copy of a call that is checked only after the first one was performed", () => {
  /** Another process, for which the node holds its first check of a payment, or of a delegation, until it is released. */
  async function startSlowly(agent: Agent, { nonce }: { nonce: string }) {
    const node = await startRpcProxy(stack.info.rpcUrl);
    const service = await startApi({ ...stack.info, rpcUrl: node.url });
    let isHeld = false;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    node.setRule(async ({ method, params }, forward) => {
      if (!isHeld && method === "eth_call" && JSON.stringify(params).includes(nonce.slice(2))) {
        isHeld = true;
        await released;
      }
      return forward();
    });
    onTestFinished(async () => {
      release();
      await service.stop();
      await node.stop();
    });
    const call = caller(service.url, { authorization: `Bearer ${agent.apiKey}` });
    return { call, release, held: () => expect.poll(() => isHeld).toBe(true) };
  }

  test.each(["acceptance", "stake"])("gets the first response, not a fresh quote of the %s", async (kind) => {
    const agent = await world.newAgent({ usd: "10", tokens: 100 });
    const { id } = await created<{ id: string }>(world, client);
    const [path, body] =
      kind === "stake"
        ? ["/v1/agents/me/stake", { amount: "10" }]
        : [`/v1/contracts/${id}/accept`, { accept: true }];
    const { payment, headers, send } = await signedCall(agent, path, body, world);
    const slow = await startSlowly(agent, payment);
    const copy = slow.call("POST", path, { body, headers });
    await slow.held();
    await expect.poll(async () => (await send()).status).toBe(200);
    const first = await send();
    slow.release();
    expect(await copy).toMatchObject({ status: 200, body: first.body });
    expect((await copy).headers.get("idempotent-replay")).toBe("true");
    const others = await worker.post(path, body, headers);
    expect(others.status, "another caller's").toBe(kind === "stake" ? 402 : 409);
  });

  test("gets a conflict, not the first response, if it voted otherwise", async () => {
    const juror = await newJuror(world, { usd: "7.5" });
    const { id } = await disputed(world, { client, worker });
    const path = `/v1/contracts/${id}/votes`;
    const otherwise = ballot("not met", "not met", "not met");
    const other = await signedCall(juror, path, otherwise, world);
    const { payment, send } = await signedCall(juror, path, ballot("met", "met", "met"), world);
    const slow = await startSlowly(juror, other.payment);
    const copy = slow.call("POST", path, { body: otherwise, headers: other.headers });
    await slow.held();
    await expect.poll(async () => (await send()).status).toBe(200);
    // As until the index shows the vote.
    await world.pool.query("update app.operation set response = null where nonce = $1", [payment.nonce]);
    slow.release();
    expect(await copy).toMatchObject({ status: 409, error: { code: "conflict" } });
    expect((await send()).status).toBe(200);
  });

  test.each(["accept", "cancel"])("gets the first response, not a conflict after its %s", async (name) => {
    const agent = await world.newAgent({ usd: "100" });
    const { id } = await created<{ id: string }>(world, name === "accept" ? client : agent);
    const path = `/v1/contracts/${id}/${name}`;
    const body = { accept: true };
    const { payment, headers } =
      name === "accept"
        ? await signedCall(agent, path, body, world)
        : { payment: { nonce: agent.address }, headers: { "idempotency-key": "once" } };
    const slow = await startSlowly(agent, payment);
    const first = slow.call("POST", path, { body, headers });
    await slow.held();
    const blocker = await world.pool.connect();
    try {
      await blocker.query("begin; lock table app.checkpoint in access exclusive mode");
      const copy = agent.post(path, body, headers);
      const waiting = `select from pg_locks where relation = 'app.checkpoint'::regclass and not granted`;
      await expect.poll(async () => (await blocker.query(waiting)).rowCount).toBeGreaterThan(0);
      slow.release();
      const { body: original } = await first;
      await blocker.query("rollback");
      const { status, body: copied } = await copy;
      expect([status, copied]).toEqual([200, original]);
    } finally {
      blocker.release(true);
    }
  });
});

test("a price whose stakes and bonds round down to zero works with payments of zero", async () => {
  const terms = { budgetOrPrice: "0.000001", acceptanceCriteria: ["One"] };
  const listing = await worker.pay<ContractView>(
    "/v1/contracts",
    await draft(world, { ...terms, initiator: "worker" }),
  );
  expect(listing.data).toMatchObject({ status: "created", initiator: "worker", workerStake: "0.0" });
  const bought = await client.pay<ContractView>(`/v1/contracts/${listing.data.id}/accept`, { accept: true });
  expect(bought.data).toMatchObject({ status: "matched", escrowedFunds: "0.000001", workerStake: "0.0" });

  const { id } = await matched(world, { client, worker }, terms);
  await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://x" });
  const underReview = async () => (await client.get<ContractView>(`/v1/contracts/${id}`)).data.status;
  await expect.poll(underReview).toBe("under-review");
  const disputed = await client.pay<ContractView>(`/v1/contracts/${id}/dispute`);
  expect(disputed.data).toMatchObject({ status: "disputed", disputeBond: "0.0" });
  const given = { nodes: [world.info.rpcUrl], network: world.deployment };
  const { steps } = await verifyContract(new Error("No service"), id, given);
  const allowed = steps.flatMap(({ step, allowedBy }) => (step === "Delivered" ? [] : [allowedBy]));
  expect(allowed).toEqual(Array(3).fill("its payment authorization"));
});

describe("while failures wait for 40 confirmations", () => {
  beforeAll(() => stack.restartService({ CONFIRMATIONS: "40" }));

  test.each([
    ["acceptance", "accept", [200, "created"]],
    ["creation", "create", [404, undefined]],
  ])("no one is refused because a reorg removed the contract's %s", async (_, kind, shown) => {
    const rival = await world.newAgent({ usd: "1000" });
    const { id } = await matched(world, { client, worker });
    await world.indexed();
    const path = `/v1/contracts/${id}`;
    await withoutBlocks(async () => {
      const { rows } = await world.pool.query<{ block: string }>(
        "select block_number as block from app.operation where escrow = $1 and kind = $2",
        [id, kind],
      );
      const head = await world.publicClient.getBlockNumber({ cacheTime: 0 });
      const depth = Number(head - BigInt(rows[0]?.block ?? 0)) + 1;
      await world.testClient.request({ method: "anvil_reorg", params: [depth, []] } as never);
      const read = async () => {
        const { status, data } = await client.get<ContractView>(path);
        return [status, data?.status];
      };
      await expect.poll(read).toEqual(shown);
      const answers = [
        await worker.post(`${path}/delivery`, { delivery: "ipfs://x" }),
        await worker.post(`${path}/withdraw`),
        await worker.post(`${path}/complaints`, { evidence: { late: true } }),
        await worker.get(`${path}/keys`),
        await worker.get(`${path}/keys/releases`),
        await client.post(`${path}/cancel`),
        await rival.post(`${path}/accept`, { accept: true }),
      ];
      const outcomes = answers.map(({ status, error }) => [status, error?.code]);
      expect(outcomes).toEqual(answers.map(() => [503, "unavailable"]));
    });
    const statuses: number[] = [];
    const deliver = async () => {
      const { status } = await worker.post(`${path}/delivery`, { delivery: "ipfs://x" });
      return statuses.push(status) && status;
    };
    await expect.poll(deliver).toBe(200);
    expect(statuses.filter((status) => status !== 503)).toEqual([200]);
    expect((await rival.post(`${path}/accept`, { accept: true })).error?.code).toBe("conflict");
  });
});

const ALLOWANCE = 1_200_000;
const BUDGET = 2_400_000;
/** A lifecycle with a delegation and its revocation: what can follow once the last operation was let through. */
const CYCLE = 500_000;
const PRICE = 1_000_000n;

/** Gas that the operator has paid so far, once everything that is due has been relayed. */
async function gasPaid(): Promise<number> {
  const pending = `select count(*)::int as n from app.operation where state in ('queued', 'held', 'sent')`;
  await eventually(async () => (await world.query<{ n: number }>(pending))[0]?.n, 0);
  const [row] = await world.query<{ gas: number }>(
    "select coalesce(sum(gas_used), 0)::float8 as gas from app.batch",
  );
  return row?.gas ?? 0;
}

/** Runs the loop until it is refused, and returns the refusal. */
async function untilRefused(cycle: () => Promise<ApiResponse>): Promise<ApiResponse> {
  for (let cycles = 0; cycles < 30; cycles += 1) {
    const answer = await cycle();
    if (answer.status === 429) return answer;
    ok(answer, answer.status === 201 ? 201 : 200);
  }
  throw new Error("the attack is not refused");
}

const small = { budgetOrPrice: "1.0" };

/** A sign-in, ready to be sent, that leaves every action to the operator for so long. */
async function signedFor({ address, account }: Agent, seconds: number): Promise<() => Promise<ApiResponse>> {
  await world.moveTime(2);
  const path = `/v1/agents/${address}`;
  const body = { operatorActions: "all", operatorUntil: await world.inSeconds(seconds) };
  const challenge = await world.call<Record<string, string>>("POST", `${path}/challenge`, { body });
  const { challengeId, message = "" } = ok(challenge);
  const proof = { challengeId, signature: await account.signMessage({ message }) };
  return () => world.call("POST", `${path}/api-key`, { body: proof });
}

let limiting: Promise<void> | undefined;
/** Restarts the service with low limits, once, whichever of these tests run. */
function limitGas(): Promise<void> {
  limiting ??= (async () => {
    const limits = { GAS_ALLOWANCE: String(ALLOWANCE), GAS_BUDGET: String(BUDGET) };
    await stack.restartService({ ...limits, SETTLEMENT_WAIT_MS: PATIENT_MS });
    await gasPaid();
    await world.query("delete from app.gas_account");
  })();
  return limiting;
}

describe("gas accounts", { timeout: 300_000 }, () => {
  beforeAll(limitGas);

  test("stop an address that creates and cancels in a loop, but not its way out", async () => {
    const attacker = await world.newAgent({ usd: "100" });
    const { id: open } = await created(world, attacker, small);
    const before = await gasPaid();
    const refused = await untilRefused(async () => {
      const answer = await attacker.pay<{ id: string }>("/v1/contracts", await draft(world, small));
      return answer.status === 200 ? attacker.post(`/v1/contracts/${answer.data.id}/cancel`) : answer;
    });
    expect(refused.error).toMatchObject({ code: "rate_limited", details: { limit: "allowance" } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(JSON.stringify(refused.body)).toContain("pay its gas");
    const bound = worstGas({ allowance: ALLOWANCE, budget: BUDGET }, { addresses: 1, hours: 0.1 });
    expect((await gasPaid()) - before).toBeLessThan(bound + CYCLE);

    expect((await attacker.post(`/v1/contracts/${open}/cancel`)).status).toBe(200);
    await eventually(() => world.usdOf(attacker.address), 100n * PRICE);
  });

  test("stop new addresses that delegate, decline and revoke in a loop, but not an agent that earns its gas", async () => {
    const before = await gasPaid();
    const earning = await newPair(world);
    const { id } = await matched(world, earning);
    ok(await earning.worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));
    ok(await earning.client.post(`/v1/contracts/${id}/approve`));
    await gasPaid();

    const refused = await untilRefused(async () => {
      const [client, worker] = await Promise.all([world.newAgent({ usd: "1" }), world.newAgent()]);
      const reserved = { ...small, awardMethod: "direct_award", worker: worker.address };
      const answer = await client.pay<{ id: string }>("/v1/contracts", await draft(world, reserved));
      if (answer.status !== 200) return answer;
      ok(await worker.post(`/v1/contracts/${answer.data.id}/accept`, { accept: false }));
      await gasPaid();
      return revokeAll(worker);
    });
    expect(refused.error).toMatchObject({ code: "rate_limited", details: { limit: "budget" } });
    const bound = worstGas({ allowance: ALLOWANCE, budget: BUDGET }, { addresses: 1000, hours: 0.2 });
    expect((await gasPaid()) - before).toBeLessThan(bound + CYCLE);

    expect(await matched(world, earning)).toMatchObject({ status: "matched" });
  });

  test("stop an address whose sign-ins get narrower each time", async () => {
    await world.query("delete from app.gas_account where address = '*'");
    const agent = await world.newAgent({ usd: "1" });
    const { id } = await created<{ id: string }>(world, agent, small);
    ok(await agent.post(`/v1/contracts/${id}/cancel`));
    const before = await gasPaid();
    let minutes = 600;
    const refused = await untilRefused(async () => {
      const answer = await (await signedFor(agent, 60 * minutes--))();
      await gasPaid();
      return answer;
    });
    expect(refused.error).toMatchObject({ code: "rate_limited" });
    expect(minutes).toBeLessThan(599);
    const bound = worstGas({ allowance: ALLOWANCE, budget: BUDGET }, { addresses: 1, hours: 0.2 });
    expect((await gasPaid()) - before).toBeLessThan(bound + CYCLE);
  });

  /** A Worker that has used up its gas. */
  async function newDebtor(): Promise<Agent> {
    const debtor = await world.newAgent();
    await world.query("insert into app.gas_account (address, used, earned, owed) values ($1, $2, 0, $2)", [
      debtor.address,
      10 * ALLOWANCE,
    ]);
    await world.query("delete from app.gas_account where address = '*'");
    return debtor;
  }

  /** Creates a contract for `debtor`. The returned function declines it. */
  async function offerTo(debtor: Agent): Promise<() => Promise<ApiResponse>> {
    const client = await world.newAgent({ usd: "1" });
    const reserved = { ...small, awardMethod: "direct_award", worker: debtor.address };
    const { id } = await created<{ id: string }>(world, client, reserved);
    return () => debtor.post(`/v1/contracts/${id}/accept`, { accept: false });
  }

  test("let an address without gas act again while its delegation is pending", async () => {
    const debtor = await newDebtor();
    const declines = [await offerTo(debtor), await offerTo(debtor)] as const;
    const answers: Promise<ApiResponse>[] = [];
    await withoutBlocks(async () => {
      answers.push(declines[0]());
      const delegations = "select 1 from app.operation where caller = $1 and kind = 'delegate'";
      await eventually(async () => (await world.query(delegations, [debtor.address])).length, 1);
      answers.push(declines[1]());
      // A refusal comes at once.
      await delay(500);
    });
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test("let an address without gas delegate once a day, for the contracts that it has", async () => {
    let worker = await newDebtor();
    const decline = async () => (await offerTo(worker))();
    expect((await decline()).status).toBe(200);
    ok(await revokeAll(worker));
    await gasPaid();
    worker = await again(worker);
    expect((await decline()).error).toMatchObject({ code: "rate_limited", details: { limit: "allowance" } });
  });
});

describe("gas limits that are reached", { timeout: 300_000 }, () => {
  beforeAll(limitGas);

  /** Spends the common budget, so that agents that earned nothing are at the limit. */
  async function spendBudget(): Promise<void> {
    await gasPaid();
    await world.query("delete from app.gas_account");
    await world.query("insert into app.gas_account (address, used, earned, owed) values ('*', 0, 0, $1)", [
      2 * BUDGET,
    ]);
  }
  const operationsOf = async ({ address }: Agent, kind: string) =>
    (await world.query(`select 1 from app.operation where caller = $1 and kind = $2`, [address, kind]))
      .length;

  test("refuse a contract wallet whose newest signature failed what it signs, but no one else", async () => {
    const newSigner = () => world.newAgent({ usd: "10", permission: { operatorActions: "none" } });
    const [liar, honest, other] = [await newSigner(), await newSigner(), await world.newAgent()];
    const cancelling = async (agent: Agent, signer: Pick<Agent, "account"> = agent) => {
      const { id } = await created<{ id: string }>(world, agent, small);
      const path = `/v1/contracts/${id}/cancel`;
      const headers = await signedHeaders(signer, toSign(await agent.post(path)));
      return () => agent.post(path, undefined, headers);
    };
    const open = await created<{ id: string }>(world, liar, small);
    const reviewed = await delivered<{ id: string }>(world, { client: liar, worker }, small);
    const disputePath = `/v1/contracts/${reviewed.id}/dispute`;
    const dispute = await signedCall(liar, disputePath, undefined, world);
    await world.query("delete from app.gas_account");
    const [lie, cancel, cancelLater] = [
      await cancelling(liar, other),
      await cancelling(honest),
      await cancelling(honest),
    ];
    await signForSimulations(world, liar);
    await spendBudget();
    // Its payment was applied.
    expect((await lie()).status).not.toBe(429);
    await eventually(() => operationsOf(liar, "cancel"), 1);
    const refusal = { code: "rate_limited", details: { limit: "budget" } };
    expect((await lie()).error).toMatchObject(refusal);
    expect(await operationsOf(liar, "cancel")).toBe(1);
    // A payment that was quoted before, and a new quote.
    expect((await dispute.send()).error).toMatchObject(refusal);
    expect((await liar.post(disputePath)).error).toMatchObject(refusal);
    const { account } = liar;
    const delegating = await signIn({ url: world.url, chainId: world.chainId, account });
    expect((await delegating.post(`/v1/contracts/${open.id}/cancel`)).error).toMatchObject(refusal);
    expect(await operationsOf(liar, "delegate")).toBe(0);
    expect((await cancel()).status).toBe(200);
    expect((await cancelLater()).status).toBe(200);
  });

  test("refuse calls that the caller's own direct transfer brought the money for, and relay them later", async () => {
    await world.query("delete from app.gas_account");
    const [agent, other] = [await world.newAgent({ usd: "2" }), await world.newAgent({ usd: "1" })];
    const body = JSON.stringify(await draft(world, small));
    const { id } = await created<{ id: string }>(world, other, small);
    const calls = [
      { kind: "create", path: "/v1/contracts", body },
      { kind: "accept", path: `/v1/contracts/${id}/accept`, body: JSON.stringify({ accept: true }) },
    ];
    const posts = [];
    for (const { kind, path, body } of calls) {
      const { payment, send } = await signedCall(agent, path, body, world);
      await frontRun(world, agent, payment);
      posts.push({ kind, send });
      // As if it had computed what to pay itself.
      if (kind === "create")
        await world.query("delete from app.terms where id = $1", [payment.to.toLowerCase()]);
    }
    const attempts = () => world.query("select 1 from app.terms where caller = $1", [agent.address]);
    expect(await attempts()).toHaveLength(0);
    await spendBudget();
    for (const { kind, send } of posts) {
      await expect
        .poll(async () => (await send()).error)
        .toMatchObject({
          code: "rate_limited",
          message: expect.stringContaining("by a direct transfer, and this call is not relayed yet"),
          hint: expect.stringContaining("on chain"),
          details: { limit: "budget" },
        });
      expect(await operationsOf(agent, kind)).toBe(0);
    }
    // The service can refund the money later.
    expect(await attempts()).toHaveLength(1);
    await world.query("delete from app.gas_account");
    for (const { send } of posts) expect((await send()).status).toBe(200);
  });

  test("refuse to refund direct transfers, and refund them later", async () => {
    await world.query("delete from app.gas_account");
    const [client, stranger] = [await world.newAgent({ usd: "1" }), await world.newAgent({ usd: "2" })];
    const { id } = await created<{ id: string }>(world, client, small);
    const calls = [
      { path: `/v1/contracts/${id}/accept`, body: JSON.stringify({ accept: true }), value: 1n },
      {
        path: "/v1/contracts",
        body: JSON.stringify(await draft(world, { ...small, matchDeadline: await world.inSeconds(60) })),
        value: PRICE,
      },
    ];
    const posts: (() => Promise<ApiResponse>)[] = [];
    for (const { path, body, value } of calls) {
      const { payment, send } = await signedCall(stranger, path, body, { ...world, changes: { value } });
      await frontRun(world, stranger, payment);
      posts.push(send);
    }
    ok(await client.post(`/v1/contracts/${id}/cancel`));
    await world.moveTime(60);
    await spendBudget();
    for (const post of posts) {
      await expect
        .poll(async () => (await post()).error)
        .toMatchObject({
          code: "rate_limited",
          message: expect.stringContaining("by a direct transfer, and is not refunded yet"),
          details: { limit: "budget" },
        });
    }
    expect(await operationsOf(stranger, "refund-direct-transfer")).toBe(0);
    expect(await operationsOf(stranger, "create")).toBe(0);
    await world.query("delete from app.gas_account");
    for (const post of posts)
      expect((await post()).error).toMatchObject({ hint: expect.stringContaining("refunded") });
    await eventually(() => world.usdOf(stranger.address), 2n * PRICE);
  });

  test("confirm no payment that opened a contract before it can be marked as the deposit, and confirm it later", async () => {
    await world.query("delete from app.gas_account");
    const [client, stranger] = [await world.newAgent({ usd: "1" }), await world.newAgent()];
    const { payment, send } = await signedCall(client, "/v1/contracts", await draft(world, small), world);
    const { data } = await client.get<TermsView>(`/v1/contracts/${payment.to}/terms`);
    await frontRun(world, stranger, payment);
    await openFromBalance(world, stranger, data);
    await spendBudget();
    expect((await send()).error).toMatchObject({
      code: "rate_limited",
      message: expect.stringContaining("whether this payment was its deposit is not known yet"),
    });
    await world.query("delete from app.gas_account");
    expect((await send()).status).toBe(200);
    await expect.poll(() => operationsOf(client, "refund-direct-transfer")).toBe(1);
  });

  test("refuse no vote, whose window ends, for what others left unpaid", async () => {
    await world.query("delete from app.gas_account");
    const juror = await newJuror(world);
    const { id } = await disputed<{ id: string }>(world, await newPair(world), small);
    await spendBudget();
    const stake = await juror.pay("/v1/agents/me/stake", { amount: "1000" });
    expect(stake.error).toMatchObject({ code: "rate_limited", details: { limit: "budget" } });
    await vote(juror, id, "met", "met", "met");
  });

  test("refuse a sign-in that is narrower than the current delegation, also the first of a day, but no other", async () => {
    await world.query("delete from app.gas_account");
    const agent = await world.newAgent({ usd: "1" });
    const { id } = await created<{ id: string }>(world, agent, small);
    ok(await agent.post(`/v1/contracts/${id}/cancel`));
    await world.query("update app.operation set created_at = now() - interval '2 days' where caller = $1", [
      agent.address,
    ]);
    await spendBudget();
    const narrow = await signedFor(agent, 3600);
    expect((await narrow()).error).toMatchObject({
      code: "rate_limited",
      message: expect.stringContaining("No key was issued"),
      details: { limit: "budget" },
    });
    expect(await operationsOf(agent, "delegate")).toBe(1);
    expect((await again(agent)).address).toBe(agent.address);

    await world.query("delete from app.gas_account");
    const narrowLater = await signedFor(agent, 3600);
    expect((await narrowLater()).status).toBe(201);
    const states = () =>
      world.query("select distinct state from app.operation where caller = $1", [agent.address]);
    await expect.poll(states).not.toContainEqual({ state: expect.stringMatching(/queued|held|sent/) });
    await spendBudget();
    const longer = await signedFor(agent, 7200);
    expect((await longer()).status, "a wider sign-in").toBe(201);
    expect(await operationsOf(agent, "delegate")).toBe(2);
  });
});

async function revokeAll(agent: Agent): Promise<ApiResponse> {
  const proof = await signedChallenge(world, agent);
  return world.call("POST", `/v1/agents/${agent.address}/api-key/revoke`, { body: proof });
}

/** The same address with a new key. */
async function again(agent: Agent): Promise<Agent> {
  await world.moveTime(2);
  return signIn({ url: world.url, chainId: world.chainId, account: agent.account });
}

test("reads that hang take no connection from payments, and end with 503", async () => {
  await stack.restartService({
    DATABASE_READ_CONNECTIONS: "2",
    STATEMENT_TIMEOUT_MS: "3000",
    SETTLEMENT_WAIT_MS: PATIENT_MS,
  });
  const blocker = await world.pool.connect();
  try {
    await blocker.query("begin; lock table app.complaint in access exclusive mode");
    const { id } = await matched(world, { client, worker });
    const hanging = Array.from({ length: 30 }, () => client.get(`/v1/contracts/${id}/complaints`));
    for (let i = 0; i < 3; i++) await matched(world, { client, worker });
    expect((await client.get(`/v1/contracts/${id}`)).status).toBe(200);
    const [first] = await Promise.all(hanging.slice(0, 1));
    expect(first?.error).toMatchObject({ code: "unavailable", retryable: true });
    await blocker.query("rollback");
    for (const { status } of await Promise.all(hanging)) expect([200, 503]).toContain(status);
    expect((await client.get(`/v1/contracts/${id}/complaints`)).status).toBe(200);
  } finally {
    blocker.release(true);
  }
});

const usd = (amount: string) => parseUnits(amount, 6);

// Last, because it ends everything but the chain.
test("if the service ends for good, parties and voters finish a dispute, a review and an open tender on chain, to the unit", async () => {
  const client = await world.newAgent({ usd: "152.5" });
  const worker = await world.newAgent({ usd: "5" });
  const jury = await Promise.all([1, 2, 3].map(() => newJuror(world, { usd: "7.5" })));
  const ballots: Outcome[][] = [
    ["met", "met", "not met"],
    ["met", "met", "not met"],
    ["met", "unclear", "met"],
  ];
  const tender = await created(world, client);
  const reviewed = await delivered(world, { client, worker });
  const judged = await disputed(world, { client, worker });
  const votes = await Promise.all(
    jury.map((juror, i) => vote(juror, judged.id, ...(ballots[i] as Outcome[]))),
  );
  const escrows = [tender.id, reviewed.id, judged.id] as Address[];
  const treasury = localAccount(9).address;
  const before = await world.usdOf(treasury);
  const holdings = () => Promise.all(escrows.map((escrow) => world.usdOf(escrow)));
  expect(await holdings()).toEqual([usd("50"), usd("52.5"), usd("77.5")]);

  const { indexer, postgres } = stack.network.parts;
  await stack.service.stop();
  await indexer.stop();
  await postgres?.stop();
  await expect(fetch(`${world.url}/health`)).rejects.toThrow();

  const [buyer, seller] = [await alone(world, client), await alone(world, worker)];
  const owners = await Promise.all(jury.map((juror) => alone(world, juror)));
  await buyer.cancel(tender.id);
  expect(await buyer.settle(tender.id), "its own transaction").toMatch(/^0x/);
  await world.moveTime(DAY);
  for (const [i, owner] of owners.entries()) await owner.openVote(judged.id, votes[i]?.salt);
  await seller.tally(judged.id);
  expect(await seller.settle(judged.id)).toMatch(/^0x/);
  for (const owner of owners) await owner.claim(judged.id);
  await world.moveTime(3 * DAY);
  expect(await seller.settle(reviewed.id)).toMatch(/^0x/);
  expect(await buyer.settle(reviewed.id), "settled already").toBeNull();

  expect(await holdings()).toEqual([0n, 0n, 0n]);
  expect(await world.usdOf(client.address)).toBe(usd("50") + usd("18.166667"));
  expect(await world.usdOf(worker.address)).toBe(usd("50") + usd("35"));
  expect((await world.usdOf(treasury)) - before).toBe(usd("2.5") + usd("1.833333"));
  expect(await Promise.all(jury.map(({ address }) => world.usdOf(address)))).toEqual(
    ["9.125", "9.125", "4.25"].map(usd),
  );

  for (const owner of owners) await owner.unstake();
  await world.moveTime(2 * DAY);
  for (const owner of owners) await owner.withdrawStake();
  expect(await Promise.all(jury.map(({ address }) => tokensOf(world, address)))).toEqual(
    [1030, 1030, 1010].map((tokens) => parseEther(String(tokens))),
  );
});
