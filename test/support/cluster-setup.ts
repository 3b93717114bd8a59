/**
 * The stack of the project `cluster`: two API processes behind a load balancer, two relayer processes with the same
 * signers, one worker and one indexer, all on one Postgres. To the end-to-end tests it looks like one process.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startGuardian } from "../../src/indexer/supervision/processes.js";
import { startNetwork } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { BLOCK_SECONDS } from "./blocks.js";
import { type ServiceProcess, startServiceProcess } from "./programs.js";
import { startLoadBalancer } from "./round-robin.js";
import { serviceEnvironment } from "./stack.js";

const PROCESSES = [
  ["api-1", "api"],
  ["api-2", "api"],
  ["relayer-1", "relayer"],
  ["relayer-2", "relayer"],
  ["worker", "worker"],
] as const;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), "cluster-"));
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  const logs = join(dir, "logs");
  mkdirSync(logs);
  const guardian = startGuardian();
  const options = { dir, guardian, persistent: false, blockTime: BLOCK_SECONDS, instant: true };
  const network = await startNetwork({ ...options, postgresPassword: "test", report: () => {} });
  const balancerPort = await freePort();

  const start = async (name: string, role: string): Promise<ServiceProcess> => {
    const settings = {
      ...serviceEnvironment(network, 0),
      BASE_URL: `http://127.0.0.1:${balancerPort}`,
      ROLES: role,
    };
    const process = await startServiceProcess(settings, { logPath: join(logs, `${name}.log`) });
    guardian.watch(process.child.pid ?? 0);
    return process;
  };
  const processes = await Promise.all(PROCESSES.map(([name, role]) => start(name, role)));
  const apis = processes.slice(0, 2).map(({ url }) => url);
  const balancer = await startLoadBalancer(apis, balancerPort);

  project.provide("stack", {
    url: balancer.url,
    databaseUrl: network.databaseUrl,
    rpcUrl: network.rpcUrl,
    indexerUrl: network.parts.indexer.url,
    deploymentPath: network.deploymentPath,
    logs,
    // Each process polls the chain four times a second.
    clockLagMs: 1000,
  });
  return async () => {
    console.log(`Requests per API process: ${balancer.counts.join(", ")}`);
    await balancer.stop();
    await Promise.all(processes.map((process) => process.stop()));
    await network.stop();
    await guardian.stop();
    if (process.env.KEEP_LOGS === undefined) rmSync(dir, { recursive: true, force: true });
    else console.log(`Logs kept in ${logs}`);
  };
}
