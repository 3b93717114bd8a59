/** The HTTP service over a real Postgres and a real chain whose time a test can move. */
import type { Address } from "@working-contracts/protocol/types";
import type pg from "pg";
import type { Hex } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { afterAll } from "vitest";
import { createApp } from "../../src/app.js";
import { createChainClock } from "../../src/chain/clients.js";
import type { Config } from "../../src/config.js";
import { createDatabase, createNotifications, migrate } from "../../src/db/client.js";
import { createEventFeed } from "../../src/events/log.js";
import { createCheckpointTrees } from "../../src/features/checkpoints/checkpoint-trees.js";
import { createKeyOwners } from "../../src/http/key-owners.js";
import { createLogger } from "../../src/logger.js";
import { createOutboxWaiter } from "../../src/relayer/outbox.js";
import { encodeBatch } from "../../src/relayer/transaction.js";
import { caller } from "../support/agent.js";
import { isDelegated } from "../support/chain.js";
import { type Json, ok, signedChallenge } from "../support/contracts.js";
import { newDatabase } from "../support/database.js";
import { startTestChain } from "../support/test-chain.js";
import { testConfig } from "../unit/http/fixtures.js";

/** Of one test file: everything is new, and goes with it. */
export async function useAuthNetwork() {
  const [node, database] = await Promise.all([startTestChain(), newDatabase()]);
  const { publicClient, testClient, rpcUrl, deployCompiled } = node;
  const { pool, db } = createDatabase(database.url);
  // Twice at once, as two processes that start together do.
  await Promise.all([migrate(pool), migrate(pool)]);
  const deployment = await node.deployProtocol();
  const clock = createChainClock({ publicClient });
  await clock.refresh();
  const notifications = createNotifications({ pool });
  const outbox = createOutboxWaiter({ db, notifications });
  const logger = createLogger("silent");
  const feed = await createEventFeed({ db, notifications, logger });
  const deps: Parameters<typeof createApp>[0] = {
    config: testConfig({ DATABASE_URL: database.url, RPC_URL: rpcUrl, SETTLEMENT_WAIT_MS: "1000" }),
    db,
    readDb: db,
    publicClient,
    clock,
    deployment,
    keys: createKeyOwners(db, notifications),
    outbox,
    feed,
    checkpointTrees: createCheckpointTrees(),
    logger,
  };

  afterAll(async () => {
    clock.stop();
    outbox.stop();
    feed.stop();
    await notifications.stop();
    await pool.end();
    await database.drop();
    await node.stop();
  });
  return {
    deps,
    pool: pool as pg.Pool,
    publicClient,
    testClient,
    deployCompiled,
    /** The service with other settings over the same database and chain, like another process. */
    app(settings: Partial<Config> = {}) {
      const keys = createKeyOwners(db, notifications);
      return createApp({ ...deps, keys, config: { ...deps.config, ...settings } });
    },

    /** Moves the chain's clock. */
    async moveTime(seconds: number) {
      await testClient.increaseTime({ seconds });
      await testClient.mine({ blocks: 1 });
      await clock.refresh();
    },

    /** Makes a block at this time. */
    async moveTimeTo(timestamp: bigint) {
      await testClient.setNextBlockTimestamp({ timestamp });
      await testClient.mine({ blocks: 1 });
      await clock.refresh();
    },

    /** Executes an operation through the Relay, as the relayer does. */
    async relay(target: Address, data: Hex) {
      const batch = encodeBatch([{ target, gasLimit: 500_000, data }]);
      await node.mined(await node.wallet(0).sendTransaction({ to: deployment.relay, data: batch }));
    },

    isDelegated: (address: Address) => isDelegated({ publicClient, deployment }, { address }, "approve"),
  };
}

/** Signs an agent in, over `app.request()`. */
export function authClient(app: ReturnType<typeof createApp>) {
  const call = caller("", {}, async (input, init) => app.request(input, init));
  /** A fresh challenge, signed by `account` for `address`. */
  const prove = (account: PrivateKeyAccount, address: Address = account.address) =>
    signedChallenge({ call }, { address, account });
  const issue = (address: string, body: unknown) =>
    call<Json>("POST", `/v1/agents/${address}/api-key`, { body });
  return {
    call,
    challenge: async (address: string) => (await call<Json>("POST", `/v1/agents/${address}/challenge`)).data,
    prove,
    issue,
    revoke: (address: string, body: unknown) =>
      call("POST", `/v1/agents/${address}/api-key/revoke`, { body }),
    list: (apiKey: string, query = "") =>
      call<Json>("GET", `/v1/agents/me/api-keys${query}`, { headers: { authorization: `Bearer ${apiKey}` } }),
    signIn: async (account: PrivateKeyAccount) =>
      ok(await issue(account.address, await prove(account)), 201) as { apiKey: string; keyId: string },
  };
}

/** An error response, for `toMatchObject`. */
export const refusal = (status: number, code: string, more: object = {}) => ({
  status,
  body: { error: { code, ...more } },
});

export const addressOf = ({ address }: { address: string }) => address.toLowerCase() as Address;

export const newAgent = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey());
