/** Row 40: everything is killed at once under load, and random faults are chosen by FAULT_SEED. */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { FATES } from "./support/cluster.js";
import { expectTruth, seededRandom, startStory, useScene } from "./support/story.js";

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
  await expectTruth(scene);
});

it("rows 1, 6, 11, 14, 15, 19 at random: each payment is still applied exactly once", async () => {
  const random = seededRandom(40);
  const faults: (() => Promise<unknown>)[] = [
    async () => {
      const victim = cluster.processes[random(cluster.processes.length)];
      await victim?.kill();
      await delay(random(1000));
      await victim?.start();
    },
    async () =>
      cluster.pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('working-contracts', 'relayer-lock')",
      ),
    async () => {
      const victim = cluster.processes[random(cluster.processes.length)];
      await victim?.rpc.refuse(true);
      await delay(random(1500));
      await victim?.rpc.refuse(false);
    },
    async () => {
      await cluster.blocks.pause();
      await cluster.reorganise(1 + random(DEEPEST), FATES[random(FATES.length)]);
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
    await faults[random(faults.length)]?.();
    await delay(random(600));
  }
  for (const { done } of stories) await done;
  await expectTruth(scene);
  expect(cluster.processes.filter((one) => !one.isRunning())).toEqual([]);
});
