/** A chain of a test file's own, and the clients that tests use on any local chain. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "@working-contracts/protocol/types";
import {
  type Chain,
  createTestClient,
  createWalletClient,
  type Hex,
  http,
  type LocalAccount,
  type TransactionReceipt,
  type Transport,
  type WalletClient,
} from "viem";
import { createChainClients } from "../../src/chain/clients.js";
import { type DeployOptions, deployProtocol } from "../../src/chain/deploy.js";
import { startGuardian } from "../../src/indexer/supervision/guardian.js";
import { LOCAL_CHAIN_ID, startChain } from "../../tools/local/chain.js";
import { localAccount } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { until } from "../../tools/local/processes.js";
import { BLOCK_SECONDS } from "./blocks.js";

/** How long tests wait for indexer or relayer. Ponder repeats a request for a minute if its node fails to respond. */
export const INDEXING_MS = 90_000;

export type Wallet = WalletClient<Transport, Chain, LocalAccount>;

/** Clients of a local chain. Test files that move its time need no others. */
export function localClients({ rpcUrl, chainId }: Parameters<typeof createChainClients>[0]) {
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  // A slow request must not be retried: a block would be made, or time moved, twice.
  const transport = http(rpcUrl, { timeout: 60_000 });
  const wallet = (index: number): Wallet =>
    createWalletClient({ account: localAccount(index), chain, transport, pollingInterval: 50 });
  const mined = async (hash: Hex): Promise<TransactionReceipt> => {
    const receipt = await publicClient.waitForTransactionReceipt({ hash, pollingInterval: 20 });
    if (receipt.status !== "success") throw new Error(`Transaction ${hash} reverted`);
    return receipt;
  };
  const testClient = createTestClient({ chain, mode: "anvil", transport });
  return {
    rpcUrl,
    chain,
    publicClient,
    testClient,
    /** Funded accounts; the first one deploys and owns. */
    wallet,
    /** The receipt of a transaction that succeeded. Throws if it reverted. */
    mined,
    head: () => publicClient.getBlockNumber({ cacheTime: 0 }),
    /** Replaces the newest blocks with empty ones. */
    reorg: (depth: number) => testClient.request({ method: "anvil_reorg", params: [depth, []] } as never),
    /** Deploys the protocol, all of it owned by the first account, with differences. */
    async deployProtocol(differences: Partial<DeployOptions> = {}) {
      const walletClient = wallet(0);
      const owner = walletClient.account.address;
      const roles = { owner, treasury: owner, reviewer: owner, signers: [owner] };
      const given = { walletClient, publicClient, ...roles, domain: "contracts.example", grantDelay: 0 };
      return deployProtocol({ ...given, ...differences });
    },
    /** Deploys a test contract that forge has compiled. */
    async deployCompiled(name: string, args: readonly unknown[] = []): Promise<Address> {
      const { abi, bytecode } = JSON.parse(readFileSync(`out/${name}.sol/${name}.json`, "utf8"));
      const hash = await wallet(0).deployContract({ abi, bytecode: bytecode.object, args });
      return (await mined(hash)).contractAddress?.toLowerCase() as Address;
    },
  };
}

/** Starts anvil, which makes a block for each transaction and empty ones in between. `stop` removes everything. */
export async function startTestChain({ chainId = LOCAL_CHAIN_ID } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "test-chain-"));
  const guardian = startGuardian();
  const node = await startChain({
    guardian,
    chainId,
    dir: join(dir, "chain"),
    port: await freePort(),
    logPath: join(dir, "chain.log"),
    blockTime: BLOCK_SECONDS,
    instant: true,
    persistent: false,
    report: () => {},
  });
  return {
    ...localClients({ rpcUrl: node.rpcUrl, chainId }),
    /** For files of the test; removed with the chain. */
    dir,
    async stop(): Promise<void> {
      await node.stop();
      await guardian.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** {@link until} for a condition whose source says what it is. */
export const untilTrue = (isTrue: () => Promise<boolean> | boolean): Promise<void> =>
  until(String(isTrue), async () => isTrue(), { timeoutMs: INDEXING_MS, intervalMs: 20 });
