/**
 * The stack of the project `cluster`: two API processes behind a load balancer, two relayer processes with the same
 * signers, one worker and one indexer, all on one Postgres. To the end-to-end tests it looks like one process.
 */
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { freePort } from "../../tools/local/ports.js";
import { startTestNetwork } from "./network.js";
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
  const { network, guardian, logs, stop } = await startTestNetwork({ name: "cluster-" });
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
    await stop();
  };
}
