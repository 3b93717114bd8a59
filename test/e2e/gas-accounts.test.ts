/** Relayed calls are free for agents. Attacks that make the operator pay for them, and the limits at which they stop. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Agent, type Answer, signIn } from "../support/agent.js";
import { created, draft, eventually, matched, newPair, ok, signedChallenge } from "../support/contracts.js";
import { type Stack, startStack } from "../support/stack.js";
import { openWorld, type World } from "../support/world.js";
import { worstGas } from "../support/worst-gas.js";

const ALLOWANCE = 1_200_000;
const BUDGET = 2_400_000;
/** A lifecycle with a delegation and its revocation: what can follow once the last operation was let through. */
const CYCLE = 500_000;
const PRICE = 1_000_000n;
let stack: Stack;
let world: World;

beforeAll(async () => {
  const env = { GAS_ALLOWANCE: String(ALLOWANCE), GAS_BUDGET: String(BUDGET) };
  stack = await startStack({ env });
  world = await openWorld(stack.info);
});
afterAll(async () => {
  await world?.close();
  await stack?.stop();
});

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
async function untilRefused(cycle: () => Promise<Answer>): Promise<Answer> {
  for (let cycles = 0; cycles < 30; cycles += 1) {
    const answer = await cycle();
    if (answer.status === 429) return answer;
    ok(answer, answer.status === 201 ? 201 : 200);
  }
  throw new Error("the attack is not refused");
}

const small = { budgetOrPrice: "1.0" };

interface Challenge {
  challengeId: string;
  message: string;
}

describe("gas accounts", { timeout: 300_000 }, () => {
  it("stop an address that creates and cancels in a loop, but not its way out", async () => {
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
    const bound = worstGas(
      { allowance: ALLOWANCE, budget: BUDGET },
      { addresses: 1, clients: 1, hours: 0.1, challengesPerMinute: 10_000 },
    );
    expect((await gasPaid()) - before).toBeLessThan(bound + CYCLE);

    expect((await attacker.post(`/v1/contracts/${open}/cancel`)).status).toBe(200);
    await eventually(() => world.usdOf(attacker.address), 100n * PRICE);
  });

  it("stop new addresses that delegate, decline and revoke in a loop, but not an agent that earns its gas", async () => {
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
    const bound = worstGas(
      { allowance: ALLOWANCE, budget: BUDGET },
      { addresses: 1000, clients: 1000, hours: 0.2, challengesPerMinute: 10_000 },
    );
    expect(await gasPaid()).toBeLessThan(bound + CYCLE);

    expect(await matched(world, earning)).toMatchObject({ status: "matched" });
  });

  it("stop an address that changes with each sign-in what it delegates", async () => {
    await world.query("delete from app.gas_account where address = '*'");
    const agent = await world.newAgent({ usd: "1" });
    const { id } = await created<{ id: string }>(world, agent, small);
    ok(await agent.post(`/v1/contracts/${id}/cancel`));
    const before = await gasPaid();
    let minutes = 60;
    const refused = await untilRefused(async () => {
      await delay(1100);
      const body = { operatorActions: "all", operatorUntil: await world.inSeconds(60 * minutes++) };
      const path = `/v1/agents/${agent.address}`;
      const challenge = await world.call<Challenge>("POST", `${path}/challenge`, { body });
      const { challengeId, message } = ok(challenge);
      const signature = await agent.account.signMessage({ message });
      const answer = await world.call("POST", `${path}/api-key`, { body: { challengeId, signature } });
      await gasPaid();
      return answer;
    });
    expect(refused.error).toMatchObject({ code: "rate_limited" });
    expect(minutes).toBeGreaterThan(61);
    const bound = worstGas(
      { allowance: ALLOWANCE, budget: BUDGET },
      { addresses: 1, clients: 1, hours: 0.2, challengesPerMinute: 10_000 },
    );
    expect((await gasPaid()) - before).toBeLessThan(bound + CYCLE);
  });

  it("let an address without gas delegate once a day, for the contracts that it has", async () => {
    let worker = await world.newAgent();
    await world.query("insert into app.gas_account (address, used, earned, owed) values ($1, $2, 0, $2)", [
      worker.address,
      10 * ALLOWANCE,
    ]);
    await world.query("delete from app.gas_account where address = '*'");
    const decline = async () => {
      const client = await world.newAgent({ usd: "1" });
      const reserved = { ...small, awardMethod: "direct_award", worker: worker.address };
      const { id } = await created<{ id: string }>(world, client, reserved);
      return worker.post(`/v1/contracts/${id}/accept`, { accept: false });
    };
    expect((await decline()).status).toBe(200);
    ok(await revokeAll(worker));
    await gasPaid();
    worker = await again(worker);
    expect((await decline()).error).toMatchObject({ code: "rate_limited", details: { limit: "allowance" } });
  });
});

async function revokeAll(agent: Agent): Promise<Answer> {
  const proof = await signedChallenge(world, agent);
  return world.call("POST", `/v1/agents/${agent.address}/api-key/revoke`, { body: proof });
}

/** The same address with a new key. */
async function again(agent: Agent): Promise<Agent> {
  await delay(1100);
  return signIn({ url: world.url, chainId: world.chainId, account: agent.account });
}
