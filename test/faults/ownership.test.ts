/**
 * Rows 3, 4, 18: who can sign. Guards: the advisory lock with its epoch, which every write of an owner checks; leases
 * that lapse; a signer without gas leaves the queue to the others.
 */
import { parseEther } from "viem";
import { expect, it } from "vitest";
import { until } from "../../tools/local/processes.js";
import type { ServiceProcess } from "./support/service-process.js";
import { expectTruth, startStory, useScene } from "./support/story.js";

const scene = await useScene("ownership");
const { cluster } = scene;

it("row 4: of two processes with the same signers, exactly one owns each signer", async () => {
  const { pool } = cluster;
  const locks = async () =>
    (
      await pool.query<{ port: number }>(
        `select a.client_port as port from pg_locks l join pg_stat_activity a on a.pid = l.pid
         where l.locktype = 'advisory' and l.granted and l.classid = 7402002`,
      )
    ).rows;
  await until("every signer is owned", async () => (await locks()).length === cluster.signers.length, {
    timeoutMs: 60_000,
  });
  await (await startStory(scene)).done;
  expect(await locks()).toHaveLength(cluster.signers.length);
  await expectTruth(scene);
  const { rows } = await pool.query(
    "select signer from app.batch group by signer having count(distinct epoch) > 1",
  );
  expect(rows).toEqual([]);
});

it("row 3: a relayer that hangs with open connections loses its signers to another", async () => {
  const { pool, relayers, signers } = cluster;
  const locks = async (): Promise<number[]> => {
    const { rows } = await pool.query<{ port: number }>(
      "select client_port as port from pg_stat_activity where application_name = 'relayer-lock'",
    );
    return rows.map(({ port }) => port);
  };
  const areAllOf = async ({ database }: ServiceProcess): Promise<boolean> => {
    const held = (await locks()).filter((port) => database.hasPort(port));
    return held.length === signers.length;
  };
  await until("every signer is owned", async () => (await locks()).length === signers.length, {
    timeoutMs: 60_000,
  });
  const [first] = await locks();
  const owner = relayers.find(({ database }) => database.hasPort(first ?? 0)) as ServiceProcess;
  const other = relayers.find((one) => one !== owner) as ServiceProcess;

  owner.freeze();

  await until("the other process owns every signer", () => areAllOf(other), { timeoutMs: 60_000 });
  await (await startStory(scene)).done;
  owner.thaw();
});

it("row 18: a signer without gas leaves its work to the others, and raises an alarm", async () => {
  const [poor] = cluster.signers;
  const address = poor?.address ?? "0x";
  await cluster.testClient.setBalance({ address, value: 0n });
  const before = await cluster.publicClient.getTransactionCount({ address });
  const isAlarmed = async (): Promise<boolean> => (await cluster.alarms("signer_without_gas")) > 0;
  // Chance decides which signer takes a batch.
  for (let round = 0; round < 4 || (round < 12 && !(await isAlarmed())); round++) {
    await (await startStory(scene)).done;
  }
  expect(await cluster.publicClient.getTransactionCount({ address })).toBe(before);
  expect(await isAlarmed()).toBe(true);
  await cluster.testClient.setBalance({ address, value: parseEther("100") });
});
