/** What goes on while something breaks: creations, a race for a tender, a contract on its way to its end. */
import { expect } from "vitest";
import { until } from "../../../src/local/processes.js";
import type { Agent } from "../../support/agent.js";
import { type AuditOptions, audit } from "./audit.js";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.js";
import { type Customers, createCustomers } from "./customers.js";

const TAKEN_TIMEOUT_MS = 150_000;

export interface Scene {
  cluster: Cluster;
  customers: Customers;
  clients: Agent[];
  workers: Agent[];
}

/** A cluster with three clients and two workers. */
export async function openScene(name: string, options: ClusterOptions = {}): Promise<Scene> {
  const cluster = await startCluster(options);
  try {
    const customers = createCustomers(cluster, name);
    return { cluster, customers, clients: await customers.join(3), workers: await customers.join(2) };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

export interface StoryOptions {
  /** What an act stands on may be taken back: it is repeated until it is taken, or shown; never once it was. */
  mayGoBack?: boolean;
}

/**
 * Three creations, a race of two workers for a tender, and a delivery that is approved, all at once. What they stand on
 * is there before `prepare` is called. `done` is to be awaited after the fault; it fails where any of them goes wrong.
 */
export async function startStory(
  { customers, clients, workers }: Scene,
  prepare: () => Promise<void> = async () => {},
  { mayGoBack = false }: StoryOptions = {},
): Promise<{ done: Promise<void> }> {
  const [client, worker] = [clients[0] as Agent, workers[0] as Agent];
  const tender = await customers.create(client);
  const matched = await customers.create(client);
  expect([tender.status, matched.status]).toEqual([200, 200]);
  expect((await customers.accept(worker, matched.data.id)).status).toBe(200);

  const race = async (one: Agent): Promise<number> => {
    const { status } = await customers.accept(one, tender.data.id);
    if (!mayGoBack || status !== 404) return status;
    const isBack = async (): Promise<boolean> => (await customers.read(one, tender.data.id)).status === 200;
    await until("the tender is back", isBack, { timeoutMs: TAKEN_TIMEOUT_MS, intervalMs: 500 });
    return race(one);
  };

  await prepare();
  const created = clients.map((one) => customers.create(one));
  const raced = workers.map((one) => race(one));
  const { id } = matched.data;
  const statusOf = async (): Promise<string | undefined> => (await customers.read(client, id)).data?.status;
  const take = async (agent: Agent, act: string, body: unknown, shown: RegExp): Promise<void> => {
    // A repeated act whose first answer was lost meets its own effect: 409, and the status tells.
    const possible = mayGoBack ? [200, 409, 404] : [200, 409];
    let told = 0;
    const isTaken = async (): Promise<boolean> => {
      told = (await customers.act(agent, id, act, body)).status;
      if (told === 200 || !mayGoBack || !possible.includes(told)) return true;
      return shown.test((await statusOf()) ?? "");
    };
    await until(`${act} is taken`, isTaken, { timeoutMs: TAKEN_TIMEOUT_MS, intervalMs: 500 });
    expect(possible).toContain(told);
  };
  const ended = /^(resolved|settled-all-met)$/;
  const finished = async (): Promise<string | undefined> => {
    await take(worker, "delivery", { delivery: "ipfs://x" }, /^(under-review|resolved|settled-all-met)$/);
    await take(client, "approve", undefined, ended);
    let status = await statusOf();
    const isEnded = async (): Promise<boolean> => {
      status = await statusOf();
      return ended.test(status ?? "");
    };
    // What was told comes true again, whatever is taken back.
    if (mayGoBack) await until("the end shows", isEnded, { timeoutMs: TAKEN_TIMEOUT_MS });
    return status;
  };
  const finishing = finished();
  const finish = async (): Promise<void> => {
    expect((await Promise.all(created)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await Promise.all(raced)).sort()).toEqual([200, 409]);
    expect(await finishing).toMatch(ended);
  };
  const done = finish();
  done.catch(() => {});
  return { done };
}

export async function expectTruth({ cluster, customers }: Scene, options: AuditOptions = {}): Promise<void> {
  expect(await audit(cluster, customers, options)).toEqual([]);
}

/** The same things in another order. */
export function shuffled<T>(things: readonly T[], random: (limit: number) => number): T[] {
  const left = [...things];
  return things.map(() => left.splice(random(left.length), 1)[0] as T);
}

/** Numbers below `limit`, the same for the same FAULT_SEED. */
export function seededRandom(salt: number): (limit: number) => number {
  let state = (Number(process.env.FAULT_SEED ?? 1) * 2_654_435_761 + salt) >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}
