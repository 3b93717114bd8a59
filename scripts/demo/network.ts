/** The running local network as the demo needs it: where it listens, test money, and a clock that can be moved. */
import { existsSync, readFileSync } from "node:fs";
import { type Address, createTestClient, createWalletClient, defineChain, http, publicActions } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { escrowAbi, factoryAbi, testUsdAbi } from "../../src/chain/abi.js";
import { type Deployment, readDeployment } from "../../src/chain/deployment.js";

const NETWORK_FILE = ".local/network.json";

export interface Network {
  baseUrl: string;
  deployment: Deployment;
  /** Mints test stablecoin, in base units. */
  fund(address: Address, amount: bigint): Promise<void>;
  balanceOf(address: Address): Promise<bigint>;
  /** What the escrow's books hold. */
  bookedOf(escrow: Address): Promise<bigint>;
  treasury: Address;
  /** Seconds, by the newest block. */
  now(): Promise<number>;
  /** Moves the chain's clock, and this process's with it: payment clients date their authorizations by it. */
  moveClockTo(timestamp: number): Promise<void>;
}

/** Connects to what `npm start` runs; BASE_URL, RPC_URL and DEPLOYMENT override what it wrote down. */
export async function connect(): Promise<Network> {
  const written = existsSync(NETWORK_FILE) ? JSON.parse(readFileSync(NETWORK_FILE, "utf8")) : {};
  const baseUrl: string | undefined = process.env.BASE_URL ?? written.baseUrl;
  const rpcUrl: string | undefined = process.env.RPC_URL ?? written.rpcUrl;
  const deploymentPath: string | undefined = process.env.DEPLOYMENT ?? written.deploymentPath;
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
  const client = createTestClient({ mode: "anvil", chain, transport: http(rpcUrl) }).extend(publicActions);
  const bank = createWalletClient({
    account: mnemonicToAccount("test test test test test test test test test test test junk", {
      addressIndex: 7,
    }),
    chain,
    transport: http(rpcUrl),
  });

  const now = async () => Number((await client.getBlock({ blockTag: "latest" })).timestamp);
  const asset = { address: deployment.asset.address, abi: testUsdAbi } as const;
  const followChainClock = async () => {
    const offset = (await now()) * 1000 - realNow();
    Date.now = () => realNow() + Math.max(0, offset);
  };
  await followChainClock();
  let nonce = await client.getTransactionCount({ address: bank.account.address, blockTag: "pending" });

  return {
    baseUrl,
    deployment,
    async fund(address, amount) {
      const hash = await bank.writeContract({
        ...asset,
        functionName: "mint",
        args: [address, amount],
        nonce: nonce++,
      });
      await client.waitForTransactionReceipt({ hash });
    },
    balanceOf: (address) => client.readContract({ ...asset, functionName: "balanceOf", args: [address] }),
    bookedOf: (escrow) => client.readContract({ address: escrow, abi: escrowAbi, functionName: "booked" }),
    treasury: await client.readContract({
      address: deployment.factory,
      abi: factoryAbi,
      functionName: "treasury",
    }),
    now,
    async moveClockTo(timestamp) {
      await client.setNextBlockTimestamp({ timestamp: BigInt(timestamp) });
      await client.mine({ blocks: 1 });
      await followChainClock();
    },
  };
}

const realNow = Date.now.bind(Date);
