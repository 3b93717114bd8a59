/** What the parts of one signer's loop share. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { BaseLogger } from "pino";
import type { PrivateKeyAccount, PublicClient } from "viem";
import type { Database } from "../db/client.js";

export type RelayerLogger = Pick<BaseLogger, "debug" | "info" | "warn" | "error">;

/** Counts of what the relayer does; every method is cheap and never throws. */
export interface RelayerMetrics {
  operations(outcome: "mined" | "final" | "rejected" | "held" | "requeued", count: number): void;
  batches(event: "sent" | "replaced" | "mined" | "final" | "reverted" | "reorganised" | "quarantined"): void;
  /** A transaction was signed: the first of a batch, or a replacement. */
  signed(transaction: { signer: Address; operations: number; maxFeePerGas: bigint }): void;
  /** A transaction was mined: what it cost in wei, and how long each operation in it had been stored for. */
  mined(transaction: { signer: Address; gasPaid: bigint; seconds: number[] }): void;
  alarm(name: AlarmName): void;
}

/** Conditions that an operator has to look at; each is logged as an error with `alarm`. */
export const ALARM_NAMES = [
  "signer_without_gas",
  "signer_not_allowed",
  "fee_cap_reached",
  "foreign_nonce",
  "nonce_unexplained",
  "signer_missing",
  "batch_reverted",
  "reorganisation_beyond_finality",
  "operation_failing",
] as const;
export type AlarmName = (typeof ALARM_NAMES)[number];

/** Moments between which a crash must lose nothing and repeat nothing. */
export type CrashPoint =
  | "before_claim"
  | "after_simulation"
  | "after_signing"
  | "after_commit"
  | "after_broadcast"
  | "after_receipt"
  | "after_mined";

export interface RelayerOptions {
  confirmations: number;
  pollIntervalMs: number;
  /** Transactions of this signer that may wait for inclusion. */
  maxInFlight: number;
  /** Operations in one batch, whatever their gas. */
  maxBatchSize: number;
  /** Blocks without inclusion after which a transaction is replaced at a higher fee. */
  replaceAfterBlocks: number;
  /** Highest fee per gas (wei) that is ever signed. */
  maxFeePerGas: bigint;
}

export interface SignerContext {
  db: Database;
  publicClient: PublicClient;
  /** The signer's key; null where its transactions are only looked after (caretaker.ts). */
  account: PrivateKeyAccount | null;
  /** Lower case. */
  signer: Address;
  epoch: bigint;
  deployment: Deployment;
  options: RelayerOptions;
  logger: RelayerLogger;
  metrics: RelayerMetrics | undefined;
  crashPoint: (point: CrashPoint) => Promise<void>;
  memory: SignerMemory;
}

/** What the loop remembers between rounds; losing it costs time, never an operation. */
export interface SignerMemory {
  /** Newest block by whose time the waiting operations were ended that are too late. */
  sweptHead: Hex | null;
  /** Newest block that the open batches were compared with, and when (milliseconds). */
  followedHead: Hex | null;
  followedAt: number;
  /** Transactions that waited for inclusion then, and those sent since. */
  inFlight: number;
  /** Newest block at which each open batch was broadcast. */
  broadcastAt: Map<bigint, bigint>;
  /** Block since which each open batch waits for inclusion at its present fees. */
  waitingSince: Map<bigint, bigint>;
  /** First block at which each open batch was missing although its nonce was used. */
  missingSince: Map<bigint, bigint>;
  /** Next block in which the search for the transaction that used a quarantined batch's nonce looks. */
  searchedTo: Map<bigint, bigint>;
  /**
   * The account nonce that the chain waits for, where the first open batch has a higher one, and the block at which it
   * was first seen so.
   */
  gap: { nonce: number; since: bigint } | null;
  /** Rounds in a row in which the chain knew fewer transactions of the signer than we do. */
  shortNonces: number;
  /** Wall clock (milliseconds) until which nothing new is sent. */
  pausedUntil: number;
  /** When each alarm was last logged (milliseconds). */
  alarmedAt: Map<AlarmName, number>;
}

export interface Head {
  number: bigint;
  hash: Hex;
  /** Seconds. */
  timestamp: number;
  gasLimit: bigint;
  baseFeePerGas: bigint;
}

export function createMemory(): SignerMemory {
  return {
    sweptHead: null,
    followedHead: null,
    followedAt: 0,
    inFlight: 0,
    broadcastAt: new Map(),
    waitingSince: new Map(),
    missingSince: new Map(),
    searchedTo: new Map(),
    gap: null,
    shortNonces: 0,
    pausedUntil: 0,
    alarmedAt: new Map(),
  };
}

/** The same alarm is logged no more often than this; the metric counts each. */
const ALARM_INTERVAL_MS = 10_000;

/** Logs a condition for the operator and counts it. */
export function raiseAlarm(
  { logger, metrics, signer, memory }: SignerContext,
  name: AlarmName,
  facts: Record<string, unknown>,
): void {
  metrics?.alarm(name);
  const last = memory.alarmedAt.get(name);
  if (last !== undefined && Date.now() - last < ALARM_INTERVAL_MS) return;
  memory.alarmedAt.set(name, Date.now());
  logger.error({ alarm: name, signer, ...facts }, `relayer: ${name}`);
}

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
