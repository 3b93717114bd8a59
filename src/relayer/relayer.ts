/** One signer's loop: take ownership, follow sent batches, send waiting operations. */

import { relayAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address } from "@working-contracts/protocol/types";
import type { Pool } from "pg";
import type { PrivateKeyAccount, PublicClient } from "viem";
import type { Database } from "../db/client.js";
import { endExpired, readWork } from "./claim.js";
import {
  type CrashPoint,
  createMemory,
  type RelayerLogger,
  type RelayerMetrics,
  type RelayerOptions,
  raiseAlarm,
  readHead,
  type SignerContext,
} from "./context.js";
import { followBatches, isBehindGap } from "./follow.js";
import { type Ownership, OwnershipLost, takeOwnership } from "./ownership.js";
import { fillGap, sendNext } from "./send.js";

export interface Relayer {
  start(): void;
  /** Ends the loop after its current step and releases the signer. The next owner resumes the signed batches. */
  stop(): Promise<void>;
}

export const DEFAULT_OPTIONS: Omit<RelayerOptions, "confirmations"> = {
  pollIntervalMs: 100,
  maxInFlight: 2,
  maxBatchSize: 150,
  replaceAfterBlocks: 3,
  maxFeePerGas: 500_000_000_000n,
};

const TAKE_INTERVAL_MS = 1000;
const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 2000;
/** How often an idle signer checks that the chain still has its final batches. */
const IDLE_LOOK_MS = 5000;
const NOT_ALLOWED_PAUSE_MS = 10_000;
/** How long stop() waits for a step that hangs on the node. Abandoning it is safe because writes check the epoch. */
const STOP_PATIENCE_MS = 5000;

export function createRelayer({
  db,
  pool,
  publicClient,
  account,
  deployment,
  confirmations,
  logger,
  metrics,
  options,
  crashPoint = async () => {},
}: {
  db: Database;
  pool: Pool;
  publicClient: PublicClient;
  account: PrivateKeyAccount;
  deployment: Deployment;
  confirmations: number;
  logger: RelayerLogger;
  metrics?: RelayerMetrics | undefined;
  options?: Partial<Omit<RelayerOptions, "confirmations">> | undefined;
  /** Called at each crash point; tests stop or crash the process here. */
  crashPoint?: ((point: CrashPoint) => Promise<void>) | undefined;
}): Relayer {
  const settings: RelayerOptions = { ...DEFAULT_OPTIONS, ...options, confirmations };
  const signer = account.address.toLowerCase() as Address;
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let ownership: Ownership | null = null;

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        ownership = await takeOwnership(pool, signer);
        if (ownership !== null) {
          logger.info({ signer, epoch: ownership.epoch.toString() }, "relayer owns its signer");
          await work(ownership);
        }
      } catch (error) {
        logger.warn({ signer, error }, "relayer cannot take ownership of its signer");
      } finally {
        await ownership?.release();
        ownership = null;
      }
      await pause(TAKE_INTERVAL_MS, stopping.signal);
    }
  };

  const work = async ({ epoch, lost }: Ownership): Promise<void> => {
    const context: SignerContext = {
      db,
      publicClient,
      account,
      signer,
      epoch,
      deployment,
      options: settings,
      logger,
      metrics,
      crashPoint,
      memory: createMemory(),
    };
    const ended = AbortSignal.any([stopping.signal, lost]);
    let failures = 0;
    let allowed = false;
    while (!ended.aborted) {
      try {
        allowed ||= await mayRelay(context);
        await round(context, allowed && !ended.aborted);
        failures = 0;
      } catch (error) {
        if (error instanceof OwnershipLost) {
          logger.warn({ signer, epoch: epoch.toString() }, "relayer lost its signer");
          return;
        }
        failures += 1;
        // The Relay might no longer allow this signer: check before the next batch.
        allowed = false;
        logger.warn({ signer, failures, error }, "relayer round failed");
      }
      const backoff = failures === 0 ? 0 : Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), MAX_BACKOFF_MS);
      await pause(allowed || failures > 0 ? settings.pollIntervalMs + backoff : NOT_ALLOWED_PAUSE_MS, ended);
    }
  };

  const round = async (context: SignerContext, maySend: boolean): Promise<void> => {
    const { memory } = context;
    const overdue = memory.shortNonces > 0 || Date.now() - memory.followedAt > IDLE_LOOK_MS;
    const { isOpen, isWaiting } = await readWork(context);
    const open = overdue || isOpen;
    if (!open && !isWaiting) return;
    const head = await readHead(publicClient);
    if (open) await followBatches(context, head);
    else memory.inFlight = 0;
    if (isWaiting && memory.sweptHead !== head.hash) {
      await endExpired(context, head);
      memory.sweptHead = head.hash;
    }
    if (maySend && memory.shortNonces === 0 && isBehindGap(context, head)) return fillGap(context, head);
    while (maySend && memory.shortNonces === 0 && memory.inFlight < settings.maxInFlight) {
      if (!(await sendNext(context, head))) return;
      memory.inFlight += 1;
    }
  };

  const mayRelay = async (context: SignerContext): Promise<boolean> => {
    const allowed = await publicClient.readContract({
      address: deployment.relay,
      abi: relayAbi,
      functionName: "isSigner",
      args: [signer],
    });
    if (!allowed) raiseAlarm(context, "signer_not_allowed", { relay: deployment.relay });
    return allowed;
  };

  return {
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await Promise.race([running, new Promise((resolve) => setTimeout(resolve, STOP_PATIENCE_MS).unref())]);
      await ownership?.release();
    },
  };
}

/** Resolves after `ms`, or immediately when `signal` aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}
