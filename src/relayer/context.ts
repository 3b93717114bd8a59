/** State of one signer's loop, and its ownership: a lock, which can be lost, and an epoch that every write checks. */
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import pg from "pg";
import type { BaseLogger } from "pino";
import type { PrivateKeyAccount, PublicClient } from "viem";
import type { ChainClock } from "../chain/clients.js";
import { ADVISORY_LOCKS, type Database, type Transaction } from "../db/client.js";
import { prepare } from "../db/statements.js";
import type { GasPolicy } from "./gas-accounts.js";

export type RelayerLogger = Pick<BaseLogger, "debug" | "info" | "warn" | "error">;

/** The relayer's counters. Every method is cheap and never throws. */
export interface RelayerMetrics {
  operations(outcome: "mined" | "final" | "rejected" | "held" | "requeued", count: number): void;
  batches(event: "sent" | "replaced" | "mined" | "final" | "reverted" | "reorganized" | "quarantined"): void;
  /** A transaction was signed: a batch's first, or a replacement. */
  signed(transaction: { signer: Address; operations: number; maxFeePerGas: bigint }): void;
  /** A receipt was recorded. `gasPaid` is in wei; `seconds` is each operation's age by then. */
  mined(transaction: { signer: Address; gasPaid: bigint; seconds: number[] }): void;
  alarm(name: AlarmName): void;
}

/** Conditions an operator must look at. Each is logged as an error with the field `alarm`. */
export const ALARM_NAMES = [
  "signer_without_gas",
  "signer_not_allowed",
  "fee_cap_reached",
  "foreign_nonce",
  "nonce_unexplained",
  "signer_missing",
  "batch_reverted",
  "reorganization_beyond_finality",
  "operation_failing",
] as const;
type AlarmName = (typeof ALARM_NAMES)[number];

export interface RelayerOptions {
  confirmations: number;
  pollIntervalMs: number;
  /** How long a signer that the Relay does not allow waits until it looks again. */
  notAllowedPauseMs: number;
  /** Maximum number of this signer's transactions that wait for inclusion. */
  maxInFlight: number;
  /** Maximum operations per batch, independent of gas. */
  maxBatchSize: number;
  /** Blocks without inclusion after which a transaction is replaced at a higher fee. */
  replaceAfterBlocks: number;
  /** Maximum fee per gas in wei. */
  maxFeePerGas: bigint;
  /** Maximum tip per gas in wei of a new transaction. */
  maxPriorityFeePerGas: bigint;
  gasPolicy: GasPolicy;
}

export interface SignerContext {
  db: Database;
  publicClient: PublicClient;
  clock: Pick<ChainClock, "now">;
  /** The signer's key; null if an unowned signer is followed, for which nothing is signed (relayer.ts). */
  account: PrivateKeyAccount | null;
  /** Lower case. */
  signer: Address;
  epoch: bigint;
  deployment: Deployment;
  options: RelayerOptions;
  logger: RelayerLogger;
  metrics: RelayerMetrics | undefined;
  /** Called where a crash must neither lose nor repeat an operation: tests stop the process here. */
  crashPoint?: ((point: string) => Promise<void>) | undefined;
  memory: SignerMemory;
}

/** The loop's memory between rounds. Losing it costs time, never an operation. */
export type SignerMemory = ReturnType<typeof createMemory>;

export interface Head {
  number: bigint;
  hash: Hex;
  /** Seconds. */
  timestamp: number;
  gasLimit: bigint;
  baseFeePerGas: bigint;
}

export function createMemory() {
  return {
    /** Whether the last round found nothing open and nothing waiting. */
    isIdle: false,
    /** Newest block whose timestamp was used to reject expired operations. */
    sweptHead: null as Hex | null,
    /** Newest block the open batches were checked against, and when (times here are by `performance.now()`). */
    followedHead: null as Hex | null,
    followedAt: Number.NEGATIVE_INFINITY,
    /** Transactions that were waiting for inclusion at that check, plus those sent since. */
    inFlight: 0,
    /** Newest block at which each open batch was broadcast. */
    broadcastAt: new Map<bigint, bigint>(),
    /** Block since which each open batch has been waiting at its current fees. */
    waitingSince: new Map<bigint, bigint>(),
    /** First block at which each open batch had no receipt although its nonce was used. */
    missingSince: new Map<bigint, bigint>(),
    /** Next block to search for the transaction that used a quarantined batch's nonce. */
    searchedTo: new Map<bigint, bigint>(),
    /** The most that the batches in flight can cost, in wei. */
    committed: 0n,
    /** Head at which the balance did not cover another batch beside those in flight. */
    unpaidHead: null as string | null,
    /** The chain's next account nonce and the block it was first seen at, if the first open batch has a higher nonce. */
    gap: null as { nonce: number; since: bigint } | null,
    /** Consecutive rounds in which the chain, at a node that is not behind, knew fewer of the signer's transactions than we do. */
    shortNonces: 0,
    /** Whether the Relay accepts the signer, as far as we know. */
    isAllowed: false,
    /** Nothing new is sent before this time. */
    pausedUntil: 0,
    /** When each alarm was last logged. */
    alarmedAt: new Map<AlarmName, number>(),
  };
}

/** Minimum time between two log lines for the same alarm. The metric counts every occurrence. */
const ALARM_INTERVAL_MS = 10_000;

/** Counts an alarm and logs it, at most once per interval. */
export function raiseAlarm(
  { logger, metrics, signer, memory }: SignerContext,
  name: AlarmName,
  facts: Record<string, unknown>,
): void {
  metrics?.alarm(name);
  const last = memory.alarmedAt.get(name);
  if (last !== undefined && performance.now() - last < ALARM_INTERVAL_MS) return;
  memory.alarmedAt.set(name, performance.now());
  logger.error({ alarm: name, signer, ...facts }, `relayer: ${name}`);
}

/** The newest block of this node, which can be behind. Rejects if the node does not respond. */
export async function readHead(publicClient: PublicClient): Promise<Head> {
  const block = await publicClient.getBlock({ blockTag: "latest" });
  return {
    number: block.number,
    hash: block.hash,
    timestamp: Number(block.timestamp),
    gasLimit: block.gasLimit,
    baseFeePerGas: block.baseFeePerGas ?? 0n,
  };
}

const HEARTBEAT_MS = 4000;
const HEARTBEAT_TIMEOUT_MS = 5000;
/** Postgres ends an owner's connection, and with it the lock, after this time without a heartbeat: its host could be gone. */
const LOCK_SILENCE = "20s";
/** Maximum time an owner that stalls in the middle of a write can block its successor. */
const WRITE_IDLE_TIMEOUT = "10s";

/** Another process now owns the signer. The write was rolled back. */
export class OwnershipLost extends Error {
  override readonly name = "OwnershipLost";
}

export type Ownership = NonNullable<Awaited<ReturnType<typeof takeOwnership>>>;

/**
 * Takes ownership of the signer; `lost` aborts when the lock's connection fails. Returns null if another process owns it;
 * rejects if the database is unreachable.
 */
export async function takeOwnership(pool: pg.Pool, signer: Address) {
  if (await isOwned(pool, signer)) return null;
  const client = new pg.Client({
    ...pool.options,
    keepAlive: true,
    query_timeout: HEARTBEAT_TIMEOUT_MS,
    application_name: "relayer-lock",
  });
  const lost = new AbortController();
  client.on("error", () => lost.abort());
  client.on("end", () => lost.abort());
  const close = () => client.end().catch(() => undefined);
  try {
    await client.connect();
    const locked = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock($1, hashtext($2)) as taken, set_config('idle_session_timeout', $3, false)`,
      [ADVISORY_LOCKS.signer, signer, LOCK_SILENCE],
    );
    if (locked.rows[0]?.taken !== true) {
      await close();
      return null;
    }
    // Can wait for the previous owner's last write, and so can time out.
    const taken = await client.query<{ epoch: string }>({
      text: `insert into app.signer_epoch as current (signer, epoch) values ($1, 1)
        on conflict (signer) do update set epoch = current.epoch + 1, taken_at = now() returning epoch`,
      values: [signer],
    });
    const heartbeat = setInterval(() => {
      client.query("select 1").catch(() => lost.abort());
    }, HEARTBEAT_MS).unref();
    const release = async () => {
      clearInterval(heartbeat);
      await close();
    };
    lost.signal.addEventListener("abort", release);
    return { epoch: BigInt(taken.rows[0]?.epoch ?? 0), lost: lost.signal, release };
  } catch (error) {
    void close();
    throw error;
  }
}

/** SQL: the hashes of signers that a process owns. */
export const OWNED_SIGNERS = `
  select objid from pg_locks where locktype = 'advisory' and objsubid = 2 and granted
    and database = (select oid from pg_database where datname = current_database())
    and classid = ${ADVISORY_LOCKS.signer}::int::oid`;

/** Uses the pool: a process waiting for a signer would otherwise open a connection every second. */
async function isOwned(pool: pg.Pool, signer: Address): Promise<boolean> {
  const { rows } = await pool.query<{ owned: boolean }>(
    `select hashtext($1)::oid in (${OWNED_SIGNERS}) as owned`,
    [signer],
  );
  return rows[0]?.owned === true;
}

/** The share lock delays a successor's epoch until the write commits or rolls back. */
const fence = prepare(
  "signer_fence",
  sql`select set_config('idle_in_transaction_session_timeout', ${WRITE_IDLE_TIMEOUT}, true)
    from (select 1 from app.signer_epoch
      where signer = ${sql.placeholder("signer")} and epoch = ${sql.placeholder("epoch")}::bigint for share) mine`,
);

/** Runs one write as the signer's owner. Throws {@link OwnershipLost}, without writing, if ownership was lost. */
export function fenced<T>(
  { db, signer, epoch }: { db: Database; signer: Address; epoch: bigint },
  write: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => {
    const rows = await fence(tx, { signer, epoch: epoch.toString() });
    if (rows.length === 0) throw new OwnershipLost(`epoch ${epoch} of ${signer} has passed`);
    return write(tx);
  });
}
