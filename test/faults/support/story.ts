/** The activity during a fault: creations, a race for a tender, and a contract that is carried to its end. */
import { afterAll, afterEach, expect } from "vitest";
import { until } from "../../../tools/local/processes.js";
import type { Agent } from "../../support/agent.js";
import { type Chance, createChance } from "../../support/random.js";
import { audit } from "./audit.js";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.js";
import { type Customers, createCustomers } from "./customers.js";

const ENDED_TIMEOUT_MS = 150_000;
/** Longer than all waits of an audit that finds faults: it names them, and ends before the next test. */
const AUDIT_TIMEOUT_MS = 900_000;

export interface Scene {
  cluster: Cluster;
  customers: Customers;
  /** Exceptions that the audit makes. */
  allowed: { ignoredEscrows: Set<string> };
  clients: [Agent, Agent, Agent];
  workers: [Agent, Agent];
}

/** A cluster with three clients and two workers for the tests of one file. It is audited and healed after each of them. */
export async function useScene(name: string, options: ClusterOptions = {}): Promise<Scene> {
  const cluster = await startCluster(options);
  afterAll(() => cluster.stop());
  try {
    const customers = createCustomers(cluster, name);
    const clients = (await customers.join(3)) as Scene["clients"];
    const workers = (await customers.join(2)) as Scene["workers"];
    const allowed = { ignoredEscrows: new Set<string>() };
    const scene: Scene = { cluster, customers, clients, workers, allowed };
    afterEach(async ({ task }) => {
      try {
        if (task.result?.state !== "fail") await expectTruth(scene);
      } finally {
        await cluster.heal();
      }
    }, AUDIT_TIMEOUT_MS);
    return scene;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

export interface StoryOptions {
  /** A reorg can undo the end after it was reported. The story then expects it to show again. */
  mayGoBack?: boolean;
}

/**
 * Three creations, a race of two workers for a tender, and a delivery that is approved, all at once. Their
 * prerequisites exist before `prepare` is called. Await `done` after the fault; it rejects if any of them goes wrong.
 */
export async function startStory(
  { customers, clients, workers }: Scene,
  prepare: () => Promise<void> = async () => {},
  { mayGoBack = false }: StoryOptions = {},
): Promise<{ done: Promise<void> }> {
  const [client, worker] = [clients[0], workers[0]];
  const tender = await customers.create(client);
  const matched = await customers.create(client);
  expect([tender.status, matched.status]).toEqual([200, 200]);
  expect((await customers.accept(worker, matched.data.id)).status).toBe(200);

  await prepare();
  const created = clients.map((one) => customers.create(one));
  const raced = workers.map((one) => customers.accept(one, tender.data.id));
  const { id } = matched.data;
  const take = async (agent: Agent, act: string, body?: unknown): Promise<void> => {
    // A repeated action whose first response was lost meets its own effect: 409. Then the status shows the outcome.
    expect([200, 409]).toContain((await customers.act(agent, id, act, body)).status);
  };
  const ended = /^(resolved|settled-all-met)$/;
  const finished = async (): Promise<boolean> => {
    await take(worker, "delivery", { delivery: "ipfs://x" });
    await take(client, "approve");
    const isEnded = async (): Promise<boolean> =>
      ended.test((await customers.read(client, id)).data?.status ?? "");
    if (!mayGoBack) return isEnded();
    await until("the end shows", isEnded, { timeoutMs: ENDED_TIMEOUT_MS });
    return true;
  };
  const finishing = finished();
  const finish = async (): Promise<void> => {
    expect((await Promise.all(created)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await Promise.all(raced)).map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await finishing).toBe(true);
  };
  const done = finish();
  done.catch(() => {});
  return { done };
}

/** Waits until everything is at rest, and finds no fault. */
export async function expectTruth({ cluster, customers, allowed }: Scene): Promise<void> {
  expect(await audit(cluster, customers, allowed)).toEqual([]);
}

/** At rest, the gas of all batches is on the accounts, each once. Each share is rounded. */
export async function expectGasChargedOnce(scene: Scene): Promise<void> {
  await expectTruth(scene);
  const { rows } = await scene.cluster.pool.query<{ spent: number; charged: number; shares: number }>(`
    select (select sum(gas_used)::float8 from app.batch) as spent,
      (select sum(used)::float8 from app.gas_account where address <> '*') as charged,
      (select count(*)::int from app.operation) as shares`);
  const [gas] = rows;
  expect(gas?.spent).toBeGreaterThan(0);
  expect(Math.abs((gas?.spent ?? 0) - (gas?.charged ?? 0))).toBeLessThanOrEqual(gas?.shares ?? 0);
}

/** The same choices for the same FAULT_SEED. */
export const seededChance = (salt: number): Chance =>
  createChance(Number(process.env.FAULT_SEED ?? 1) * 2_654_435_761 + salt);
