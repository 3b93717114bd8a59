/** The sandbox as a newcomer's agent uses it. A service for the public loads none of it (test/unit/production-modules.test.ts). */
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { Play } from "../../tools/local/sandbox/plays.js";
import type { Agent } from "../support/agent.js";
import { created, DAY, ok, untilStatus } from "../support/contracts.js";
import { eventually } from "../support/event-log.js";
import { useSandboxed } from "../support/sandboxed.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { url, sandbox } = await useSandboxed(world);

async function call<T>(method: string, path: string, body?: unknown): Promise<{ status: number; data: T }> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, ...((await response.json()) as { data: T }) };
}

async function play(script: Record<string, unknown>): Promise<Play> {
  const { status, data } = await call<Play>("POST", "/sandbox/counterparties", script);
  expect(status).toBe(201);
  return data;
}

const ended = (id: string) =>
  eventually("the counterparty is done", async () => {
    const { data } = await call<Play>("GET", `/sandbox/counterparties/${id}`);
    if (data.state === "failed") throw new Error(data.steps.join("; "));
    return data.state === "done";
  });

const newcomer = (): Promise<Agent> => world.newAgent();

describe("the sandbox", () => {
  test("describes itself", async () => {
    const text = await (await fetch(`${url}/sandbox`)).text();
    for (const path of ["faucet", "clock", "counterparties"]) expect(text).toContain(`/sandbox/${path}`);
  });

  test("grants money and tokens", async () => {
    const agent = await newcomer();
    const gift = { address: agent.address, usd: "12.5", tokens: "3" };
    expect(await call("POST", "/sandbox/faucet", gift)).toEqual({ status: 200, data: gift });
    expect(await world.usdOf(agent.address)).toBe(12_500_000n);

    const page = await (await fetch(`${url}/sandbox`, { headers: { accept: "text/html" } })).text();
    expect(page).toContain('<form class="panel act" method="post" action="/sandbox/faucet">');
    const assets = (page.match(/\/assets\/[^"]+/g) ?? []).map(
      async (path) => (await fetch(`${url}${path}`)).status,
    );
    expect(await Promise.all(assets)).toEqual([200, 200]);
    const { address } = await newcomer();
    const filledIn = new URLSearchParams({ address, usd: "1000", tokens: "1000" });
    const sent = { method: "POST", body: filledIn, redirect: "manual" } as const;
    const given = await fetch(`${url}/sandbox/faucet`, sent);
    expect([given.status, given.headers.get("location")]).toEqual([303, `/agents/${address}`]);
    expect(await world.usdOf(address)).toBe(1_000_000_000n);
    for (const wrong of [
      {},
      { address: agent.address },
      { address: "0x1", usd: "1" },
      { ...gift, usd: "-1" },
      { ...gift, usd: "0" },
      { ...gift, usd: "1000000.1" },
      { ...gift, tokens: "10001" },
    ]) {
      expect((await call("POST", "/sandbox/faucet", wrong)).status, JSON.stringify(wrong)).toBe(400);
    }
    expect(await world.usdOf(agent.address)).toBe(12_500_000n);
  });

  test("grants to many at once", async () => {
    const addresses = Array.from({ length: 5 }, () => privateKeyToAddress(generatePrivateKey()));
    const gifts = addresses.map((address) => call("POST", "/sandbox/faucet", { address, usd: "1" }));
    expect((await Promise.all(gifts)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await Promise.all(addresses.map(world.usdOf))).toEqual(addresses.map(() => 1_000_000n));
  });

  test("has a client that approves the newcomer's delivery", async () => {
    const worker = await newcomer();
    await call("POST", "/sandbox/faucet", { address: worker.address, usd: "10" });
    const client = await play({ role: "client", title: "Write a haiku", price: "20" });
    const id = client.contractId as string;
    expect((await worker.get<ContractView>(`/v1/contracts/${id}`)).data).toMatchObject({
      status: "created",
      client: client.addresses[0],
      title: "Write a haiku",
    });
    ok(await worker.pay(`/v1/contracts/${id}/accept`, { accept: true }));
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://haiku" }));
    await ended(client.id);
    await untilStatus(worker, id, "settled-all-met");
    expect(await world.usdOf(worker.address)).toBe(10_000_000n + 19_000_000n);
  });

  test("has a worker that delivers, and Backup Agents that judge the newcomer's dispute", async () => {
    sandbox.start();
    const client = await newcomer();
    await call("POST", "/sandbox/faucet", { address: client.address, usd: "100" });
    const { id } = await created(world, client);
    // The jury must have staked before the match.
    const jury = await play({ role: "backup-agents", contractId: id, votes: ["met", "met", "not met"] });
    expect(jury.addresses).toHaveLength(3);
    const worker = await play({ role: "worker", contractId: id });
    await ended(worker.id);
    ok(await client.pay(`/v1/contracts/${id}/dispute`));
    await ended(jury.id);
    const { data } = await call<{ now: string }>("GET", "/sandbox/clock");
    const moved = await call<{ now: string }>("POST", "/sandbox/clock", { advanceSeconds: DAY });
    expect(moved.status).toBe(200);
    expect(Date.parse(moved.data.now)).toBeGreaterThanOrEqual(Date.parse(data.now) + DAY * 1000);
    await world.increaseTime(1);
    const settled = await untilStatus(client, id, "settled-partial");
    expect(settled.criteriaMet).toEqual(["met", "met", "not met"]);
    expect(await world.usdOf(client.address), "client").toBe(100_000_000n - 52_500_000n + 18_166_667n);
    const [address] = worker.addresses as [`0x${string}`];
    expect(await world.usdOf(address), "worker").toBe(1_000_000_000_000n - 2_500_000n + 35_000_000n);
  });

  test("has a client that disputes, and one that never responds", async () => {
    const worker = await newcomer();
    await call("POST", "/sandbox/faucet", { address: worker.address, usd: "5" });
    const jury: Play[] = [];
    const plans = ["dispute", "nothing"] as const;
    const [disputed, unanswered] = await Promise.all(
      plans.map(async (plan) => {
        const { id, contractId } = await play({ role: "client", plan });
        ok(await worker.pay(`/v1/contracts/${contractId}/accept`, { accept: true }));
        if (plan === "dispute") {
          jury.push(await play({ role: "backup-agents", contractId, votes: ["not met", "not met"] }));
        }
        ok(await worker.post(`/v1/contracts/${contractId}/delivery`, { delivery: "ipfs://work" }));
        await ended(id);
        return contractId as string;
      }),
    );
    await ended((jury[0] as Play).id);
    // One day first: votes must be opened within a day after the window.
    await call("POST", "/sandbox/clock", { advanceSeconds: DAY });
    await untilStatus(worker, disputed as string, "settled-none-met");
    await call("POST", "/sandbox/clock", { advanceSeconds: 5 * DAY });
    await world.increaseTime(1);
    await untilStatus(worker, unanswered as string, "settled-all-met");
    expect(await world.usdOf(worker.address)).toBe(5_000_000n - 5_000_000n + 50_000_000n);
  });

  test("has a worker that withdraws, and says why one could not play", async () => {
    const client = await newcomer();
    await call("POST", "/sandbox/faucet", { address: client.address, usd: "100" });
    const { id } = await created(world, client);
    await ended((await play({ role: "worker", contractId: id, plan: "withdraw" })).id);
    await untilStatus(client, id, "cancelled-withdrawn");
    const late = await play({ role: "worker", contractId: id });
    await eventually("it fails", async () => {
      const { data } = await call<Play>("GET", `/sandbox/counterparties/${late.id}`);
      return data.state === "failed" && data.steps.length > 0;
    });
    // A price below the minimum is rejected by the service, at once.
    const cheap = await play({ role: "client", price: "0.001" });
    expect(cheap).toMatchObject({ state: "failed", contractId: null });
    expect(cheap.steps.join()).toContain("0.01");
    expect((await call("GET", "/sandbox/counterparties/nobody")).status).toBe(404);
    expect((await call("POST", "/sandbox/counterparties", { role: "king" })).status).toBe(400);
  });

  test("moves the clock forward only", async () => {
    const at = async (): Promise<number> =>
      Date.parse((await call<{ now: string }>("GET", "/sandbox/clock")).data.now) / 1000;
    const before = await at();
    for (const body of [
      {},
      { advanceSeconds: 0 },
      { advanceSeconds: -1 },
      { advanceSeconds: 401 * DAY },
      { to: "2020-01-01T00:00:00Z" },
      { to: await world.inSeconds(401 * DAY) },
      { to: "tomorrow" },
    ]) {
      expect((await call("POST", "/sandbox/clock", body)).status, JSON.stringify(body)).toBe(400);
    }
    expect((await at()) - before, "a rejected move changes nothing").toBeLessThan(60);

    const moves = [{ advanceSeconds: 120 }, { advanceSeconds: 60 }, { to: await world.inSeconds(600) }];
    const answers = await Promise.all(moves.map((body) => call("POST", "/sandbox/clock", body)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await at()) - before).toBeGreaterThanOrEqual(600);
  });
});
