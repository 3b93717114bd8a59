import { connect } from "@working-contracts/client/index";
/** Workload: an agent's open and past contracts and votes, by role, as time passes (docs/rules.md 59); and its record. */

import { factoryAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { packTerms } from "@working-contracts/protocol/terms";
import type { Address } from "viem";
import { expect, test } from "vitest";
import { parseStoredTerms } from "../../src/db/onchain.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { LedgerView, SettlementView } from "../../src/features/contracts/ledger.js";
import {
  type RecordView,
  readWorkload,
  type Workload,
  type WorkloadView,
} from "../../src/features/records/routes.js";
import type { Agent } from "../support/agent.js";
import { alone, mined, recruit, untilDrawn, walletOf } from "../support/chain.js";
import {
  created,
  DAY,
  delivered,
  disputed,
  draft,
  HOUR,
  newJuror,
  newPair,
  ok,
  quoteFor,
  untilStatus,
} from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

const NONE: WorkloadView = {
  activeAsWorker: [],
  completedAsWorker: [],
  activeAsClient: [],
  completedAsClient: [],
  pendingBaVotes: [],
  resolvedBaVotes: [],
};

async function workloadOf(address: string, reader: Agent = client): Promise<Workload> {
  const { status, body } = await reader.get(`/v1/agents/${address}/workload`);
  expect(status).toBe(200);
  return body as Workload;
}

test("a workload is empty for an agent that only signed in, in any letter case, and needs its address", async () => {
  const idle = await world.newAgent();
  expect(await workloadOf(idle.address)).toEqual({ data: NONE, truncated: false });
  expect(await workloadOf(idle.account.address)).toEqual({ data: NONE, truncated: false });
  expect((await client.get("/v1/agents/me/workload")).error).toMatchObject({
    code: "invalid_request",
    details: [{ path: "address", message: "must be an address: 0x and 40 hex digits" }],
  });
});

test("knows no address that only an unpaid contract names", async () => {
  const named = `0x${"e8".repeat(20)}`;
  const body = await draft(world, { awardMethod: "direct_award", worker: named });
  const { payTo } = await quoteFor(client, "/v1/contracts", body);
  const { escrowTerms } = ok(await client.get<TermsView>(`/v1/contracts/${payTo}/terms`));
  const wallet = await walletOf(world, client);
  const args = [packTerms(parseStoredTerms(escrowTerms))] as const;
  const factory = { address: world.deployment.factory, abi: factoryAbi } as const;
  await mined(world, await wallet.writeContract({ ...factory, functionName: "deploy", args }));
  await world.indexed();
  expect((await client.get(`/v1/agents/${named}/workload`)).error).toMatchObject({ code: "not_found" });
});

test("names a contract under its client at once, under its worker once matched, and closes it by the clock", async () => {
  const [buyer, seller] = [await world.newAgent({ usd: "100" }), await world.newAgent({ usd: "100" })];
  const award = { awardMethod: "direct_award", worker: seller.address };
  const lapsing = await created(world, buyer, award);
  // The order is newest first, by the second.
  await world.increaseTime(2);
  const taken = await created(world, buyer, { ...award, matchDeadline: await world.inSeconds(HOUR + 60) });
  expect((await workloadOf(buyer.address)).data).toEqual({ ...NONE, activeAsClient: [taken.id, lapsing.id] });
  expect((await workloadOf(seller.address)).data).toEqual(NONE);

  expect((await seller.pay(`/v1/contracts/${taken.id}/accept`, { accept: true })).status).toBe(200);
  expect((await workloadOf(seller.address)).data).toEqual({ ...NONE, activeAsWorker: [taken.id] });

  await world.increaseTime(HOUR);
  await untilStatus(buyer, lapsing.id, "cancelled-unmatched");
  expect((await workloadOf(buyer.address)).data).toEqual({
    ...NONE,
    activeAsClient: [taken.id],
    completedAsClient: [lapsing.id],
  });

  expect((await seller.post(`/v1/contracts/${taken.id}/withdraw`)).status).toBe(200);
  expect((await workloadOf(seller.address)).data).toEqual({ ...NONE, completedAsWorker: [taken.id] });
  expect((await workloadOf(buyer.address)).data).toEqual({
    ...NONE,
    completedAsClient: [taken.id, lapsing.id],
  });
});

test("holds the votes of an agent that was drawn as pending, and drops them if it never voted", async () => {
  await newJuror(world);
  await recruit(world, 1);
  let id: Address;
  try {
    id = (await disputed(world, { client, worker })).id as Address;
  } finally {
    await recruit(world, 0);
  }
  const drawn = await untilDrawn(world, id);
  expect(drawn).toHaveLength(1);
  const [agent] = drawn as [Address];
  const votesOf = async () => {
    const { pendingBaVotes, resolvedBaVotes } = (await workloadOf(agent)).data;
    return [...pendingBaVotes, ...resolvedBaVotes].filter(({ contractId }) => contractId === id);
  };
  expect(await votesOf()).toEqual([0, 1, 2].map((criterionIndex) => ({ contractId: id, criterionIndex })));

  await world.increaseTime(2 * DAY);
  await untilStatus(client, id, "settled-partial");
  expect(await votesOf()).toEqual([]);
});

test("shows the newest entries if there are too many, and says so", async () => {
  const buyer = await world.newAgent({ usd: "100" });
  await created(world, buyer, { budgetOrPrice: 1 });
  await world.increaseTime(2);
  const newest = await created(world, buyer, { budgetOrPrice: 1 });
  const clock = { now: () => Math.floor(Date.now() / 1000), knownBlock: () => 0n };
  const deps = { db: world.db, clock };
  const ask = { address: buyer.address, caller: buyer.address };
  const cut = await readWorkload(deps, { ...ask, limit: 1 });
  expect(cut).toEqual({ data: { ...NONE, activeAsClient: [newest.id] }, truncated: true });
  expect((await readWorkload(deps, { ...ask, limit: 2 })).truncated).toBe(false);
});

test("shows on an agent's page what it posted or agreed to, not what others name it in", async () => {
  const seller = await world.newAgent({ usd: "100" });
  const named = { worker: seller.address, awardMethod: "direct_award" };
  await created(world, client, { ...named, title: "Refund of stolen funds" });
  const agreed = await created(world, client, { ...named, title: "Agreed work" });
  ok(await seller.pay(`/v1/contracts/${agreed.id}/accept`, { accept: true }));
  const pageOf = async ({ address }: Agent) => (await fetch(`${world.url}/agents/${address}`)).text();
  const [sellers, clients] = await Promise.all([pageOf(seller), pageOf(client)]);
  expect(sellers).toContain("Agreed work");
  expect(sellers).not.toContain("Refund of stolen funds");
  expect(clients).toContain("Refund of stolen funds");
});

test("counts a payout that the token refused as received once it is claimed", async () => {
  const seller = await world.newAgent({ usd: "100" });
  const wallet = await walletOf(world, seller);
  const blacklist = async (isBlacklisted: boolean) => {
    const args = [seller.address, isBlacklisted] as const;
    const { address } = world.deployment.asset;
    const token = { address, abi: testUsdAbi, functionName: "setBlacklisted" } as const;
    await mined(world, await wallet.writeContract({ ...token, args }));
  };
  const received = async (): Promise<string[]> => {
    const response = await fetch(`${world.url}/agents/${seller.address}.json`);
    const { data, earnings } = (await response.json()) as {
      data: RecordView;
      earnings: { received: string }[];
    };
    return [data.asWorker.received, earnings.at(-1)?.received ?? ""];
  };
  const { id } = await delivered<{ id: Address }>(world, { client, worker: seller });
  await blacklist(true);
  ok(await client.post(`/v1/contracts/${id}/approve`));
  await untilStatus(client, id, "settled-all-met");
  // The keeper tries at once, and then waits an hour.
  const tries = () =>
    world.query("select state from app.operation where kind = 'claim-deferred' and escrow = $1", [id]);
  await expect.poll(tries).toEqual([{ state: "rejected" }]);
  expect(await received()).toEqual(["0.0", "0.0"]);
  const legsOfSeller = async () => {
    const { transactionHash, legs } = ok(await client.get<SettlementView>(`/v1/contracts/${id}/settlement`));
    const [mine, others] = [
      legs.filter(({ to }) => to === "worker"),
      legs.filter(({ to }) => to !== "worker"),
    ];
    for (const leg of others) expect(leg).toMatchObject({ state: "confirmed", transactionHash });
    return mine.map(({ state, transactionHash }) => ({ state, transactionHash }));
  };
  const queued = { state: "queued", transactionHash: null };
  expect(await legsOfSeller()).toEqual([queued, queued]);
  const ledger = async () => {
    const { entries, held } = ok(await client.get<LedgerView>(`/v1/contracts/${id}/ledger`));
    const out = entries.filter(({ direction, party }) => direction === "out" && party === seller.address);
    return { held, out: out.map(({ name, amount }) => ({ name, amount })) };
  };
  expect(await ledger()).toEqual({ held: "50.0", out: [] });

  await blacklist(false);
  const paidBy = await (await alone(world, seller)).claimDeferred(id);
  await expect.poll(received).toEqual(["50.0", "50.0"]);
  const paid = { state: "confirmed", transactionHash: paidBy };
  expect(await legsOfSeller()).toEqual([paid, paid]);
  expect(await ledger()).toEqual({ held: "0.0", out: [{ name: "late-payout", amount: "50.0" }] });
  const reader = await connect({ baseUrl: world.url, account: client.account });
  expect(await reader.verify(id, { nodes: [world.info.rpcUrl] })).toMatchObject({ equal: true });
});
