/** The usage ticket: criteria are computed at delivery, and approval keeps them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { type Checkpoint, connect } from "@working-contracts/client/index";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { checkpointLeaf, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { packOutcomes } from "@working-contracts/protocol/outcomes";
import canonicalize from "canonicalize";
import { type Address, type Hex, keccak256, stringToHex, zeroHash } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import type { SettlementView } from "../../src/features/contracts/ledger.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { mined, walletOf } from "../support/chain.js";
import { draftOf, newAgent } from "../support/client-agents.js";
import { checkpointBody, matched, newPair, untilStatus } from "../support/contracts.js";
import { useWorld } from "../support/world.js";
import { useUsers } from "./cli-actors.js";

const world = await useWorld();
const { client, worker } = await newPair(world, "1000");
const { newUser } = useUsers(world);

const rules = [
  { metric: "tokens", op: ">=", target: 1000 },
  { metric: "errors", op: "<", target: 5 },
  { metric: "uptime", op: ">=", target: 0.99 },
];
const ticket = { application: "usageticket", applicationTerms: { criteria: rules } };

test("pays by the last checkpoint, and anchors every checkpoint", async () => {
  const { id } = await matched(world, { client, worker }, ticket);
  const checkpoints = [
    { tokens: 10, errors: 0, uptime: 1 },
    { tokens: 1000, errors: 5, uptime: 0.995 },
  ];
  const leaves: string[] = [];
  for (const [i, data] of checkpoints.entries()) {
    const checkpoint = await checkpointBody(world, { fromSequence: i + 1, toSequence: i + 1, data });
    const posted = await worker.post(`/v1/contracts/${id}/checkpoint`, checkpoint);
    expect(posted.status, JSON.stringify(posted.body)).toBe(201);
    leaves.push(keccak256(stringToHex(canonicalize({ ...checkpoint, contractId: id }) ?? "")));
  }

  const delivered = await worker.post<ContractView>(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://x" });
  expect(delivered.data).toMatchObject({ status: "under-review", criteriaMet: ["met", "not met", "met"] });
  const { rows } = await world.pool.query(
    "select checkpoints_root from onchain.working_contract where id = $1",
    [id],
  );
  expect(rows[0].checkpoints_root).toBe(SimpleMerkleTree.of(leaves).root);

  const approved = await client.post<ContractView>(`/v1/contracts/${id}/approve`);
  expect(approved.data).toMatchObject({ status: "resolved", criteriaMet: ["met", "not met", "met"] });
  await untilStatus(client, id, "settled-partial");
  expect(await world.usdOf(client.address)).toBe(967_333_333n);
  expect(await world.usdOf(worker.address)).toBe(1_030_833_334n);
  const { data } = await client.get<SettlementView>(`/v1/contracts/${id}/settlement`);
  expect(data.legs.map(({ name, amount }) => [name, amount])).toEqual([
    ["worker-pay", "31.666667"],
    ["protocol-fee", "1.666666"],
    ["price-refund", "16.666667"],
    ["slashed-stake-to-client", "0.666666"],
    ["slashed-stake-to-treasury", "0.166667"],
    ["stake-back", "1.666667"],
  ]);
});

test("a Worker that states outcomes on chain is shown by `verify`", async () => {
  const { id } = await matched<{ id: Address }>(world, { client, worker }, ticket);
  const wallet = await walletOf(world, worker);
  const args = [keccak256(stringToHex("ipfs://x")), zeroHash, packOutcomes(["met", "met", "met"])] as const;
  const escrow = { address: id, abi: escrowAbi } as const;
  await mined(world, await wallet.writeContract({ ...escrow, functionName: "deliver", args }));
  const delivered = await untilStatus<ContractView>(client, id, "under-review");
  expect(delivered.criteriaMet).toEqual(["met", "met", "met"]);

  const reader = await connect({ baseUrl: world.url, account: client.account });
  const { equal, fields } = await reader.verify(id, { nodes: [world.info.rpcUrl] });
  expect(equal).toBe(false);
  expect(fields.find(({ field }) => field.startsWith("computed criteria"))).toEqual({
    field: "computed criteria, by the Worker and by the checkpoints",
    chain: ["met", "met", "met"],
    api: ["not met", "not met", "not met"],
    equal: false,
  });
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
  const { fields } = await buyer.verify(id, { nodes: [world.info.rpcUrl] });
  const leaves = submitted.map((one) => checkpointLeaf(one as Checkpoint));
  expect(fields.find(({ field }) => field === "checkpoints, root")).toMatchObject({
    chain: rootOfLeaves(leaves),
    equal: false,
  });
  expect((await buyer.get(id)).criteriaMet).toEqual(["met"]);

  // In another order they have the same root, and another last one.
  await world.pool.query("update app.checkpoint set position = 5 - position where contract_id = $1", [id]);
  const reordered = (await buyer.verify(id, { nodes: [world.info.rpcUrl] })).fields;
  expect(reordered.find(({ field }) => field === "checkpoints, in sequence")).toMatchObject({
    chain: true,
    api: false,
  });
});
