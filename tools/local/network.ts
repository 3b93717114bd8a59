/** Everything that the service needs, on one machine: Postgres, a chain with the protocol deployed, the indexer. */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Parameters } from "@working-contracts/protocol/terms";
import { type HDAccount, type HDKey, hdKeyToAccount, mnemonicToAccount } from "viem/accounts";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { contractsHash, deployProtocol } from "../../src/chain/deploy.js";
import { readDeployment, verifyDeployment, writeDeployment } from "../../src/chain/deployment.js";
import type { Guardian } from "../../src/indexer/supervision/guardian.js";
import {
  LOCAL_CHAIN_ID,
  LOCAL_STABLECOIN,
  type LocalChain,
  MNEMONIC,
  placeStablecoin,
  startChain,
} from "./chain.js";
import { compileContracts } from "./foundry.js";
import { startIndexer } from "./indexer.js";
import { freePort } from "./ports.js";
import { type Postgres, startPostgres } from "./postgres.js";
import { type Supervised, textOf, until } from "./processes.js";

/** Roles of anvil's accounts; the others are free for agents. */
const ACCOUNTS = { owner: 0, signers: [1, 2], reviewer: 8, treasury: 9 } as const;
const DOMAIN = "localhost";
const START_OVER = "Run `npm start -- --reset` to delete the local data and start over.";
/** Below the ports that outgoing connections use. */
const WANTED_PORTS = { chain: 8545, postgres: 15_432, indexer: 32_069 };

interface NetworkOptions {
  guardian: Guardian;
  dir: string;
  /** Data and chain survive a restart. If false, speed takes precedence over durability. */
  persistent: boolean;
  postgresPassword: string;
  /** An existing Postgres; otherwise one is started. */
  databaseUrl?: string | undefined;
  /** An existing chain with the protocol deployed; otherwise one is started. */
  remoteChain?: RemoteChain | undefined;
  /** Seconds between the local chain's blocks. */
  blockTime: number;
  /** Mines each transaction at once, too. */
  instant?: boolean;
  parameters?: Partial<Parameters> | undefined;
  report(line: string): void;
}

export interface RemoteChain {
  rpcUrl: string;
  wsRpcUrl?: string | undefined;
  deploymentPath: string;
}

export type Network = Awaited<ReturnType<typeof startNetwork>>;

/** Starts the network. If a part fails, stops the parts that have started and rejects. */
export async function startNetwork(options: NetworkOptions) {
  const { guardian, dir, report } = options;
  const partOptions = (name: string) => ({ guardian, report, logPath: join(dir, "logs", `${name}.log`) });
  const wanted = (name: keyof typeof WANTED_PORTS) => (options.persistent ? WANTED_PORTS[name] : 0);
  const started: Supervised[] = [];
  const stop = async (): Promise<void> => {
    for (const part of started.splice(0).reverse()) await part.stop();
  };
  const kept = async <T extends Supervised>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    started.push(part);
    return part;
  };
  const startDatabase = (): Promise<Postgres> =>
    startPostgres({
      ...partOptions("postgres"),
      dir: join(dir, "postgres"),
      fallbackDir: fallbackDir(dir),
      port: wanted("postgres"),
      password: options.postgresPassword,
      database: "working_contracts",
      volatile: !options.persistent,
    });
  const startBlocks = async (): Promise<LocalChain> => {
    const { blockTime, instant, persistent } = options;
    const port = await freePort(wanted("chain"));
    return startChain({
      ...partOptions("chain"),
      dir: join(dir, "chain"),
      port,
      blockTime,
      instant,
      persistent,
    });
  };

  try {
    const [postgres, localChain] = await allStarted([
      options.databaseUrl === undefined ? kept(startDatabase()) : undefined,
      options.remoteChain === undefined ? kept(startBlocks()) : undefined,
      options.remoteChain === undefined ? compileContracts(report) : undefined,
    ]);
    const databaseUrl = options.databaseUrl ?? (postgres as Postgres).url;
    const { deployment, ...chain } =
      localChain === undefined
        ? await useRemoteChain(options.remoteChain as RemoteChain)
        : await deployOnce(localChain, options);
    const port = await freePort(wanted("indexer"));
    const indexer = await kept(startIndexer({ ...partOptions("indexer"), ...chain, databaseUrl, port }));
    /** Children by name, for tests that kill them. */
    const parts = { postgres, chain: localChain, indexer };
    return { ...chain, databaseUrl, deployment, parts, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Postgres's folder if its own user cannot enter the network's folder: outside it, but one per network. */
function fallbackDir(dir: string): string {
  return join("/var/lib/working-contracts", createHash("sha256").update(dir).digest("hex").slice(0, 16));
}

/** Its children are anvil's accounts. Derived once: the seed of a mnemonic takes 2,048 hashes. */
let parentKey: HDKey | undefined;

/** One of anvil's accounts; their keys are public. */
export function localAccount(index: number): HDAccount {
  parentKey ??= mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'/0" }).getHdKey();
  // viem's type is that of a path from the master key.
  return hdKeyToAccount(parentKey, { path: `m/${index}` as `m/44'/60'/${string}` });
}

/** Keys of the accounts that the Relay allows as signers on a local chain. */
export const localSignerKeys = (): string[] => ACCOUNTS.signers.map(localKey);

/** Key of the account that owns the protocol token on a local chain. */
export const localOwnerKey = (): string => localKey(ACCOUNTS.owner);

function localKey(index: number): string {
  const key = localAccount(index).getHdKey().privateKey;
  if (!key) throw new Error(`The local account ${index} has no private key.`);
  return `0x${Buffer.from(key).toString("hex")}`;
}

/** Like Promise.all, but rejects only after every start has finished: only parts that have started can be stopped. */
async function allStarted<T extends readonly unknown[]>(starts: readonly [...T]) {
  await Promise.allSettled(starts);
  return Promise.all(starts);
}

async function useRemoteChain(remote: RemoteChain): Promise<RemoteChain & { deployment: Deployment }> {
  const deployment = readDeployment(remote.deploymentPath);
  const { publicClient } = createChainClients({ rpcUrl: remote.rpcUrl, chainId: deployment.chainId });
  await verifyDeployment({ publicClient, deployment });
  return { ...remote, deployment };
}

/** The protocol on the local chain: deployed on the first start, verified on every later one. */
async function deployOnce(
  local: LocalChain,
  { dir, parameters, report }: NetworkOptions,
): Promise<RemoteChain & { deployment: Deployment }> {
  const { rpcUrl, wsRpcUrl } = local;
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: LOCAL_CHAIN_ID });
  const deploymentPath = join(dir, "deployment.json");
  const codePath = join(dir, "deployment.code");
  const signers = ACCOUNTS.signers.map((index) => localAccount(index).address);

  if (existsSync(deploymentPath)) {
    if (!local.isContinued)
      throw new Error(`${dir} holds data of a chain whose state is missing. ${START_OVER}`);
    if (readFileSync(codePath, "utf8") !== contractsHash())
      throw new Error(`The contracts have changed since this local network was created. ${START_OVER}`);
    const deployment = readDeployment(deploymentPath);
    await verifyDeployment({ publicClient, deployment });
    return { rpcUrl, wsRpcUrl, deploymentPath, deployment };
  }

  report("Deploying the contracts.");
  const owner = localAccount(ACCOUNTS.owner);
  const deployment = await deployProtocol({
    walletClient: createSigningClient({ rpcUrl, chain, account: owner }),
    publicClient,
    owner: owner.address,
    treasury: localAccount(ACCOUNTS.treasury).address,
    reviewer: localAccount(ACCOUNTS.reviewer).address,
    signers,
    domain: DOMAIN,
    grantDelay: 0,
    asset: await placeStablecoin({ rpcUrl, chainId: LOCAL_CHAIN_ID }, LOCAL_STABLECOIN),
    parameters,
  });
  await local.save();
  writeFileSync(codePath, contractsHash());
  writeDeployment(deploymentPath, deployment);
  return { rpcUrl, wsRpcUrl, deploymentPath, deployment };
}

/** Entries of a network's folder, but for the lock. */
const DATA = ["chain", "deployment.code", "deployment.json", "logs", "network.json", "postgres", "secret"];

/** Deletes a network's data, but not the lock, which the caller holds, nor anything else that is in the folder. */
export function resetNetwork(dir: string): void {
  for (const name of DATA) rmSync(join(dir, name), { recursive: true, force: true });
  rmSync(fallbackDir(dir), { recursive: true, force: true });
}

const LOCK_NAME = "lock";

interface Holder {
  pid: number;
  /** When that process started, in the system's own format: pids are reused. */
  startedAt: string;
  /** Ends the holder's children if the holder is killed. */
  guardianPid: number;
}

/** One supervisor per folder. Waits until the children of a killed one have ended; throws if another one is running. */
export async function takeLock(dir: string, guardianPid: number): Promise<{ release(): void }> {
  const path = join(dir, LOCK_NAME);
  mkdirSync(dir, { recursive: true });
  const mine: Holder = { pid: process.pid, startedAt: startOf(process.pid) ?? "", guardianPid };
  for (;;) {
    try {
      writeFileSync(path, JSON.stringify(mine), { flag: "wx" });
      return { release: () => rmSync(path, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const text = textOf(path);
    if (text === null) continue;
    const holder = parse(text);
    if (holder !== null) {
      if (startOf(holder.pid) === holder.startedAt) {
        throw new Error(`Already running in this folder (process ${holder.pid}): stop that one first.`);
      }
      const isGone = async () => startOf(holder.guardianPid) === null;
      await until("the processes of an earlier run have ended", isGone, { timeoutMs: 15_000 });
    }
    // Two starters can be here at once: the one that moved away the other's fresh lock puts it back.
    const aside = `${path}.${process.pid}`;
    try {
      renameSync(path, aside);
      if (textOf(aside) !== text) renameSync(aside, path);
      else rmSync(aside, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}

/** A lock file truncated by a power failure belongs to no one. */
function parse(text: string): Holder | null {
  try {
    return JSON.parse(text) as Holder;
  } catch {
    return null;
  }
}

/** When a process started; null if there is none. */
function startOf(pid: number): string | null {
  if (process.platform === "linux") {
    const stat = textOf(`/proc/${pid}/stat`);
    // The name, in brackets, can contain spaces; the start time is the 20th field after it.
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    const isDead = fields === undefined || fields[0] === "Z";
    return isDead ? null : `${textOf("/proc/sys/kernel/random/boot_id")?.trim()} ${fields[19]}`;
  }
  const { stdout } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
  return stdout?.trim() || null;
}
