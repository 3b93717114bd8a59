/** The HTTP service over a real Postgres and a real chain whose time a test can move. */
import type { Address } from "@working-contracts/protocol/types";
import type pg from "pg";
import type { Hex } from "viem";
import {
  generatePrivateKey,
  type LocalAccount,
  type PrivateKeyAccount,
  privateKeyToAccount,
} from "viem/accounts";
import { afterAll } from "vitest";
import { createChainClock } from "../../src/chain/clients.js";
import type { Config } from "../../src/config.js";
import { createDatabase, createNotifications, migrate } from "../../src/db/client.js";
import { createEventFeed } from "../../src/events/log.js";
import { createKeyOwners } from "../../src/features/agents/key-owners.js";
import { createCheckpointTrees } from "../../src/features/checkpoints/checkpoint-trees.js";
import { createApp } from "../../src/http/app.js";
import { createLogger } from "../../src/logger.js";
import { createOutboxWaiter } from "../../src/relayer/outbox.js";
import { encodeBatch } from "../../src/relayer/transaction.js";
import { isDelegated } from "../support/chain.js";
import { newDatabase } from "../support/database.js";
import { startTestChain } from "../support/test-chain.js";
import { testConfig } from "../unit/http/fixtures.js";

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert the shape
  body: any;
}

/** Of one test file: everything is new, and goes with it. `logs` holds everything that the service logged. */
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
  const feed = await createEventFeed({ db, notifications });
  const logs: string[] = [];
  const deps: Parameters<typeof createApp>[0] = {
    config: testConfig({ DATABASE_URL: database.url, RPC_URL: rpcUrl, SETTLEMENT_WAIT_MS: "1000" }),
    db,
    readDb: db,
    publicClient,
    clock,
    deployment,
    keys: createKeyOwners({ db, notifications }),
    outbox,
    feed,
    checkpointTrees: createCheckpointTrees(),
    logger: createLogger("trace", { write: (line: string) => void logs.push(line) }),
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
  const call = async (method: string, path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await app.request(path, { method, ...init });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : JSON.parse(text),
    };
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    call("POST", path, {
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", ...headers },
    });
  const challenge = async (address: string) =>
    (await call("POST", `/v1/agents/${address}/challenge`)).body.data as {
      challengeId: string;
      message: string;
    };
  /** A fresh challenge, signed by `signer` for `address`. */
  const prove = async (signer: LocalAccount, address: string = signer.address) => {
    const { challengeId, message } = await challenge(address);
    return { challengeId, signature: await signer.signMessage({ message }) };
  };
  return {
    call,
    post,
    challenge,
    prove,
    issue: (address: string, body: unknown) => post(`/v1/agents/${address}/api-key`, body),
    revoke: (address: string, body: unknown) => post(`/v1/agents/${address}/api-key/revoke`, body),
    list: (apiKey: string, query = "") =>
      call("GET", `/v1/agents/me/api-keys${query}`, { headers: { Authorization: `Bearer ${apiKey}` } }),
    async signIn(signer: LocalAccount, label?: string): Promise<{ apiKey: string; keyId: string }> {
      const body = { ...(await prove(signer)), ...(label === undefined ? {} : { label }) };
      const issued = await post(`/v1/agents/${signer.address}/api-key`, body);
      if (issued.status !== 201) throw new Error(`Sign-in failed: ${JSON.stringify(issued.body)}`);
      return issued.body.data;
    },
  };
}

/** An error response, for `toMatchObject`. */
export const refusal = (status: number, code: string, more: object = {}) => ({
  status,
  body: { error: { code, ...more } },
});

export const addressOf = ({ address }: { address: string }) => address.toLowerCase() as Address;

export const newAgent = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey());
