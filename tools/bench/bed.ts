/** One chain, database, indexer, service and paying agents. CPU_PROFILES=<folder> writes V8 CPU profiles there. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { join } from "node:path";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import { signRecoverable } from "tiny-secp256k1";
import {
  type Address,
  concat,
  createTestClient,
  domainSeparator,
  encodeFunctionData,
  type Hex,
  hashStruct,
  hexToBytes,
  http,
  keccak256,
  parseEther,
  type TypedData,
  type TypedDataDefinition,
  type TypedDataDomain,
  toHex,
} from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { ROOT } from "../../src/root.js";
import { type Agent, signIn } from "../../test/support/agent.js";
import { startTestNetwork } from "../../test/support/network.js";
import { bundled } from "../../test/support/programs.js";
import { serviceEnvironment } from "../../test/support/stack.js";
import { localAccount } from "../local/network.js";
import { freePort } from "../local/ports.js";
import { textOf, until } from "../local/processes.js";
import { memoryOf } from "../soak/report.js";

export type Bed = Awaited<ReturnType<typeof startBed>>;

export type Mining = "1 s blocks" | "automine";

const PEERS = "tools/bench/peers.ts";
const FUNDS = 10n ** 12n;
const SIGN_INS_AT_ONCE = 64;
/** Limits that no load reaches: at 0, their checks would not be measured. */
const UNREACHED_LIMITS = {
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

/** API and relayer are two processes, as in Compose and Kubernetes. */
export async function startBed() {
  const { network, guardian, logs, stop } = await startTestNetwork({
    name: "bench-",
    blockTime: 1,
    instant: false,
  });
  const { deployment, rpcUrl } = network;
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const testClient = createTestClient({ mode: "anvil", transport: http(rpcUrl) });
  const owner = createSigningClient({ rpcUrl, chain, account: localAccount(0) });
  const mine = async (mining: Mining): Promise<void> => {
    // Each call switches the other mode off.
    if (mining === "automine") {
      await testClient.setIntervalMining({ interval: 0 });
      await testClient.setAutomine(true);
    } else await testClient.setIntervalMining({ interval: 1 });
  };
  const ends: (() => Promise<void>)[] = [];

  /** Starts a program as a process that listens on a free port; resolves once it is healthy. */
  async function launch(
    name: string,
    [entry, ...args]: [string, ...string[]],
    env: Record<string, string | undefined>,
  ) {
    const port = env.PORT ?? String(await freePort());
    const log = openSync(join(logs, `${name}.log`), "a");
    const { CPU_PROFILES } = process.env;
    const profiling = CPU_PROFILES === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${CPU_PROFILES}`];
    const child = spawn(process.execPath, [...profiling, await bundled(entry), ...args], {
      cwd: ROOT,
      stdio: ["ignore", log, log, "ipc"],
      env: { ...process.env, ...env, PORT: port },
    });
    const { pid = 0 } = child;
    const exited = once(child, "exit");
    const end = async (): Promise<void> => {
      child.kill("SIGTERM");
      await exited;
    };
    ends.push(end);
    guardian.watch(pid);
    const url = `http://127.0.0.1:${port}`;
    await until(`${name} responds`, async () => (await fetch(`${url}/health`)).ok, { timeoutMs: 60_000 });
    return { url, pid, child, end };
  }

  async function launchService(name: string, env: Record<string, string | undefined>) {
    const entry = name === "api" ? "src/commands/serve.ts" : "tools/bench/service.ts";
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
  const relayer = await launchService("relayer", { ROLES: "relayer,worker" });
  const service = await launchService("service", { ROLES: "api" });

  const { postgres, chain: node, indexer } = network.parts;
  const pids = () => ({
    service: service.pid,
    relayer: relayer.pid,
    indexer: indexer.pid(),
    chain: node?.pid(),
  });
  const perProcess = (count: (pid: number | undefined) => number, of: Record<string, number | undefined>) =>
    Object.fromEntries(Object.entries(of).map(([name, pid]) => [name, count(pid)]));

  return {
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
    /** Paying agents with test dollars, signed in. */
    async newAgents(count: number): Promise<Agent[]> {
      await mine("automine");
      const accounts = Array.from({ length: count }, () => fastAccount(generatePrivateKey()));
      for (const { address } of accounts) await fund(address);
      const agents: Agent[] = [];
      while (agents.length < count) {
        const some = accounts.slice(agents.length, agents.length + SIGN_INS_AT_ONCE);
        const signedIn = some.map((account) => signIn({ url: service.url, chainId: chain.id, account }));
        agents.push(...(await Promise.all(signedIn)));
      }
      return agents;
    },
    /** Resident memory by process, in MiB. */
    memory: () => ({
      ...perProcess((pid) => memoryOf(pid) ?? 0, pids()),
      postgres: treeMiB(postgres?.pid()),
    }),
    /** SQL statements and requests to the node that the service has sent so far. */
    async counts(): Promise<Record<string, number>> {
      const counts = await Promise.all(
        [service, relayer].map(async ({ child }): Promise<Record<string, number>> => {
          child.send("counts");
          return (await once(child, "message"))[0];
        }),
      );
      const names = Object.keys(counts[0] ?? {});
      return Object.fromEntries(
        names.map((name) => [name, counts.reduce((sum, of) => sum + (of[name] ?? 0), 0)]),
      );
    },
    /** Processor time used so far, in ms by process. Linux only. */
    cpu(facilitator?: number): Record<string, number> {
      if (facilitator !== undefined) return perProcess(cpuOf, { facilitator, chain: node?.pid() });
      const database = postgres?.pid();
      const all = [database, ...childrenOf(database)].reduce((sum: number, pid) => sum + cpuOf(pid), 0);
      return { ...perProcess(cpuOf, pids()), postgres: all };
    },
    async stop(): Promise<void> {
      await Promise.all(ends.map((end) => end()));
      await stop();
    },
  };

  async function fund(address: Address): Promise<void> {
    const data = encodeFunctionData({ abi: testUsdAbi, functionName: "mint", args: [address, FUNDS] });
    const hash = await owner.sendTransaction({ to: deployment.asset.address, data, gas: 120_000n });
    await publicClient.waitForTransactionReceipt({ hash, pollingInterval: 20 });
  }
}

/** Postgres's processes share most of their memory: private memory is added up, shared memory is counted once. */
function treeMiB(pid: number | undefined): number {
  const all = [pid, ...childrenOf(pid)];
  const shared = Math.max(0, ...all.map((one) => memoryOf(one, "RssShmem") ?? 0));
  return shared + all.reduce((sum: number, one) => sum + (memoryOf(one, "RssAnon") ?? 0), 0);
}

function childrenOf(pid: number | undefined): number[] {
  const text = textOf(`/proc/${pid}/task/${pid}/children`) ?? "";
  return text.trim().split(" ").filter(Boolean).map(Number);
}

/** Processor time of a process and of its children that have ended, in ms. */
function cpuOf(pid: number | undefined): number {
  const stat = textOf(`/proc/${pid}/stat`) ?? "";
  // After the name in parentheses; utime, stime, cutime and cstime are fields 14 to 17.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * MS_PER_TICK, 0);
}

/** EIP-712 domain separators by domain, as JSON. */
const separators = new Map<string, Hex>();

/**
 * Signs payments by libsecp256k1, and hashes a domain once: in JavaScript, callers would take a fifth of the processor
 * time of what is measured.
 */
function fastAccount(privateKey: Hex): PrivateKeyAccount {
  const key = hexToBytes(privateKey);
  const signTypedData: PrivateKeyAccount["signTypedData"] = async (typedData) => {
    const { domain, message, primaryType, types } = typedData as TypedDataDefinition;
    const name = JSON.stringify(domain);
    const separator = separators.get(name) ?? domainSeparator({ domain: domain as TypedDataDomain });
    separators.set(name, separator);
    const struct = hashStruct({ data: message, primaryType, types: types as TypedData });
    const digest = keccak256(concat(["0x1901", separator, struct]));
    const { signature, recoveryId } = signRecoverable(hexToBytes(digest), key);
    return concat([toHex(signature), toHex(27 + recoveryId)]);
  };
  return { ...privateKeyToAccount(privateKey), signTypedData };
}
