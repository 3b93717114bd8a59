/** Row 40: everything is killed at once under load, and random faults are chosen by FAULT_SEED. */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { FATES } from "./support/cluster.js";
import { seededChance, startStory, useScene } from "./support/story.js";

const RANDOM_FAULTS = 10;
const DEEPEST = 5;
const scene = await useScene("chaos", { env: { CONFIRMATIONS: String(DEEPEST + 1) } });
const { cluster } = scene;

it("row 40: under load, every process is killed at once and restarted", async () => {
  const { done } = await startStory(scene);
  await delay(700);
  await Promise.all(cluster.processes.map((one) => one.kill()));
  await Promise.all(cluster.processes.map((one) => one.start()));
  await done;
});

it("rows 1, 6, 11, 14, 15, 19 at random: each payment is still applied exactly once", async () => {
  const chance = seededChance(40);
  const faults: (() => Promise<unknown>)[] = [
    async () => {
      const victim = chance.pick(cluster.processes);
      await victim.kill();
      await delay(chance.between(0, 999));
      await victim.start();
    },
    async () =>
      cluster.pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('working-contracts', 'relayer-lock')",
      ),
    async () => {
      const victim = chance.pick(cluster.processes);
      await victim.rpc.refuse(true);
      await delay(chance.between(0, 1499));
      await victim.rpc.refuse(false);
    },
    async () => {
      await cluster.blocks.pause();
      await cluster.reorganize(chance.between(1, DEEPEST), chance.pick(FATES));
      cluster.blocks.resume();
    },
    async () => {
      const { baseFeePerGas } = await cluster.publicClient.getBlock();
      await cluster.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: (baseFeePerGas ?? 1n) * 10n });
    },
  ];
  const stories = [
    await startStory(scene, undefined, { mayGoBack: true }),
    await startStory(scene, undefined, { mayGoBack: true }),
  ];
  for (let round = 0; round < RANDOM_FAULTS; round++) {
    await chance.pick(faults)();
    await delay(chance.between(0, 599));
  }
  for (const { done } of stories) await done;
  expect(cluster.processes.flatMap((one) => one.lastWords())).toEqual([]);
});
