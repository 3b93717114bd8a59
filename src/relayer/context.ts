/** State and types shared by the parts of one signer's loop. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { BaseLogger } from "pino";
import type { PrivateKeyAccount, PublicClient } from "viem";
import type { Database } from "../db/client.js";
import type { GasLimits } from "./gas-accounts.js";

export type RelayerLogger = Pick<BaseLogger, "debug" | "info" | "warn" | "error">;

/** The relayer's counters. Every method is cheap and never throws. */
export interface RelayerMetrics {
  operations(outcome: "mined" | "final" | "rejected" | "held" | "requeued", count: number): void;
  batches(event: "sent" | "replaced" | "mined" | "final" | "reverted" | "reorganised" | "quarantined"): void;
  /** A transaction was signed: a batch's first, or a replacement. */
  signed(transaction: { signer: Address; operations: number; maxFeePerGas: bigint }): void;
  /** A transaction was mined. `gasPaid` is in wei; `seconds` is the time from storing each operation to its block. */
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
  "reorganisation_beyond_finality",
  "operation_failing",
] as const;
export type AlarmName = (typeof ALARM_NAMES)[number];

/** Points at which a crash must neither lose nor repeat an operation. */
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
  gasLimits: GasLimits;
}

export interface SignerContext {
  db: Database;
  publicClient: PublicClient;
  /** The signer's key; null in the caretaker, which signs nothing (caretaker.ts). */
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

/** The loop's memory between rounds. Losing it costs time, never an operation. */
export interface SignerMemory {
  /** Whether the last round found nothing open and nothing waiting. */
  isIdle: boolean;
  /** Newest block whose timestamp was used to reject expired operations. */
  sweptHead: Hex | null;
  /** Newest block the open batches were checked against, and when that was (milliseconds). */
  followedHead: Hex | null;
  followedAt: number;
  /** Transactions that were waiting for inclusion at that check, plus those sent since. */
  inFlight: number;
  /** Newest block at which each open batch was broadcast. */
  broadcastAt: Map<bigint, bigint>;
  /** Block since which each open batch has been waiting at its current fees. */
  waitingSince: Map<bigint, bigint>;
  /** First block at which each open batch had no receipt although its nonce was used. */
  missingSince: Map<bigint, bigint>;
  /** Next block to search for the transaction that used a quarantined batch's nonce. */
  searchedTo: Map<bigint, bigint>;
  /** The chain's next account nonce and the block it was first seen at, if the first open batch has a higher nonce. */
  gap: { nonce: number; since: bigint } | null;
  /** Consecutive rounds in which the chain knew fewer of the signer's transactions than we do. */
  shortNonces: number;
  /** Nothing new is sent before this wall-clock time (milliseconds). */
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
    isIdle: false,
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
