/**
 * Follows the transactions of signers that no process owns. Removing a key leaves signed batches behind, and their
 * operations must not stay `sent` forever. Without the key nothing can be replaced, so the caretaker only rebroadcasts
 * the signed bytes and records receipts.
 */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import type { Pool } from "pg";
import type { PublicClient } from "viem";
import type { Database } from "../db/client.js";
import { createLoop, type Loop } from "../loop.js";
import {
  createMemory,
  type RelayerLogger,
  type RelayerMetrics,
  type RelayerOptions,
  readHead,
  type SignerMemory,
} from "./context.js";
import { followBatches } from "./follow.js";
import { takeOwnership } from "./ownership.js";
import { DEFAULT_OPTIONS } from "./relayer.js";

const LOOK_INTERVAL_MS = 2000;
/** Longer than a restart of the owner takes. */
const UNATTENDED_SECONDS = 30;
const MAX_SIGNERS = 100;

/** Any number can run: each signer's ownership lock admits one caretaker, and none while the signer has an owner. */
export function createCaretaker({
  db,
  pool,
  publicClient,
  deployment,
  confirmations,
  logger,
  metrics,
  unattendedSeconds = UNATTENDED_SECONDS,
}: {
  db: Database;
  pool: Pool;
  publicClient: PublicClient;
  deployment: Deployment;
  confirmations: number;
  logger: RelayerLogger;
  metrics?: RelayerMetrics | undefined;
  unattendedSeconds?: number;
}): Loop {
  const options: RelayerOptions = { ...DEFAULT_OPTIONS, confirmations };
  const memories = new Map<Address, SignerMemory>();

  const unattended = async (): Promise<Address[]> => {
    const { rows } = await db.execute<{ signer: Address }>(sql`
      select signer from app.batch where state in ('sent', 'mined', 'quarantined')
      group by signer having max(updated_at) < now() - make_interval(secs => ${unattendedSeconds})
      limit ${MAX_SIGNERS}`);
    return rows.map(({ signer }) => signer);
  };

  const look = async (signer: Address): Promise<void> => {
    const ownership = await takeOwnership(pool, signer);
    if (ownership === null) return;
    try {
      const memory = memories.get(signer) ?? createMemory();
      memories.set(signer, memory);
      const { epoch } = ownership;
      const context = {
        db,
        publicClient,
        account: null,
        signer,
        epoch,
        deployment,
        options,
        logger,
        metrics,
      };
      const head = await readHead(publicClient);
      await followBatches({ ...context, crashPoint: async () => {}, memory }, head);
    } finally {
      await ownership.release();
    }
  };

  return createLoop({
    name: "caretaker",
    logger,
    intervalMs: LOOK_INTERVAL_MS,
    maxBackoffMs: LOOK_INTERVAL_MS,
    async round(stopping) {
      const signers = await unattended();
      for (const known of memories.keys()) if (!signers.includes(known)) memories.delete(known);
      for (const signer of signers) {
        if (stopping.aborted) return;
        await look(signer);
      }
    },
  });
}
