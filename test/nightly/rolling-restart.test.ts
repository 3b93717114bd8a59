/**
 * docs/deployment.md and the runbook, step by step: each process by itself, two of what serves and sends, a new master key, and no
 * failed call while every process is replaced.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, generatePrivateKey, privateKeyToAccount } from "@working-contracts/client/index";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Guardian, startGuardian } from "../../src/indexer/supervision/processes.js";
import { type Network, startNetwork } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { BLOCK_SECONDS } from "../support/blocks.js";
import { runOperator, type ServiceProcess, startServiceProcess } from "../support/programs.js";
import { type LoadBalancer, startLoadBalancer } from "../support/round-robin.js";
import { serviceEnvironment } from "../support/stack.js";
import { openWorld, type World } from "../support/world.js";

const ROLES = ["api", "api", "relayer", "relayer", "worker"];
const [FORMER, NEXT] = ["11".repeat(32), randomBytes(32).toString("hex")];
const dir = mkdtempSync(join(tmpdir(), "rolling restart "));
let guardian: Guardian;
let network: Network;
let balancer: LoadBalancer;
let world: World;
const targets: string[] = [];
const processes: ServiceProcess[] = [];

beforeAll(async () => {
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  guardian = startGuardian();
  const options = { dir, guardian, persistent: false, blockTime: BLOCK_SECONDS, instant: true };
  network = await startNetwork({ ...options, postgresPassword: "test", report: () => {} });
  balancer = await startLoadBalancer(targets, await freePort());
  for (const [i, role] of ROLES.entries()) processes[i] = await launch(role, { MASTER_KEY: FORMER });
  targets.push(...apis());
  world = await openWorld({
    url: balancer.url,
    databaseUrl: network.databaseUrl,
    rpcUrl: network.rpcUrl,
    indexerUrl: network.parts.indexer.url,
    deploymentPath: network.deploymentPath,
    logs: join(dir, "logs"),
  });
});
afterAll(async () => {
  await world?.close();
  await balancer?.stop();
  await Promise.all(processes.map((process) => process.stop("SIGKILL")));
  await network?.stop();
  await guardian?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const apis = (): string[] => processes.filter((_, i) => ROLES[i] === "api").map(({ url }) => url);

async function launch(role: string, env: Record<string, string>): Promise<ServiceProcess> {
  const { RELAYER_PRIVATE_KEYS: keys, ...common } = serviceEnvironment(network, 0);
  const settings = { ...common, BASE_URL: balancer.url, ROLES: role, ...env };
  const process = await startServiceProcess({
    ...settings,
    ...(role === "relayer" && { RELAYER_PRIVATE_KEYS: keys }),
  });
  guardian.watch(process.child.pid ?? 0);
  return process;
}

/** Replaces one process after the other: the new one is ready before the former one gets SIGTERM. */
async function replaceAll(env: Record<string, string>): Promise<void> {
  for (const [i, role] of ROLES.entries()) {
    const former = processes[i] as ServiceProcess;
    processes[i] = await launch(role, env);
    targets.splice(0, targets.length, ...apis());
    await former.stop();
    expect(await former.exited).toBe(0);
  }
}

test("a new master key and three replacements of every process fail no call", {
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
      expect(await agent.reveal(id, "supplementaryMaterials")).toBe(materials);
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
  };
  await Promise.race([rotation(), calling]).finally(() => {
    isOver = true;
  });
  await calling;

  expect(waits).toEqual([]);
  expect(ids.length).toBeGreaterThan(2 * ROLES.length);
  for (const id of ids) expect(await agent.reveal(id, "supplementaryMaterials")).toBe(materials);
});
