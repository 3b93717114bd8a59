/** A chain whose blocks a test makes, a database, and relayers that it can start, freeze and abandon. */
import { escrowAbi, factoryAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { escrowAddress } from "@working-contracts/protocol/terms";
import { type Address, type EscrowTerms, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { asc, eq } from "drizzle-orm";
import { createPublicClient, custom, encodeFunctionData, type Hex, keccak256, toHex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach } from "vitest";
import { createChainClock } from "../../src/chain/clients.js";
import { createDatabase, createNotifications, migrate } from "../../src/db/client.js";
import { batch, operation } from "../../src/db/schema.js";
import { createLogger } from "../../src/logger.js";
import { createMetrics } from "../../src/metrics.js";
import type { RelayerOptions } from "../../src/relayer/context.js";
import { acceptOperation, createOperation, type NewOperation } from "../../src/relayer/operations.js";
import { createOutboxWaiter, enqueue, type OperationRow } from "../../src/relayer/outbox.js";
import { createRelayer, createUnownedSignerFollower } from "../../src/relayer/relayer.js";
import type { Loop } from "../../src/scheduling.js";
import { createBlockProducer } from "../support/blocks.js";
import { transferData } from "../support/chain.js";
import { newDatabase } from "../support/database.js";
import { domainOf, type SignedPayment, signAuthorization } from "../support/payment.js";
import { INDEXING_MS, startTestChain } from "../support/test-chain.js";

export const PRICE = 50_000_000n;
export const STAKE = 2_500_000n;
const BLOCK_INTERVAL_MS = 60;
const DAY = 86_400;
const SIGNERS = 32;
/** In millionths of a dollar, of each agent. */
const FUNDS = 10n ** 10n;
/** Without gas limits. */
export const RELAYER_OPTIONS = {
  confirmations: 1,
  maxFeePerGas: 500_000_000_000n,
  maxPriorityFeePerGas: 2_000_000_000n,
  maxBatchSize: 150,
  gasPolicy: { allowance: 0, budget: 0, perFee: 0 },
};

interface Logged {
  level: number;
  msg: string;
  alarm?: string;
  [fact: string]: unknown;
}

/** Can throw in place of the node, or replace its response with `{ result }`. Any other value lets the request through. */
export type Intercept = (method: string, params: readonly unknown[]) => Promise<unknown>;

interface RelayerSetup {
  signer?: PrivateKeyAccount;
  confirmations?: number;
  options?: Partial<RelayerOptions>;
  crashPoint?: (point: string) => Promise<void>;
  /** Called before each request to the node. */
  intercept?: Intercept;
}

export type RelayerNetwork = Awaited<ReturnType<typeof startRelayerNetwork>>;

/** Everything is new, and `stop` removes it. The Relay allows the first SIGNERS signers. */
async function startRelayerNetwork() {
  const [node, database] = await Promise.all([startTestChain(), newDatabase()]);
  const { chain, publicClient, testClient } = node;
  const { pool, db } = createDatabase(database.url);
  await migrate(pool);

  const owner = node.wallet(0);
  const signer = (index: number) => privateKeyToAccount(keccak256(toHex(`relayer test signer ${index}`)));
  const signers = Array.from({ length: SIGNERS }, (_, index) => signer(index));
  for (const { address } of signers) await testClient.setBalance({ address, value: 10n ** 20n });
  const deployment = await node.deployProtocol({ signers: signers.map(({ address }) => address) });

  await testClient.setIntervalMining({ interval: 0 });
  const producer = createBlockProducer(() => testClient.mine({ blocks: 1 }), BLOCK_INTERVAL_MS);
  const notifications = createNotifications({ pool });
  const clock = createChainClock({ publicClient });
  await clock.refresh();
  const waiter = createOutboxWaiter({ db, notifications });
  const started = new Set<Loop>();
  const logs: Logged[] = [];
  const logger = createLogger("debug", { write: (line: string) => void logs.push(JSON.parse(line)) });
  let serial = 0;

  const usd = { address: deployment.asset.address, abi: testUsdAbi } as const;
  const parameters = await publicClient.readContract({
    address: deployment.factory,
    abi: factoryAbi,
    functionName: "parameters",
  });

  function interceptedClient(intercept: Intercept) {
    const request = async (call: { method: string; params?: readonly unknown[] }) => {
      const answer = await intercept(call.method, call.params ?? []);
      if (typeof answer === "object" && answer !== null && "result" in answer) return answer.result;
      return publicClient.request(call as never);
    };
    return createPublicClient({ chain, transport: custom({ request }, { retryCount: 1, retryDelay: 20 }) });
  }

  async function chainTime(): Promise<number> {
    return Number((await publicClient.getBlock()).timestamp);
  }

  /** Sends a call as the owner. Returns when it is mined. */
  async function ownerCall(call: { to: Address; data: Hex }): Promise<void> {
    await node.mined(await owner.sendTransaction({ ...call, maxPriorityFeePerGas: 10n ** 10n }));
  }

  async function fund(accounts: readonly PrivateKeyAccount[]): Promise<void> {
    let nonce = await publicClient.getTransactionCount({
      address: owner.account.address,
      blockTag: "pending",
    });
    const hashes: Hex[] = [];
    for (const { address } of accounts) {
      hashes.push(
        await owner.writeContract({ ...usd, functionName: "mint", args: [address, FUNDS], nonce: nonce++ }),
      );
    }
    for (const hash of hashes) await node.mined(hash);
  }

  /** New accounts with stablecoins. Tests name up to three of them. */
  async function agents(count: number) {
    const accounts = Array.from({ length: count }, () =>
      privateKeyToAccount(keccak256(toHex(`relayer test agent ${serial++}`))),
    );
    await fund(accounts);
    return accounts as [PrivateKeyAccount, PrivateKeyAccount, PrivateKeyAccount, ...PrivateKeyAccount[]];
  }

  async function authorize(from: PrivateKeyAccount, to: Address, value: bigint, validBefore?: number) {
    const expiry = BigInt(validBefore ?? (await chainTime()) + DAY);
    return signAuthorization(from, domainOf(deployment), { to, value, validBefore: expiry });
  }

  const addressOf = ({ address }: PrivateKeyAccount) => address.toLowerCase() as Address;
  const metrics = createMetrics({
    db,
    pools: { work: pool },
    publicClient,
    signers: signers.map(addressOf),
    ...RELAYER_OPTIONS,
  });

  /** A paid creation by `client`, not stored yet. */
  async function creation(
    client: PrivateKeyAccount,
    changes: { value?: bigint; validBefore?: number; worker?: Address } = {},
  ) {
    const now = await chainTime();
    const terms: EscrowTerms = {
      initiator: addressOf(client),
      price: PRICE,
      counterparty: changes.worker ?? ZERO_ADDRESS,
      criteriaCount: 1,
      workerInitiated: false,
      computedCriteria: false,
      matchDeadline: now + 10 * DAY,
      withdrawalDeadline: now + 11 * DAY,
      deliveryDeadline: now + 12 * DAY,
      reviewDeadline: now + 13 * DAY,
      termsHash: keccak256(toHex(`relayer test terms ${serial++}`)),
      parameters,
    };
    const { factory, implementation } = deployment;
    const escrow = escrowAddress({ factory, implementation, terms });
    const authorization = await authorize(client, escrow, changes.value ?? PRICE, changes.validBefore);
    return createOperation({
      deployment,
      escrow,
      caller: addressOf(client),
      terms,
      authorization,
      notAfter: Number(authorization.validBefore) - 1,
    });
  }

  async function acceptance(worker: PrivateKeyAccount, escrow: Address): Promise<NewOperation> {
    const authorization = await authorize(worker, escrow, STAKE);
    return acceptOperation({ deployment, escrow, caller: addressOf(worker), authorization });
  }

  async function store(newOperation: NewOperation): Promise<OperationRow> {
    return (await enqueue(db, newOperation)).operation;
  }

  async function outcome({ id }: { id: bigint }, timeoutMs = INDEXING_MS): Promise<OperationRow> {
    const row = await waiter.waitFor(id, { timeoutMs });
    if (row === null) {
      const [now] = await db.select().from(operation).where(eq(operation.id, id));
      throw new Error(`operation ${id} is still ${now?.state} (${now?.reason}) after ${timeoutMs} ms`);
    }
    return row;
  }

  async function stopRelayers(): Promise<void> {
    await Promise.all([...started].map((relayer) => relayer.stop()));
    started.clear();
  }

  return {
    publicClient,
    testClient,
    head: node.head,
    reorg: node.reorg,
    owner,
    deployment,
    db,
    pool,
    producer,
    waiter,
    logs,
    metrics,
    signer,
    usd,
    chainTime,
    ownerCall,
    agents,
    authorize,
    addressOf,
    creation,
    acceptance,
    store,
    outcome,
    startRelayer(setup: RelayerSetup = {}): Loop {
      const { signer: account = signer(0), confirmations = 1, options, crashPoint, intercept } = setup;
      const relayer = createRelayer({
        db,
        pool,
        publicClient: intercept === undefined ? publicClient : interceptedClient(intercept),
        clock,
        account,
        deployment,
        notifications,
        logger,
        metrics: metrics.relayer,
        options: {
          ...RELAYER_OPTIONS,
          confirmations,
          pollIntervalMs: 20,
          notAllowedPauseMs: 200,
          ...options,
        },
        crashPoint,
      });
      started.add(relayer);
      relayer.start();
      return relayer;
    },
    /** Follows every signer without a relayer, at once. */
    startFollower(): void {
      const follower = createUnownedSignerFollower({
        db,
        pool,
        publicClient,
        clock,
        deployment,
        options: RELAYER_OPTIONS,
        logger,
        unattendedSeconds: 0,
      });
      started.add(follower);
      follower.start();
    },
    /** A created contract. A relayer must be running. */
    async created(client: PrivateKeyAccount, changes: { worker?: Address } = {}): Promise<Address> {
      const act = await creation(client, changes);
      const row = await outcome(await store(act));
      if (row.reason !== null) throw new Error(`create was rejected: ${row.reason}`);
      return act.escrow as Address;
    },
    rowOf: async ({ id }: { id: bigint }) =>
      (await db.select().from(operation).where(eq(operation.id, id)))[0],
    batchesOf: (account: PrivateKeyAccount) =>
      db
        .select()
        .from(batch)
        .where(eq(batch.signer, addressOf(account)))
        .orderBy(asc(batch.id)),
    statusOf: (escrow: Address) =>
      publicClient.readContract({ address: escrow, abi: escrowAbi, functionName: "status" }),
    balanceOf: (address: Address) =>
      publicClient.readContract({ ...usd, functionName: "balanceOf", args: [address] }),
    /** Whether the node has the transaction, mined or not. */
    knows: (hash: Hex) =>
      publicClient.getTransaction({ hash }).then(
        () => true,
        () => false,
      ),
    /** Someone else executes a payment's authorization at the token. */
    broadcast: (payment: SignedPayment) => ownerCall({ to: usd.address, data: transferData(payment) }),
    setPaused: (paused: boolean) =>
      ownerCall({
        to: usd.address,
        data: encodeFunctionData({ abi: testUsdAbi, functionName: "setPaused", args: [paused] }),
      }),
    /** A transaction signed with a signer's key but not by the relayer. Its fee is high enough to be mined first. */
    signForeign: (account: PrivateKeyAccount, nonce: number): Promise<Hex> =>
      account.signTransaction({
        chainId: deployment.chainId,
        type: "eip1559",
        to: account.address,
        nonce,
        gas: 21_000n,
        maxFeePerGas: 10n ** 12n,
        maxPriorityFeePerGas: 10n ** 11n,
      }),
    /** Cuts the connections that hold advisory locks, like a network failure between process and database. */
    async cutLocks(): Promise<void> {
      await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'relayer-lock' and datname = current_database()`,
      );
    },
    stopRelayers,
    async stop(): Promise<void> {
      await stopRelayers();
      await producer.pause();
      waiter.stop();
      clock.stop();
      await notifications.stop();
      await pool.end();
      await database.drop();
      await node.stop();
    },
  };
}

/** The network of one test file, which goes with it. After each test its blocks resume and its relayers stop. */
export async function useRelayerNetwork(): Promise<RelayerNetwork> {
  const network = await startRelayerNetwork();
  afterEach(async () => {
    network.producer.resume();
    await network.stopRelayers();
  });
  afterAll(() => network.stop());
  return network;
}

/** Freezes a relayer at one moment until it is released or crashes. It passes that moment freely afterwards. */
export function freezeAt(moment: string) {
  let thaw = () => {};
  let crash = (_error: Error) => {};
  let reached = false;
  const thawed = new Promise<void>((resolve, reject) => {
    thaw = resolve;
    crash = reject;
  });
  const crashPoint = async (point: string) => {
    if (point !== moment) return;
    reached = true;
    await thawed;
  };
  return {
    crashPoint,
    isReached: () => reached,
    thaw: () => thaw(),
    crash: () => crash(new Error(`crashed ${moment}`)),
  };
}
