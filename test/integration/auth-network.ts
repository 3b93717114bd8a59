/** The HTTP service over a real Postgres and a real chain whose time a test can move. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { delegationAbi, relayAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import type pg from "pg";
import { type Abi, createTestClient, createWalletClient, type Hex, http } from "viem";
import {
  generatePrivateKey,
  mnemonicToAccount,
  type PrivateKeyAccount,
  privateKeyToAccount,
} from "viem/accounts";
import { createChainClients, createChainClock } from "../../src/chain/clients.js";
import { deployProtocol } from "../../src/chain/deploy.js";
import { type Config, parseConfig } from "../../src/config.js";
import { createDatabase, createNotifications, migrate } from "../../src/db/client.js";
import type { Deps } from "../../src/deps.js";
import { createEventFeed } from "../../src/events/log.js";
import { createKeyOwners } from "../../src/features/agents/key-owners.js";
import { createCheckpointTrees } from "../../src/features/checkpoints/checkpoint-trees.js";
import { createApp } from "../../src/http/app.js";
import { startGuardian } from "../../src/indexer/supervision/processes.js";
import { createLogger } from "../../src/logger.js";
import { createOutboxWaiter } from "../../src/relayer/outbox.js";
import { LOCAL_CHAIN_ID, MNEMONIC, startChain } from "../../tools/local/chain.js";
import { freePort } from "../../tools/local/ports.js";
import { newDatabase } from "../support/database.js";

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert the shape
  body: any;
}

export type AuthNetwork = Awaited<ReturnType<typeof startAuthNetwork>>;

/** Everything is new, and `stop` removes it. `logs` holds everything that the service logged. */
export async function startAuthNetwork() {
  const directory = mkdtempSync(join(tmpdir(), "auth-test-"));
  const guardian = startGuardian();
  const local = { guardian, report: () => {} };
  const [node, database] = await Promise.all([
    startChain({
      ...local,
      dir: join(directory, "chain"),
      port: await freePort(),
      logPath: join(directory, "chain.log"),
      blockTime: 1,
      instant: true,
      persistent: false,
    }),
    newDatabase(),
  ]);
  const { rpcUrl } = node;
  // A slow request must not be retried: time would be moved twice.
  const transport = http(rpcUrl, { timeout: 60_000 });
  const { pool, db } = createDatabase(database.url);
  // Twice at once, as two processes that start together do.
  await Promise.all([migrate(pool), migrate(pool)]);

  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: LOCAL_CHAIN_ID });
  const operator = createWalletClient({
    account: mnemonicToAccount(MNEMONIC),
    chain,
    transport,
    pollingInterval: 50,
  });
  const testClient = createTestClient({ chain, mode: "anvil", transport });
  const { address: owner } = operator.account;
  const deployment = await deployProtocol({
    walletClient: operator,
    publicClient,
    owner,
    treasury: owner,
    reviewer: owner,
    signers: [owner],
    domain: "auth.test",
    grantDelay: 0,
  });
  const clock = createChainClock({ publicClient });
  await clock.refresh();
  const notifications = createNotifications({ pool });
  const outbox = createOutboxWaiter({ pool, notifications });
  const feed = await createEventFeed({ db, notifications });
  const logs: string[] = [];
  const deps: Omit<Deps, "streams"> = {
    config: testConfig(database.url, rpcUrl),
    db,
    readDb: db,
    pool,
    publicClient,
    clock,
    deployment,
    keys: createKeyOwners({ db, notifications }),
    outbox,
    feed,
    checkpointTrees: createCheckpointTrees(),
    logger: createLogger("trace", { write: (line: string) => void logs.push(line) }),
  };

  const mined = async (hash: Hex) => {
    const receipt = await publicClient.waitForTransactionReceipt({ hash });
    if (receipt.status !== "success") throw new Error(`Transaction ${hash} failed`);
    return receipt;
  };

  return {
    deps,
    pool: pool as pg.Pool,
    publicClient,
    testClient,
    logs,
    /** The service with other settings over the same database and chain, like another process. */
    app(settings: Partial<Config> = {}) {
      const keys = createKeyOwners({ db, notifications });
      return createApp({ ...deps, keys, config: { ...deps.config, ...settings } });
    },

    /** Moves the chain's clock. */
    async moveTime(seconds: number) {
      await testClient.increaseTime({ seconds });
      await testClient.mine({ blocks: 1 });
      await clock.refresh();
    },

    /** Executes an operation through the Relay, as the relayer does. */
    async relay(target: Address, data: Hex) {
      await mined(
        await operator.writeContract({
          address: deployment.relay,
          abi: relayAbi,
          functionName: "execute",
          args: [[{ target, gasLimit: 500_000, data }]],
        }),
      );
    },

    async isDelegated(agent: Address) {
      return publicClient.readContract({
        address: deployment.delegation,
        abi: delegationAbi,
        functionName: "isAuthorized",
        args: [agent, deployment.relay, 0],
      });
    },

    /** Deploys one of the test contracts in test/contracts/mocks. */
    async deployMock(name: string, args: unknown[]): Promise<Address> {
      const artifact = JSON.parse(readFileSync(`out/${name}.sol/${name}.json`, "utf8"));
      const hash = await operator.deployContract({
        abi: artifact.abi as Abi,
        bytecode: artifact.bytecode.object as Hex,
        args,
      });
      return (await mined(hash)).contractAddress?.toLowerCase() as Address;
    },

    async stop() {
      clock.stop();
      outbox.stop();
      feed.stop();
      await notifications.stop();
      await pool.end();
      await database.drop();
      await node.stop();
      await guardian.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Settings without rate limits. */
function testConfig(databaseUrl: string, rpcUrl: string): Config {
  return parseConfig({
    DATABASE_URL: databaseUrl,
    RPC_URL: rpcUrl,
    DEPLOYMENT: "unused.json",
    MASTER_KEY: "11".repeat(32),
    SETTLEMENT_WAIT_MS: "1000",
    RATE_LIMIT_READS: "0",
    RATE_LIMIT_WRITES: "0",
    RATE_LIMIT_ANONYMOUS: "0",
    RATE_LIMIT_CHALLENGES: "0",
  });
}

export const newAgent = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey());
