/**
 * The test bed: one chain, one database, one indexer, the service in its own process, and paying agents.
 * With CPU_PROFILES=<folder>, the processes write V8 CPU profiles there.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import { signRecoverable } from "tiny-secp256k1";
import {
  type Address,
  concat,
  createTestClient,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  hexToBytes,
  http,
  parseEther,
  toHex,
} from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { startGuardian } from "../../src/indexer/supervision/guardian.js";
import { ROOT } from "../../src/root.js";
import { type Agent, signIn } from "../../test/support/agent.js";
import { bundled } from "../../test/support/programs.js";
import { serviceEnvironment } from "../../test/support/stack.js";
import { localAccount, startNetwork } from "../local/network.js";
import { freePort } from "../local/ports.js";
import { until } from "../local/processes.js";
import { memoryOf } from "../soak/report.js";
import type { Counts } from "./service.js";

export type Bed = Awaited<ReturnType<typeof startBed>>;

/** How blocks are mined: one per second, or one per transaction. */
export type Mining = "1 s blocks" | "automine";

const PEERS = "tools/bench/peers.ts";
const FUNDS = 10n ** 12n;
const SIGN_INS_AT_ONCE = 64;
/** Limits that no load reaches: at 0, their checks would not be measured. */
export const UNREACHED_LIMITS = {
  RATE_LIMIT_READS: "10000000",
  RATE_LIMIT_WRITES: "10000000",
  RATE_LIMIT_ANONYMOUS: "10000000",
  RATE_LIMIT_CHALLENGES: "10000000",
  RATE_LIMIT_PAGES: "10000000",
  GAS_ALLOWANCE: "1000000000000",
  GAS_BUDGET: "1000000000000",
};
/** Linux counts processor time in hundredths of a second. */
const MS_PER_TICK = 10;

export async function startBed() {
  const dir = mkdtempSync(join(tmpdir(), "bench-"));
  // Postgres runs as another user if this runs as root.
  chmodSync(dir, 0o755);
  mkdirSync(join(dir, "logs"));
  const guardian = startGuardian();
  const network = await startNetwork({
    guardian,
    dir,
    persistent: false,
    blockTime: 1,
    postgresPassword: "bench",
    report: () => {},
  });
  const { deployment, rpcUrl } = network;
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const testClient = testClientOf(rpcUrl);
  const owner = createSigningClient({ rpcUrl, chain, account: localAccount(0) });
  const children: ChildProcess[] = [];

  /** Starts a program as a process that listens on a free port; resolves once it is healthy. */
  async function launch(
    name: string,
    [entry, ...args]: [string, ...string[]],
    env: Record<string, string | undefined>,
  ) {
    const port = env.PORT === undefined ? await freePort() : Number(env.PORT);
    const log = createWriteStream(join(dir, "logs", `${name}.log`), { flags: "a" });
    const { CPU_PROFILES } = process.env;
    const profiling = CPU_PROFILES === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${CPU_PROFILES}`];
    const child = spawn(process.execPath, [...profiling, await bundled(entry), ...args], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: { ...process.env, ...env, PORT: String(port) },
    });
    children.push(child);
    guardian.watch(child.pid ?? 0);
    child.stdout?.pipe(log);
    child.stderr?.pipe(log);
    const url = `http://127.0.0.1:${port}`;
    await until(`${name} responds`, async () => (await fetch(`${url}/health`)).ok, { timeoutMs: 60_000 });
    return { url, pid: child.pid ?? 0, child, end: () => ended(child) };
  }

  async function launchService(name: string, env: Record<string, string | undefined> = {}) {
    const entry = name === "service" ? "tools/bench/service.ts" : "src/commands/serve.ts";
    const service = await launch(name, [entry], {
      ...serviceEnvironment(network, await freePort()),
      ...UNREACHED_LIMITS,
      LOG_LEVEL: "warn",
      SETTLEMENT_WAIT_MS: "60000",
      ...env,
    });
    const isReady = async () => (await fetch(`${service.url}/ready`)).ok;
    await until(`${name} is ready`, isReady, { timeoutMs: 60_000 });
    return service;
  }
  const service = await launchService("service");

  const mine = minerOf(testClient);

  return {
    dir,
    network,
    service,
    publicClient,
    testClient,
    mine,
    /** Removes every transaction from the node's pool. */
    dropPending: () => testClient.request({ method: "anvil_dropAllTransactions" } as never),
    /** The official facilitator with its own key. Its example does not use a nonce manager. */
    async startFacilitator(withNonceManager: boolean) {
      const key = generatePrivateKey();
      await testClient.setBalance({ address: privateKeyToAccount(key).address, value: parseEther("100") });
      return launch(withNonceManager ? "facilitator-nonce-manager" : "facilitator", [PEERS, "facilitator"], {
        RPC_URL: rpcUrl,
        PRIVATE_KEY: key,
        NONCE_MANAGER: String(withNonceManager),
      });
    },
    /** Another process that serves the API alone, with settings that replace those of the first one. */
    startApi: (env: Record<string, string | undefined> = {}) =>
      launchService("api", { ...env, ROLES: "api" }),
    /** Bare Hono and pg with the service's queries, on the same database. */
    startBare: () => launch("bare", [PEERS, "bare"], { DATABASE_URL: network.databaseUrl }),
    async newAgents(count: number): Promise<Agent[]> {
      await mine("automine");
      return newAgents({ url: service.url, chainId: chain.id, fund }, count);
    },
    /** Resident memory by process, in MiB. */
    memory() {
      const { postgres, chain: node, indexer } = network.parts;
      const pids = { service: service.pid, indexer: indexer.pid(), chain: node?.pid() };
      const own = Object.entries(pids).map(([name, pid]) => [name, memoryOf(pid) ?? 0] as const);
      return Object.fromEntries([...own, ["postgres", childrenMiB(postgres?.pid())]]) as Record<
        string,
        number
      >;
    },
    /** SQL statements and requests to the node that the service has sent so far. */
    async counts(): Promise<Counts> {
      service.child.send("counts");
      const [counts] = await once(service.child, "message");
      return counts;
    },
    /** Processor time used so far, in ms by process. Linux only. */
    cpu(facilitator?: number): Record<string, number> {
      const { postgres, chain: node, indexer } = network.parts;
      const ours = { service: service.pid, indexer: indexer.pid() };
      const pids = facilitator === undefined ? ours : { facilitator };
      const own = Object.entries({ ...pids, chain: node?.pid() }).map(([name, pid]) => [name, cpuOf(pid)]);
      const database = postgres?.pid();
      const all = [database, ...childrenOf(database)].reduce((sum: number, pid) => sum + cpuOf(pid), 0);
      return Object.fromEntries(facilitator === undefined ? [...own, ["postgres", all]] : own);
    },
    async stop(): Promise<void> {
      await Promise.all(children.map(ended));
      await network.stop();
      await guardian.stop();
      if (process.env.KEEP_LOGS === undefined) rmSync(dir, { recursive: true, force: true });
      else console.log(`Logs kept in ${join(dir, "logs")}`);
    },
  };

  async function fund(address: Address): Promise<void> {
    const data = encodeFunctionData({ abi: testUsdAbi, functionName: "mint", args: [address, FUNDS] });
    const hash = await owner.sendTransaction({ to: deployment.asset.address, data, gas: 120_000n });
    await publicClient.waitForTransactionReceipt({ hash, pollingInterval: 20 });
  }
}

export const testClientOf = (rpcUrl: string) => createTestClient({ mode: "anvil", transport: http(rpcUrl) });

/** Switches how the chain mines. */
export function minerOf(testClient: ReturnType<typeof testClientOf>) {
  return async (mining: Mining): Promise<void> => {
    // Each call switches the other mode off.
    if (mining === "automine") {
      await testClient.setIntervalMining({ interval: 0 });
      await testClient.setAutomine(true);
    } else await testClient.setIntervalMining({ interval: 1 });
  };
}

/** Paying agents that `fund` gave test dollars, signed in; needs a chain that mines each transaction. */
export async function newAgents(
  { url, chainId, fund }: { url: string; chainId: number; fund(address: Address): Promise<unknown> },
  count: number,
): Promise<Agent[]> {
  const accounts = Array.from({ length: count }, () => fastAccount(generatePrivateKey()));
  for (const { address } of accounts) await fund(address);
  const agents: Agent[] = [];
  while (agents.length < count) {
    const some = accounts.slice(agents.length, agents.length + SIGN_INS_AT_ONCE);
    agents.push(...(await Promise.all(some.map((account) => signIn({ url, chainId, account })))));
  }
  return agents;
}

/** Ends a process, unless it has already ended, and waits for it. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await exited;
}

/** Postgres's processes share most of their memory: private memory is added up, shared memory is counted once. */
function childrenMiB(pid: number | undefined): number {
  const all = [pid, ...childrenOf(pid)];
  const shared = Math.max(0, ...all.map((one) => memoryOf(one, "RssShmem") ?? 0));
  return shared + all.reduce((sum: number, one) => sum + (memoryOf(one, "RssAnon") ?? 0), 0);
}

export function childrenOf(pid: number | undefined): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Processor time of a process and of its children that have ended, in ms. */
export function cpuOf(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the name in parentheses; utime, stime, cutime and cstime are fields 14 to 17.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * MS_PER_TICK, 0);
  } catch {
    return 0;
  }
}

/** Signs payments by libsecp256k1: in JavaScript, callers would take a tenth of the processor time of what is measured. */
function fastAccount(privateKey: Hex): PrivateKeyAccount {
  const key = hexToBytes(privateKey);
  const signTypedData: PrivateKeyAccount["signTypedData"] = async (typedData) => {
    const { signature, recoveryId } = signRecoverable(hexToBytes(hashTypedData(typedData)), key);
    return concat([toHex(signature), toHex(27 + recoveryId)]);
  };
  return { ...privateKeyToAccount(privateKey), signTypedData };
}
