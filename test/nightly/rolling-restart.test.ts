/**
 * docs/deployment.md and the runbook, step by step: each process by itself, two of what serves and sends, a new master key,
 * new signers, and no failed call while every process is replaced, the indexer too.
 */
import { randomBytes } from "node:crypto";
import { connect, generatePrivateKey, privateKeyToAccount } from "@working-contracts/client/index";
import { type Hex, parseEther } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSigningClient } from "../../src/chain/clients.js";
import { localAccount, localSignerKeys } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { until } from "../../tools/local/processes.js";
import { mined, setSignerCall } from "../support/chain.js";
import { startTestNetwork } from "../support/network.js";
import { bundled, runOperator, type ServiceProcess, startServiceProcess } from "../support/programs.js";
import { type LoadBalancer, startLoadBalancer } from "../support/round-robin.js";
import { startProcess } from "../support/run-process.js";
import { serviceEnvironment } from "../support/stack.js";
import { openWorld, type World } from "../support/world.js";

const ROLES = ["api", "api", "relayer", "relayer", "worker"];
const [FORMER, NEXT] = ["11".repeat(32), randomBytes(32).toString("hex")];
const { network, guardian, logs, stop } = await startTestNetwork({ name: "rolling restart " });
let balancer: LoadBalancer;
let world: World;
const targets: string[] = [];
const processes: ServiceProcess[] = [];
let signers = localSignerKeys();
/** Ends the indexer that is running. */
let endIndexer: ((signal?: NodeJS.Signals) => Promise<void>) | undefined;

beforeAll(async () => {
  // That of `npm start` does not wait for others.
  await network.parts.indexer.stop();
  const indexerUrl = await replaceIndexer();
  balancer = await startLoadBalancer(targets, await freePort());
  for (const [i, role] of ROLES.entries()) processes[i] = await launch(role, { MASTER_KEY: FORMER });
  targets.push(...apis());
  world = await openWorld({
    url: balancer.url,
    databaseUrl: network.databaseUrl,
    rpcUrl: network.rpcUrl,
    indexerUrl,
    deploymentPath: network.deploymentPath,
    logs,
  });
});
afterAll(async () => {
  await world?.close();
  await balancer?.stop();
  await Promise.all(processes.map((process) => process.stop("SIGKILL")));
  await endIndexer?.("SIGKILL");
  await stop();
});

const apis = (): string[] => processes.filter((_, i) => ROLES[i] === "api").map(({ url }) => url);

async function launch(role: string, env: Record<string, string>): Promise<ServiceProcess> {
  const { RELAYER_PRIVATE_KEYS: _, ...common } = serviceEnvironment(network, 0);
  const settings = { ...common, BASE_URL: balancer.url, ROLES: role, ...env };
  const process = await startServiceProcess({
    ...settings,
    ...(role === "relayer" && { RELAYER_PRIVATE_KEYS: signers.join() }),
  });
  guardian.watch(process.child.pid ?? 0);
  return process;
}

/** Replaces one process after the other: the new one is ready before the former one gets SIGTERM. */
async function replaceAll(env: Record<string, string>, isReplaced = (_role: string) => true): Promise<void> {
  for (const [i, role] of ROLES.entries()) {
    if (!isReplaced(role)) continue;
    const former = processes[i] as ServiceProcess;
    processes[i] = await launch(role, env);
    targets.splice(0, targets.length, ...apis());
    await former.stop();
    expect(await former.exited).toBe(0);
  }
}

/** Starts an indexer, ends the former one once the new one waits for it, and resolves to its URL once it is ready. */
async function replaceIndexer(): Promise<string> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { RELAYER_PRIVATE_KEYS: _, MASTER_KEY: __, ...common } = serviceEnvironment(network, 0);
  const env = { ...common, INDEXER_PORT: new URL(url).port };
  const indexer = await bundled("src/commands/indexer.ts");
  const { child, output, exited } = startProcess(process.execPath, [indexer], { env });
  guardian.watch(child.pid ?? 0);
  const has = (what: string, condition: () => Promise<boolean>): Promise<void> =>
    until(`the next indexer ${what}`, async () => child.exitCode !== null || condition(), {
      timeoutMs: 60_000,
    }).finally(() => expect(child.exitCode, output()).toBe(null));
  if (endIndexer !== undefined) {
    await has("waits", async () => output().includes("Standing by to take over"));
    await endIndexer();
  }
  await has("is ready", async () => (await fetch(`${url}/ready`)).ok);
  endIndexer = async (name = "SIGTERM") => {
    child.kill(name);
    expect(await exited, output()).toBe(name === "SIGTERM" ? 0 : null);
  };
  return url;
}

/** "Keys" of the runbook, for all signers at once. */
async function replaceSigners(env: Record<string, string>): Promise<void> {
  const { chain } = world.publicClient;
  const owner = createSigningClient({ rpcUrl: network.rpcUrl, chain, account: localAccount(0) });
  const allow = async (keys: readonly string[], isAllowed: boolean): Promise<void> => {
    for (const key of keys) {
      const { address } = privateKeyToAccount(key as Hex);
      const call = setSignerCall(network.deployment.relay, address, isAllowed);
      await mined(world, await owner.sendTransaction(call));
    }
  };
  const former = signers;
  const next = [generatePrivateKey(), generatePrivateKey()];
  const addressesOf = (keys: readonly string[]) =>
    keys.map((key) => privateKeyToAccount(key as Hex).address.toLowerCase());
  const openBatches = async (): Promise<number> =>
    (
      await world.pool.query(
        "select 1 from app.batch where signer = any($1) and state in ('sent', 'mined')",
        [addressesOf(former)],
      )
    ).rows.length;
  const noneIsOpen = () =>
    until("no batch of theirs is open", async () => (await openBatches()) === 0, { timeoutMs: 60_000 });

  await allow(next, true);
  for (const address of addressesOf(next))
    await world.testClient.setBalance({ address: address as Hex, value: parseEther("10") });
  signers = [...former, ...next];
  await replaceAll(env, (role) => role === "relayer");
  signers = next;
  await noneIsOpen();
  await replaceAll(env, (role) => role === "relayer");
  await noneIsOpen();
  await allow(former, false);
}

test("a new master key, new signers and the replacement of every process fail no call", {
  timeout: 900_000,
}, async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  await world.fundUsd(account.address, "1000");
  const waits: string[] = [];
  const agent = await connect({
    baseUrl: balancer.url,
    account,
    clock: "service",
    spendingLimit: { perCall: "10" },
    onWaiting: (reason) => waits.push(reason),
  });
  const materials = "ipfs://materials";
  const ids: string[] = [];
  let isOver = false;
  const calling = (async () => {
    while (!isOver) {
      const { id } = await agent.create({
        title: "Posted during a restart",
        taskDescription: "Nothing to do.",
        acceptanceCriteria: ["It exists"],
        budgetOrPrice: 1,
        supplementaryMaterials: materials,
        ...(await agent.deadlines({ match: "1h", withdrawal: "2h", delivery: "3h", review: "4h" })),
      });
      ids.push(id);
      expect(await agent.readReference(id, "supplementaryMaterials")).toBe(materials);
    }
  })();
  const rotation = async (): Promise<void> => {
    await replaceAll({ MASTER_KEY: FORMER, MASTER_KEYS_OLD: NEXT });
    const both = { MASTER_KEY: NEXT, MASTER_KEYS_OLD: FORMER };
    await replaceAll(both);
    const rotated = await runOperator(["master-key", "rotate"], {
      DATABASE_URL: network.databaseUrl,
      ...both,
    });
    expect(rotated).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing left") });
    await replaceAll({ MASTER_KEY: NEXT });
    await replaceSigners({ MASTER_KEY: NEXT });
    await replaceIndexer();
    await replaceIndexer();
  };
  await Promise.race([rotation(), calling]).finally(() => {
    isOver = true;
  });
  await calling;

  expect(waits).toEqual([]);
  const [newest] = await world.query<{ signer: string }>(
    "select signer from app.batch order by id desc limit 1",
  );
  expect(signers.map((key) => privateKeyToAccount(key as Hex).address.toLowerCase())).toContain(
    newest?.signer,
  );
  expect(ids.length).toBeGreaterThan(2 * ROLES.length);
  for (const id of ids) expect(await agent.readReference(id, "supplementaryMaterials")).toBe(materials);
});
