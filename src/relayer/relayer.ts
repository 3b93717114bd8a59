/** One signer's loop (takes ownership, follows batches, sends operations), and the follower of signers without a loop. */
import { setTimeout as delay } from "node:timers/promises";
import { relayAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import type { Pool } from "pg";
import type { PrivateKeyAccount, PublicClient } from "viem";
import type { ChainClock } from "../chain/clients.js";
import type { Database } from "../db/client.js";
import { INDEX_CHANGED } from "../db/onchain.js";
import { createLoop, createPause, type Loop, type Wakers } from "../scheduling.js";
import {
  createMemory,
  OWNED_SIGNERS,
  type Ownership,
  OwnershipLost,
  type RelayerLogger,
  type RelayerMetrics,
  type RelayerOptions,
  raiseAlarm,
  readHead,
  type SignerContext,
  type SignerMemory,
  takeOwnership,
} from "./context.js";
import { followBatches, isBehindGap } from "./follow.js";
import { readWork, rejectExpired } from "./lease.js";
import { WATCH_TIME } from "./results.js";
import { fillGap, sendNext } from "./send.js";

export const DEFAULT_OPTIONS = {
  pollIntervalMs: 100,
  notAllowedPauseMs: 10_000,
  maxInFlight: 4,
  replaceAfterBlocks: 3,
};

interface RelayerDeps {
  db: Database;
  pool: Pool;
  publicClient: PublicClient;
  clock: Pick<ChainClock, "now">;
  deployment: Deployment;
  options: Omit<RelayerOptions, keyof typeof DEFAULT_OPTIONS> & Partial<RelayerOptions>;
  logger: RelayerLogger;
  metrics?: RelayerMetrics | undefined;
}

const TAKE_INTERVAL_MS = 1000;
/** How long an idle signer waits for a notification, in case one is lost; retries that are due wait as long. */
const IDLE_WAIT_MS = 1000;
/** How often a signer with open batches reads the queue without a notification or a new block. */
const QUEUE_LOOK_MS = 500;
/** Postgres channel; a trigger notifies it of each stored operation. */
const OPERATION_QUEUED = "operation_queued";
const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 2000;
const backoffAfter = (failures: number): number =>
  Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), MAX_BACKOFF_MS);
/** An indexer that catches up reports many blocks a second. */
const MIN_PAUSE_MS = 20;
/** How often an idle signer checks that the chain still has its final batches. */
const IDLE_LOOK_MS = 5000;
/** How long stop() waits for a step that hangs on the node. Abandoning it is safe because writes check the epoch. */
const STOP_PATIENCE_MS = 5000;

const FOLLOW_INTERVAL_MS = 2000;
/** Longer than a restart of the owner takes. */
const UNATTENDED_SECONDS = 30;
const MAX_UNATTENDED = 100;

/** `stop` ends the loop after its current step and releases the signer. The next owner resumes the signed batches. */
export function createRelayer({
  account,
  notifications,
  options,
  crashPoint,
  ...deps
}: RelayerDeps & {
  notifications: Wakers["notifications"];
  account: PrivateKeyAccount;
  crashPoint?: SignerContext["crashPoint"];
}): Loop {
  const { pool, logger, metrics } = deps;
  const settings: RelayerOptions = { ...DEFAULT_OPTIONS, ...options };
  const signer = account.address.toLowerCase() as Address;
  let ownership: Ownership | null = null;

  const owning = createLoop({
    name: `relayer of ${signer}`,
    logger,
    intervalMs: TAKE_INTERVAL_MS,
    maxBackoffMs: TAKE_INTERVAL_MS,
    async round(stopping) {
      try {
        ownership = await takeOwnership(pool, signer);
        if (ownership === null) return;
        logger.info({ signer, epoch: ownership.epoch.toString() }, "relayer owns its signer");
        await work(ownership, stopping);
      } finally {
        await ownership?.release();
        ownership = null;
      }
    },
  });

  const work = async ({ epoch, lost }: Ownership, stopping: AbortSignal): Promise<void> => {
    const memory = createMemory();
    const context = { ...deps, metrics, account, signer, epoch, options: settings, crashPoint, memory };
    const ended = AbortSignal.any([stopping, lost]);
    const pause = createPause({ notifications, channels: [OPERATION_QUEUED] });
    // A block ends the short pause early; operations do not, so that they share a batch.
    const untilBlock = createPause({ notifications, channels: [INDEX_CHANGED] });
    let failures = 0;
    let isAsked = true;
    while (!ended.aborted) {
      try {
        memory.isAllowed ||= await mayRelay(context);
        await relayRound(context, { isAsked, maySend: memory.isAllowed && !ended.aborted });
        failures = 0;
      } catch (error) {
        if (error instanceof OwnershipLost) {
          logger.warn({ signer, epoch: epoch.toString() }, "relayer lost its signer");
          break;
        }
        failures += 1;
        // The Relay might no longer allow this signer: check before the next batch.
        memory.isAllowed = false;
        logger.warn({ signer, failures, error }, "relayer round failed");
      }
      if (memory.isAllowed) {
        const least = Math.min(MIN_PAUSE_MS, settings.pollIntervalMs);
        await delay(least, undefined, { signal: ended }).catch(() => undefined);
        await untilBlock.wait(settings.pollIntervalMs - least, ended);
      } else {
        const ms =
          failures > 0 ? settings.pollIntervalMs + backoffAfter(failures) : settings.notAllowedPauseMs;
        await delay(ms, undefined, { signal: ended }).catch(() => undefined);
      }
      const isIdle = failures === 0 && memory.isIdle;
      isAsked = (await pause.wait(isIdle ? IDLE_WAIT_MS : 0, ended)) || isIdle || failures > 0;
    }
    pause.close();
    untilBlock.close();
  };

  return {
    start: owning.start,
    async stop() {
      await Promise.race([owning.stop(), delay(STOP_PATIENCE_MS, undefined, { ref: false })]);
      await ownership?.release();
    },
  };
}

/** Follows the open batches, rejects what expired, sends what waits. If not asked, skips a head that it just followed. */
async function relayRound(
  context: SignerContext,
  { isAsked, maySend }: { isAsked: boolean; maySend: boolean },
): Promise<void> {
  const { memory, publicClient, options } = context;
  if (!isAsked && performance.now() - memory.followedAt < QUEUE_LOOK_MS) {
    const { hash } = await readHead(publicClient);
    if (hash === memory.followedHead) return;
  }
  const overdue = memory.shortNonces > 0 || performance.now() - memory.followedAt > IDLE_LOOK_MS;
  const { isOpen, isWaiting } = await readWork(context);
  const open = overdue || isOpen;
  memory.isIdle = !open && !isWaiting;
  if (memory.isIdle) return;
  const head = await readHead(publicClient);
  if (open) await followBatches(context, head);
  else Object.assign(memory, { inFlight: 0, committed: 0n });
  // Batches that are mined only have to get deep. A node can show a nonce as used before it has the receipt.
  const isAtRest = memory.inFlight === 0 && memory.missingSince.size === 0 && memory.shortNonces === 0;
  memory.isIdle = !isWaiting && isAtRest;
  // A batch reverts if the Relay no longer allows the signer.
  if (maySend && !memory.isAllowed) memory.isAllowed = await mayRelay(context);
  if (isWaiting && memory.sweptHead !== head.hash) {
    await rejectExpired(context, head);
    memory.sweptHead = head.hash;
  }
  const canSend = (): boolean => maySend && memory.isAllowed && memory.shortNonces === 0;
  if (canSend() && isBehindGap(context, head)) return fillGap(context, head);
  for (let waits = isWaiting; waits && canSend() && memory.inFlight < options.maxInFlight; ) {
    if (!(await sendNext(context, head))) return;
    memory.inFlight += 1;
    waits = (await readWork(context)).isWaiting;
  }
}

async function mayRelay(context: SignerContext): Promise<boolean> {
  const { publicClient, deployment, signer } = context;
  const allowed = await publicClient.readContract({
    address: deployment.relay,
    abi: relayAbi,
    functionName: "isSigner",
    args: [signer],
  });
  if (!allowed) raiseAlarm(context, "signer_not_allowed", { relay: deployment.relay });
  return allowed;
}

/**
 * Signers that have open batches, but seem to have no owner; and those without one whose newest final batch a reorg can
 * still remove: with few confirmations it is final much earlier.
 */
export async function readUnattended(db: Database, unattendedSeconds: number): Promise<Address[]> {
  const { rows } = await db.execute<{ signer: Address }>(sql`
    select signer from (
      select signer, updated_at from app.batch where state in ('sent', 'mined', 'quarantined')
      union all
      select signer, newest.updated_at from app.signer_epoch known cross join lateral (
        select updated_at from app.batch where signer = known.signer and state = 'final'
        order by account_nonce desc limit 1) newest
      where newest.updated_at > now() - ${WATCH_TIME}::interval
        and hashtext(signer)::oid not in (${sql.raw(OWNED_SIGNERS)})) followed
    group by signer having max(updated_at) < now() - make_interval(secs => ${unattendedSeconds})
    limit ${MAX_UNATTENDED}`);
  return rows.map(({ signer }) => signer);
}

/** Follows the transactions of signers that no process owns, as after the removal of a key. Any number can run. */
export function createUnownedSignerFollower({
  unattendedSeconds = UNATTENDED_SECONDS,
  ...deps
}: RelayerDeps & { unattendedSeconds?: number }): Loop {
  const { db, pool, publicClient, logger, metrics } = deps;
  const options: RelayerOptions = { ...DEFAULT_OPTIONS, ...deps.options };
  const memories = new Map<Address, SignerMemory>();

  const look = async (signer: Address): Promise<void> => {
    const ownership = await takeOwnership(pool, signer);
    if (ownership === null) return;
    try {
      const memory = memories.get(signer) ?? createMemory();
      memories.set(signer, memory);
      const { epoch } = ownership;
      const context = { ...deps, metrics, account: null, signer, epoch, options, memory };
      const head = await readHead(publicClient);
      await followBatches(context, head);
    } finally {
      await ownership.release();
    }
  };

  return createLoop({
    name: "unowned signers",
    logger,
    intervalMs: FOLLOW_INTERVAL_MS,
    maxBackoffMs: FOLLOW_INTERVAL_MS,
    async round(stopping) {
      const signers = await readUnattended(db, unattendedSeconds);
      for (const known of memories.keys()) if (!signers.includes(known)) memories.delete(known);
      for (const signer of signers) {
        if (stopping.aborted) return;
        await look(signer);
      }
    },
  });
}
