/**
 * Rows 27, 35, 36: the clocks, the chain, the keeper, or the service itself fails. Guards: the chain's time decides,
 * also when it stands still; statuses are computed from facts and time, not from the keeper's transactions; anyone can
 * end any contract on chain.
 */

import { setTimeout as delay } from "node:timers/promises";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { encodeFunctionData } from "viem";
import { expect, it } from "vitest";
import { until } from "../../tools/local/processes.js";
import { ok } from "../support/contracts.js";
import { expectTruth, startStory, useScene } from "./support/story.js";

const DAY = 86_400;
const scene = await useScene("time");
const { cluster, customers, clients, workers } = scene;

it.each([
  ["an hour ahead", 3600, 3600],
  ["an hour behind", -3600, -3600],
  ["apart by two minutes", 60, -60],
])("row 27: hosts whose clocks are %s follow the chain's time", async (_, ofApis, ofRelayers) => {
  await setClocks(ofApis, ofRelayers);
  await (await startStory(scene)).done;
});

it("row 35: without a keeper for days statuses are still right, and the keeper catches up", async () => {
  const [client, worker] = [clients[0], workers[0]];
  await setClocks(0, 0, { ROLES: "relayer" });
  const unmatched = await customers.create(client);
  const absent = await customers.create(client);
  expect((await customers.accept(worker, absent.data.id)).status).toBe(200);
  await cluster.moveTime(2 * DAY + 10);

  const statuses = () =>
    Promise.all(
      [unmatched, absent].map(async ({ data }) => (await customers.read(client, data.id)).data.status),
    );
  const areRight = async (): Promise<boolean> =>
    (await statuses()).join() === "cancelled-unmatched,cancelled-absent";
  // Each process sees the new block within half a second.
  await until("the statuses are right", areRight, { timeoutMs: 30_000 });
  await expectTruth(scene);

  await setClocks(0, 0, { ROLES: "relayer,worker" });
  const isPaid = async (): Promise<boolean> =>
    (await customers.usdOf(unmatched.data.id as `0x${string}`)) === 0n &&
    (await customers.usdOf(absent.data.id as `0x${string}`)) === 0n;
  await until("everything due is paid", isPaid, { timeoutMs: 60_000 });
});

it("row 35: a delivery whose deadline passes while the chain stands still is applied when it resumes", async () => {
  const [client, worker] = [clients[0], workers[0]];
  const { blocks, testClient } = cluster;
  const { id, deliveryDeadline } = ok(await customers.create(client));
  expect((await customers.accept(worker, id)).status).toBe(200);
  const halted = BigInt(Date.parse(deliveryDeadline) / 1000 - 20);
  await blocks.pause();
  await testClient.setNextBlockTimestamp({ timestamp: halted });
  await blocks.next();
  await delay(21_000);

  const delivery = { delivery: "ipfs://in time" };
  const pending = await customers.attempt(worker, `/v1/contracts/${id}/delivery`, JSON.stringify(delivery));
  expect(pending?.error?.code).toBe("settlement_pending");
  await testClient.setNextBlockTimestamp({ timestamp: halted + 2n });
  blocks.resume();
  expect((await customers.act(worker, id, "delivery", delivery)).data.status).toBe("under-review");
});

it("row 36: with the service gone for good anyone can end the contracts on chain", async () => {
  const [client, worker] = [clients[1], workers[1]];
  const created = await customers.create(client);
  expect((await customers.accept(worker, created.data.id)).status).toBe(200);
  await Promise.all(cluster.processes.map((one) => one.kill()));
  const before = await customers.usdOf(client.address);
  await cluster.moveTime(2 * DAY + 10);
  const data = encodeFunctionData({ abi: escrowAbi, functionName: "settle" });
  await cluster.strangerCall({ to: created.data.id as `0x${string}`, data });
  // The price, and the Client's share of the absent Worker's stake.
  expect((await customers.usdOf(client.address)) - before).toBe(52_000_000n);
  expect(await customers.usdOf(created.data.id as `0x${string}`)).toBe(0n);
  await cluster.heal();
});

/** Restarts every process with its clock off by this many seconds. */
async function setClocks(
  ofApis: number,
  ofRelayers: number,
  relayerEnv: Record<string, string> = {},
): Promise<void> {
  const { apis, relayers, processes } = cluster;
  await Promise.all(processes.map((one) => one.kill()));
  await Promise.all([
    ...apis.map((one) => one.start({ CLOCK_OFFSET_SECONDS: String(ofApis) })),
    ...relayers.map((one) => one.start({ CLOCK_OFFSET_SECONDS: String(ofRelayers), ...relayerEnv })),
  ]);
}
