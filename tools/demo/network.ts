/** The running local network as the demo needs it: its addresses, its chain and its sandbox. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { escrowAbi, factoryAbi, protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { type Address, createPublicClient, defineChain, http, parseEther } from "viem";
import { readDeployment } from "../../src/chain/deployment.js";
import { ROOT } from "../../src/root.js";
import { createSandbox, type Sandbox } from "./sandbox.js";

const RUNNING = process.env.DATA_DIR || ".local";

export interface Network {
  baseUrl: string;
  rpcUrl: string;
  deployment: Deployment;
  sandbox: Sandbox;
  balanceOf(address: Address): Promise<bigint>;
  /** Whole protocol tokens. */
  tokensOf(address: Address): Promise<bigint>;
  /** Money that the escrow has booked. */
  bookedOf(escrow: Address): Promise<bigint>;
  treasury: Address;
  /** Seconds, by the newest block. */
  now(): Promise<number>;
  /** Advances the chain's clock and this process's clock, by which payment clients date their authorizations. */
  moveClockTo(timestamp: number): Promise<void>;
}

/**
 * Starts a local network of the demo's own, in a temporary folder, because the demo moves the clock. Resolves once it is
 * ready; `stop` ends it and deletes its data.
 */
export async function startOwnNetwork(): Promise<{ dir: string; stop(): Promise<void> }> {
  const dir = mkdtempSync(join(tmpdir(), "working-contracts-demo-"));
  // If this runs as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  const child = spawn(process.execPath, [join(ROOT, "tools/start.mjs")], {
    env: {
      ...process.env,
      DATA_DIR: dir,
      PORT: "0",
      // Stock clients do not repeat a call that is still pending, so on a slow machine they wait longer.
      SETTLEMENT_WAIT_MS: "100000",
      // It is separate from whatever the environment names.
      BASE_URL: undefined,
      DATABASE_URL: undefined,
      RPC_URL: undefined,
      DEPLOYMENT: undefined,
      WS_RPC_URL: undefined,
      npm_lifecycle_event: undefined,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  process.once("exit", () => child.kill("SIGTERM"));
  await new Promise<void>((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      if (output.includes("is ready after")) resolve();
    });
    ended.then(() => reject(new Error(`The demo's network did not start:\n${output}`)));
  });
  return {
    dir,
    async stop() {
      child.kill("SIGINT");
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The addresses of a network: all undefined if it never ran. */
interface Addresses {
  baseUrl?: string | undefined;
  rpcUrl?: string | undefined;
  deploymentPath?: string | undefined;
}

/** The addresses of the network whose data is in `dir`. */
function writtenIn(dir: string): Addresses {
  const file = join(dir, "network.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/** The network that `npm start` runs. BASE_URL, RPC_URL and DEPLOYMENT override its addresses. */
function running({ BASE_URL, RPC_URL, DEPLOYMENT } = process.env): Addresses {
  const written = writtenIn(RUNNING);
  return {
    baseUrl: BASE_URL || written.baseUrl,
    rpcUrl: RPC_URL || written.rpcUrl,
    deploymentPath: DEPLOYMENT || written.deploymentPath,
  };
}

/**
 * Connects to the network whose data is in `dir`, whatever network the environment names; without `dir` to the running
 * one. The demo moves its clock.
 */
export async function connect(dir?: string): Promise<Network> {
  const { baseUrl, rpcUrl, deploymentPath } = dir === undefined ? running() : writtenIn(dir);
  if (baseUrl === undefined || rpcUrl === undefined || deploymentPath === undefined) {
    throw new Error("No running network found: run `npm start` in another terminal first.");
  }
  const deployment = readDeployment(deploymentPath);
  const chain = defineChain({
    id: deployment.chainId,
    name: deployment.networkName,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const client = createPublicClient({ chain, transport: http(rpcUrl), pollingInterval: 250 });
  const sandbox = createSandbox(baseUrl);

  const now = async () => Number((await client.getBlock({ blockTag: "latest" })).timestamp);
  const token = { address: deployment.protocolToken, abi: protocolTokenAbi } as const;
  const asset = { address: deployment.asset.address, abi: testUsdAbi } as const;
  const followChainClock = async () => {
    const offset = (await now()) * 1000 - realNow();
    Date.now = () => realNow() + Math.max(0, offset);
  };
  await followChainClock();

  return {
    baseUrl,
    rpcUrl,
    deployment,
    sandbox,
    balanceOf: (address) => client.readContract({ ...asset, functionName: "balanceOf", args: [address] }),
    async tokensOf(address) {
      return (
        (await client.readContract({ ...token, functionName: "balanceOf", args: [address] })) /
        parseEther("1")
      );
    },
    bookedOf: (escrow) => client.readContract({ address: escrow, abi: escrowAbi, functionName: "booked" }),
    treasury: await client.readContract({
      address: deployment.factory,
      abi: factoryAbi,
      functionName: "treasury",
    }),
    now,
    async moveClockTo(timestamp) {
      await sandbox.moveClockTo(timestamp);
      await followChainClock();
    },
  };
}

const realNow = Date.now.bind(Date);
