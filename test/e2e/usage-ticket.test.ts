/** The usage ticket: outcomes that the Worker states on chain, and a service that forges checkpoints. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Checkpoint, connect } from "@working-contracts/client/index";
import { checkpointLeaf, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import { alone } from "../support/chain.js";
import { draftOf, newAgent } from "../support/client-agents.js";
import {
  checkpointBody,
  DAY,
  disputed,
  matched,
  newJuror,
  newPair,
  untilStatus,
  vote,
} from "../support/contracts.js";
import { useWorld } from "../support/world.js";
import { useUsers } from "./cli-actors.js";

const world = await useWorld();
const { client, worker } = await newPair(world);
const { newUser } = useUsers(world);

const rules = [
  { metric: "tokens", op: ">=", target: 1000 },
  { metric: "errors", op: "<", target: 5 },
  { metric: "uptime", op: ">=", target: 0.99 },
];
const ticket = { application: "usageticket", applicationTerms: { criteria: rules } };

test("a Worker that states outcomes on chain is shown by `verify`", async () => {
  const { id } = await matched(world, { client, worker }, ticket);
  await (await alone(world, worker)).deliver(id, "ipfs://x", { outcomes: ["met", "met", "met"] });
  const delivered = await untilStatus<ContractView>(client, id, "under-review");
  expect(delivered.criteriaMet).toEqual(["met", "met", "met"]);

  const reader = await connect({ baseUrl: world.url, account: client.account });
  const { equal, fields } = await reader.verify(id, { nodes: [world.info.rpcUrl], tries: 1 });
  expect(equal).toBe(false);
  expect(fields.find(({ field }) => field.startsWith("computed criteria"))).toEqual({
    field: "computed criteria, by the Worker and by the checkpoints",
    chain: ["met", "met", "met"],
    api: ["not met", "not met", "not met"],
    equal: false,
  });
});

test("a disputed ticket shows its computed outcomes until the votes replace them", async () => {
  const juror = await newJuror(world);
  const { id } = await disputed<ContractView>(world, { client, worker }, ticket);
  await vote(juror, id, "met", "met", "met");
  const { data } = await client.get<ContractView>(`/v1/contracts/${id}`);
  expect(data).toMatchObject({ status: "disputed", criteriaMet: ["not met", "not met", "not met"] });
  await world.increaseTime(DAY);
  expect((await untilStatus(client, id, "settled-all-met")).criteriaMet).toEqual(["met", "met", "met"]);
});

test("a service that forges a checkpoint cannot stop a delivery on chain", async () => {
  const seller = await newUser();
  await world.testClient.setBalance({ address: seller.address, value: 10n ** 18n });
  const account = privateKeyToAccount(seller.key as Hex);
  const [buyer, worker] = await Promise.all([newAgent(world), newAgent(world, { account, usd: "0" })]);
  const { id } = await buyer.create({
    ...(await draftOf(buyer)),
    ...{
      application: "usageticket",
      applicationTerms: { criteria: [{ metric: "pages", op: ">=", target: 2 }] },
    },
  });
  await worker.accept(id);
  const submitted: unknown[] = [];
  for (const pages of [1, 2]) {
    const body = await checkpointBody(world, { fromSequence: pages, toSequence: pages, data: { pages } });
    submitted.push(await worker.checkpoint(id, body as never));
  }
  await world.pool.query(`update app.checkpoint set data = '{"pages":1}' where contract_id = $1`, [id]);
  await expect(worker.deliver(id, "ipfs://pages")).rejects.toMatchObject({ field: "checkpoints" });

  const file = join(seller.cwd, "checkpoints.json");
  writeFileSync(file, JSON.stringify(submitted));
  const deliver = ["on-chain", "deliver", id, "ipfs://pages"];
  const given = ["--checkpoints", file, "--outcomes", "met"];
  expect((await seller.run(...deliver, "--checkpoints", process.execPath)).code).toBe(2);
  await seller.json(...deliver, ...given);
  const { fields } = await buyer.verify(id, { nodes: [world.info.rpcUrl], tries: 1 });
  const leaves = submitted.map((one) => checkpointLeaf(one as Checkpoint));
  expect(fields.find(({ field }) => field === "checkpoints, root")).toMatchObject({
    chain: rootOfLeaves(leaves),
    equal: false,
  });
  expect((await buyer.get(id)).criteriaMet).toEqual(["met"]);

  // In another order they have the same root, and another last one.
  await world.pool.query("update app.checkpoint set position = 5 - position where contract_id = $1", [id]);
  const reordered = (await buyer.verify(id, { nodes: [world.info.rpcUrl], tries: 1 })).fields;
  expect(reordered.find(({ field }) => field === "checkpoints, in sequence")).toMatchObject({
    chain: true,
    api: false,
  });
});
