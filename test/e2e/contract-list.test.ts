/** GET /v1/contracts: filters, groups and order. */

import { beforeAll, expect, test } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import { created, delivered, HOUR, laterThan, matched, newPair, untilStatus } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
/** Every contract in this file has this client or lists it as reserved buyer. */
const pair = await newPair(world);
const { client, worker } = pair;
const ids: Record<string, string> = {};

/** Deadlines in hours from now. Each list's order differs from that of the others, and from creation's. */
async function deadlines(match: number, delivery: number, review: number): Promise<Record<string, string>> {
  const [matchDeadline, deliveryDeadline, reviewDeadline] = await Promise.all(
    [match, delivery, review].map((hours) => world.inSeconds(hours * HOUR)),
  );
  return { matchDeadline, deliveryDeadline, reviewDeadline } as Record<string, string>;
}

beforeAll(async () => {
  const title = "Draw 100% of a_map";
  ids.open = (await created(world, client, { budgetOrPrice: 10, title, ...(await deadlines(5, 40, 80)) })).id;
  await nextSecond();
  ids.matched = (await matched(world, pair, { budgetOrPrice: 20, ...(await deadlines(3, 30, 60)) })).id;
  await nextSecond();
  ids.resolved = (await delivered(world, pair, { budgetOrPrice: 30, ...(await deadlines(4, 28, 100)) })).id;
  await client.post(`/v1/contracts/${ids.resolved}/approve`);
  await untilStatus(client, ids.resolved as string, "settled-all-met");
  await nextSecond();
  ids.cancelled = (await created(world, client, { budgetOrPrice: 40, ...(await deadlines(2, 44, 90)) })).id;
  await client.post(`/v1/contracts/${ids.cancelled}/cancel`);
  await nextSecond();
  const ticket = { application: "usageticket", applicationTerms: { criteria: [] } };
  const terms = { budgetOrPrice: 50, ...ticket, ...(await deadlines(1, 48, 72)) };
  ids.ticket = (await created(world, client, terms)).id;
});

/** Contracts of the same second are ordered by id. */
const nextSecond = async () => laterThan(world, await world.inSeconds(0));

async function list(query: string): Promise<string[]> {
  const answer = await client.get<ContractView[]>(`/v1/contracts?client=${client.address}&${query}`);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.data.map(({ id }) => id);
}

test("lists the newest first, with the fields of one contract", async () => {
  const { open, matched, resolved, cancelled, ticket } = ids;
  expect(await list("")).toEqual([ticket, cancelled, resolved, matched, open]);
  const { data } = await client.get<ContractView[]>(`/v1/contracts?client=${client.address}&limit=1`);
  const single = await client.get<ContractView>(`/v1/contracts/${ticket}`);
  expect(data[0]).toEqual(single.data);
});

test.each([
  ["status=created", ["ticket", "open"]],
  ["status=matched,settled-*", ["resolved", "matched"]],
  ["status=open", ["ticket", "open"]],
  ["status=active", ["matched"]],
  ["status=closed", ["cancelled", "resolved"]],
  ["status=cancelled-*", ["cancelled"]],
  ["awardMethod=direct_award", []],
  ["initiator=worker", []],
  ["initiator=client", ["ticket", "cancelled", "resolved", "matched", "open"]],
  ["application=usageticket", ["ticket"]],
  ["minPrice=20&maxPrice=30.0", ["resolved", "matched"]],
  ["q=100%25%20of%20a_MAP", ["open"]],
  ["q=map+draw", ["open"]],
  ["q=draw+roads", []],
  ["q=dra", []],
  ["q=%25_", []],
  ["sort=budgetOrPrice", ["open", "matched", "resolved", "cancelled", "ticket"]],
  ["sort=-budgetOrPrice&limit=2", ["ticket", "cancelled"]],
  ["sort=matchDeadline", ["ticket", "cancelled", "matched", "resolved", "open"]],
  ["sort=-deliveryDeadline", ["ticket", "cancelled", "open", "matched", "resolved"]],
  ["sort=reviewDeadline", ["matched", "ticket", "open", "cancelled", "resolved"]],
  [`backupAgent=0x${"11".repeat(20)}`, []],
])("%s", async (query, names) => {
  expect(await list(query)).toEqual(names.map((name) => ids[name]));
});

test("filters by worker in any letter case", async () => {
  const { data } = await client.get<ContractView[]>(`/v1/contracts?worker=${worker.address.toUpperCase()}`);
  expect(data.map(({ id }) => id).sort()).toEqual([ids.matched, ids.resolved].sort());
});
