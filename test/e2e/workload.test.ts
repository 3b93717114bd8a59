/** Workload: an agent's open and past contracts and votes, by role, as time passes (docs/rules.md 59). */

import type { Address } from "viem";
import { expect, test } from "vitest";
import { readWorkload, type Workload, type WorkloadView } from "../../src/features/records/read-workload.js";
import type { Agent } from "../support/agent.js";
import { recruit } from "../support/chain.js";
import { created, DAY, disputed, HOUR, newJuror, newPair, untilStatus, vote } from "../support/contracts.js";
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

test("is empty for an agent that only signed in, and unknown for an address that never did", async () => {
  const idle = await world.newAgent();
  expect(await workloadOf(idle.address)).toEqual({ data: NONE, truncated: false });
  expect(await workloadOf(idle.account.address)).toEqual({ data: NONE, truncated: false });
  const unknown = await client.get(`/v1/agents/0x${"ab".repeat(20)}/workload`);
  expect([unknown.status, unknown.error?.code]).toEqual([404, "not_found"]);
  expect((await client.get("/v1/agents/me/workload")).error?.code).toBe("invalid_request");
  expect((await fetch(`${world.url}/v1/agents/${idle.address}/workload`)).status).toBe(401);
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

test("keeps votes pending and unseen until the tally, and shows them with the majority after it", async () => {
  const [silent, voter] = [await newJuror(world), await newJuror(world)];
  const { id } = await disputed(world, { client, worker });
  expect((await workloadOf(voter.address)).data).toEqual(NONE);
  await vote(voter, id, "met", "not met", "unclear");

  const pending = [0, 1, 2].map((criterionIndex) => ({ contractId: id, criterionIndex }));
  for (const reader of [client, voter]) {
    expect((await workloadOf(voter.address, reader)).data).toEqual({ ...NONE, pendingBaVotes: pending });
  }
  expect((await workloadOf(silent.address)).data).toEqual(NONE);
  expect((await workloadOf(client.address)).data.activeAsClient).toEqual([id]);

  await world.increaseTime(DAY);
  await untilStatus(client, id, "settled-partial");
  const resolved = (["met", "not met", "unclear"] as const).map((word, criterionIndex) => ({
    contractId: id,
    criterionIndex,
    vote: word,
    majorityOutcome: word,
  }));
  expect((await workloadOf(voter.address)).data).toEqual({ ...NONE, resolvedBaVotes: resolved });
  expect((await workloadOf(client.address)).data).toEqual({ ...NONE, completedAsClient: [id] });
  expect((await workloadOf(worker.address)).data).toEqual({ ...NONE, completedAsWorker: [id] });
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
  const drawn = async (): Promise<Address[]> => {
    const { rows } = await world.pool.query("select backup_agent from onchain.draw where contract_id = $1", [
      id,
    ]);
    return rows.map((row: { backup_agent: Address }) => row.backup_agent);
  };
  await expect.poll(async () => (await drawn()).length).toBe(1);
  const [agent] = (await drawn()) as [Address];
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
  const deps = { db: world.db, clock: { now: () => Math.floor(Date.now() / 1000) } as never };
  const ask = { address: buyer.address, caller: buyer.address };
  const cut = await readWorkload(deps, { ...ask, limit: 1 });
  expect(cut).toEqual({ data: { ...NONE, activeAsClient: [newest.id] }, truncated: true });
  expect((await readWorkload(deps, { ...ask, limit: 2 })).truncated).toBe(false);
});
