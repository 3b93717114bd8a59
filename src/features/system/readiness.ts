import { sql } from "drizzle-orm";
import { indexedBlock } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";

export interface Readiness {
  ready: boolean;
  database: { ok: boolean };
  /** Age of the newest block in seconds by the wall clock; 0 if the chain's clock is ahead. */
  chain: { ok: boolean; block: number | null; ageSeconds: number | null };
  indexer: { ok: boolean; block: number | null; lagBlocks: number | null };
}

/** A check that hangs counts as failed. */
const CHECK_TIMEOUT_MS = 3_000;

/** Checks Postgres, the node and the indexer's progress; never rejects. */
export async function checkReadiness(
  { db, publicClient, config }: Pick<Deps, "db" | "publicClient" | "config">,
  now: () => number = Date.now,
): Promise<Readiness> {
  const { maxHeadAge, maxIndexLag } = config.readiness;
  const [alive, head, indexed] = await Promise.all([
    orNull(db.execute(sql`select 1`)),
    orNull(publicClient.getBlock({ blockTag: "latest" })),
    orNull(indexedBlock(db)),
  ]);
  const ageSeconds = head && Math.max(0, Math.floor(now() / 1000) - Number(head.timestamp));
  // The indexer can have seen a block that this node's response did not have yet.
  const lagBlocks = head && indexed !== null ? Math.max(0, Number(head.number - indexed)) : null;
  const database = { ok: alive !== null };
  const chain = {
    ok: ageSeconds !== null && ageSeconds <= maxHeadAge,
    block: head && Number(head.number),
    ageSeconds,
  };
  const indexer = {
    ok: lagBlocks !== null && lagBlocks <= maxIndexLag,
    block: indexed === null ? null : Number(indexed),
    lagBlocks,
  };
  return { ready: database.ok && chain.ok && indexer.ok, database, chain, indexer };
}

async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, CHECK_TIMEOUT_MS, null);
  });
  try {
    return await Promise.race([answer.catch(() => null), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
