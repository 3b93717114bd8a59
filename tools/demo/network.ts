/** The running local network as the demo needs it: its addresses, its chain and its sandbox. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { escrowAbi, factoryAbi, protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { type Address, parseEther } from "viem";
import { createChainClients } from "../../src/chain/clients.js";
import { readDeployment } from "../../src/chain/deployment.js";
import { ROOT } from "../../src/root.js";
import { newFolder } from "../../test/support/network.js";
import { textOf } from "../local/processes.js";
import type { Play } from "../local/sandbox/plays.js";

const RUNNING = process.env.DATA_DIR || ".local";

/** Starts a separate network, because the demo moves the clock; `stop` ends it and deletes its data. */
export async function startOwnNetwork(): Promise<{ dir: string; stop(): Promise<void> }> {
  const dir = newFolder("working-contracts-demo-");
  // The demo stays within the default budget.
  const network = await launchNetwork(dir, ROOT, { GAS_BUDGET: "100000000" });
  return {
    dir,
    async stop() {
      await network.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Runs `npm start` of a clone with its data in `dir`. Resolves once the network is ready. */
export async function launchNetwork(
  dir: string,
  root = ROOT,
  env: Record<string, string> = {},
): Promise<{ stop(): Promise<void> }> {
  const child = spawn(process.execPath, [join(root, "tools/start.mjs")], {
    env: {
      ...process.env,
      DATA_DIR: dir,
      PORT: "0",
      // It is separate from whatever the environment names.
      BASE_URL: undefined,
      DATABASE_URL: undefined,
      RPC_URL: undefined,
      DEPLOYMENT: undefined,
      WS_RPC_URL: undefined,
      ...env,
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
    ended.then(() => reject(new Error(`The network did not start:\n${output}`)));
  });
  return {
    async stop() {
      child.kill("SIGINT");
      await ended;
    },
  };
}

/** The addresses of the network whose data is in `dir`, by default those of the one that `npm start` runs, if it does. */
export function writtenAddresses(
  dir = RUNNING,
): Partial<Record<"baseUrl" | "rpcUrl" | "deploymentPath", string | undefined>> {
  return JSON.parse(textOf(join(dir, "network.json")) ?? "{}");
}

/** Connects to the network whose data is in `dir`, by default to that of `npm start`. The demo moves its clock. */
export async function connect(dir?: string) {
  const { baseUrl, rpcUrl, deploymentPath } = writtenAddresses(dir);
  if (baseUrl === undefined || rpcUrl === undefined || deploymentPath === undefined) {
    throw new Error("No running network found: run `npm start` in another terminal first.");
  }
  const deployment = readDeployment(deploymentPath);
  const { publicClient: client } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const sandbox = createSandbox(baseUrl);

  const now = async () => Number((await client.getBlock({ blockTag: "latest" })).timestamp);
  const token = { address: deployment.protocolToken, abi: protocolTokenAbi } as const;
  const asset = { address: deployment.asset.address, abi: testUsdAbi } as const;
  const followChainClock = async () => {
    const offset = (await now()) * 1000 - realNow();
    Date.now = () => realNow() + Math.max(0, offset);
  };
  await followChainClock().catch(() => {
    throw new Error(
      `The network's node at ${rpcUrl} does not respond: run \`npm start\` in another terminal first.`,
    );
  });

  return {
    baseUrl,
    rpcUrl,
    deployment,
    sandbox,
    balanceOf: (address: Address) =>
      client.readContract({ ...asset, functionName: "balanceOf", args: [address] }),
    /** Whole protocol tokens. */
    async tokensOf(address: Address): Promise<bigint> {
      const units = await client.readContract({ ...token, functionName: "balanceOf", args: [address] });
      return units / parseEther("1");
    },
    bookedOf: (escrow: Address) =>
      client.readContract({ address: escrow, abi: escrowAbi, functionName: "booked" }),
    treasury: await client.readContract({
      address: deployment.factory,
      abi: factoryAbi,
      functionName: "treasury",
    }),
    /** Seconds, by the newest block. */
    now,
    /** Advances the chain's clock and this process's clock, by which payment clients date their authorizations. */
    async moveClockTo(timestamp: number): Promise<void> {
      await sandbox.moveClockTo(timestamp);
      await followChainClock();
    },
  };
}

const realNow = Date.now.bind(Date);

export type Sandbox = ReturnType<typeof createSandbox>;

const POLL_MS = 500;
const PATIENCE_MS = 60_000;

/** The sandbox of the network, over its HTTP API (docs/sandbox.md). */
export function createSandbox(baseUrl: string) {
  const call = async <T>(path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${baseUrl}/sandbox/${path}`, {
      ...(body !== undefined && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    const answer = (await response.json()) as { data: T; error?: { message: string } };
    if (!response.ok) throw new Error(`Sandbox, ${path}: ${answer.error?.message ?? response.status}`);
    return answer.data;
  };
  const willing = (play: Play): Play => {
    if (play.state === "failed") throw new Error(`the sandbox's ${play.role}: ${play.steps.join("; ")}`);
    return play;
  };

  return {
    /** Decimals: "100.0". */
    give: (gift: { address: Address; usd?: string; tokens?: string }) => call("faucet", gift),
    /** Seconds; resolves once the service has the new time. */
    moveClockTo: (timestamp: number) => call("clock", { to: new Date(timestamp * 1000).toISOString() }),
    /** Starts a counterparty; throws if it cannot play. */
    play: async (script: Record<string, unknown>) => willing(await call("counterparties", script)),
    /** Resolves once the counterparty has played its part; throws with its steps if it failed. */
    async ended({ id }: Play): Promise<void> {
      const giveUpAt = performance.now() + PATIENCE_MS;
      for (;;) {
        const play = willing(await call<Play>(`counterparties/${id}`));
        if (play.state === "done") return;
        if (performance.now() > giveUpAt)
          throw new Error(`the sandbox's ${play.role} is still busy: ${play.steps.join("; ")}`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
  };
}
