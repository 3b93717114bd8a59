/**
 * The stack of the project `cluster`: two API processes behind a load balancer, two relayer processes with the same
 * signers, one keeper and one indexer, all on one Postgres. To the end-to-end tests it looks like one process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startGuardian, until } from "../../src/indexer/supervision/processes.js";
import { ROOT } from "../../src/root.js";
import { startNetwork } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { startLoadBalancer } from "./round-robin.js";
import { serviceEnvironment } from "./stack.js";

const PROCESSES = [
  ["api-1", "api"],
  ["api-2", "api"],
  ["relayer-1", "relayer"],
  ["relayer-2", "relayer"],
  ["keeper", "keeper"],
] as const;
const START_TIMEOUT_MS = 120_000;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), "cluster-"));
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  const logs = join(dir, "logs");
  mkdirSync(logs);
  const guardian = startGuardian();
  const options = { dir, guardian, persistent: false, blockTime: 0.25, postgresPassword: "test" };
  const network = await startNetwork({ ...options, report: () => {} });
  const balancerPort = await freePort();

  const start = async (
    name: string,
    role: string,
  ): Promise<{ url: string; child: ChildProcess; gone: Promise<void> }> => {
    const port = await freePort();
    const log = openSync(join(logs, `${name}.log`), "a");
    const child = spawn(process.execPath, ["--import", "tsx", "src/commands/serve.ts"], {
      cwd: ROOT,
      stdio: ["ignore", log, log],
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        ...serviceEnvironment(network, port),
        BASE_URL: `http://127.0.0.1:${balancerPort}`,
        ROLES: role,
      },
    });
    guardian.watch(child.pid ?? 0);
    const ended = new AbortController();
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
    void gone.then(() => ended.abort());
    const url = `http://127.0.0.1:${port}`;
    const isReady = async (): Promise<boolean> => (await fetch(`${url}/ready`)).ok;
    await until(`${name} is ready`, isReady, { timeoutMs: START_TIMEOUT_MS, signal: ended.signal });
    return { url, child, gone };
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
    for (const { child } of processes) child.kill("SIGTERM");
    await Promise.all(processes.map(({ gone }) => gone));
    await network.stop();
    await guardian.stop();
    if (process.env.KEEP_LOGS === undefined) rmSync(dir, { recursive: true, force: true });
    else console.log(`Logs kept in ${logs}`);
  };
}
