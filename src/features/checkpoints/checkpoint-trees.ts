/** The Merkle trees over the checkpoints of contracts: a cache, and the lock that keeps an anchored root complete. */
import { and, desc, eq, type SQL, sql } from "drizzle-orm";
import { type Executor, lock, type Transaction } from "../../db/client.js";
import { checkpoint } from "../../db/schema.js";
import { buildTree, type CheckpointRow, type CheckpointTree } from "./merkle.js";

export interface CheckpointTrees {
  /** The tree over all checkpoints so far. Concurrent callers share one build. */
  of(db: Executor, by: CheckpointsBy): Promise<CheckpointTree>;
}

/** The checkpoints of a Working Contract by its Worker; none before it is matched. */
export interface CheckpointsBy {
  contractId: string;
  worker: string | null;
}

export function isBy({ contractId, worker }: CheckpointsBy): SQL | undefined {
  return and(eq(checkpoint.contractId, contractId), eq(checkpoint.worker, worker ?? ""));
}

/** Ten trees of the largest size. */
const MAX_BYTES = 64 * 1024 * 1024;
const ROWS_AT_ONCE = 2000;

export function createCheckpointTrees({ maxBytes = MAX_BYTES } = {}): CheckpointTrees {
  /** By contract and Worker, least recently used first. */
  const trees = new Map<string, CheckpointTree>();
  const building = new Map<string, Promise<CheckpointTree>>();
  let bytes = 0;

  const forget = (name: string): void => {
    bytes -= trees.get(name)?.nodes.length ?? 0;
    trees.delete(name);
  };
  const keep = (name: string, tree: CheckpointTree): void => {
    forget(name);
    trees.set(name, tree);
    bytes += tree.nodes.length;
    for (const oldest of trees.keys()) {
      if (bytes <= maxBytes) return;
      forget(oldest);
    }
  };

  return {
    async of(db, by) {
      const name = `${by.contractId}:${by.worker}`;
      const last = await readLastCheckpoint(db, by);
      const leafCount = last === null ? 0 : last.position + 1;
      const known = trees.get(name);
      // Checkpoints are only ever added, so their number identifies the state.
      if (known?.leafCount === leafCount) {
        keep(name, known);
        return known;
      }
      const key = `${name}:${leafCount}`;
      let build = building.get(key);
      if (build === undefined) {
        build = readLeaves(db, by, leafCount).then(buildTree);
        building.set(key, build);
        build.finally(() => building.delete(key)).catch(() => undefined);
      }
      const tree = await build;
      if ((trees.get(name)?.leafCount ?? 0) <= tree.leafCount) keep(name, tree);
      return tree;
    },
  };
}

/** The newest checkpoint. */
export async function readLastCheckpoint(db: Executor, by: CheckpointsBy): Promise<CheckpointRow | null> {
  const [last] = await db
    .select()
    .from(checkpoint)
    .where(isBy(by))
    .orderBy(desc(checkpoint.position))
    .limit(1);
  return last ?? null;
}

/** Sorted by Postgres and, if they are many, fetched in parts, so neither blocks this process. */
async function readLeaves(db: Executor, by: CheckpointsBy, count: number): Promise<Buffer[]> {
  if (count === 0) return [];
  const sorted = sql`select decode(substr(leaf, 3), 'hex') as leaf from app.checkpoint
    where ${isBy(by)} and position < ${count} order by leaf`;
  if (count <= ROWS_AT_ONCE) {
    const { rows } = await db.execute<{ leaf: Buffer }>(sorted);
    return rows.map(({ leaf }) => leaf);
  }
  return db.transaction(async (tx) => {
    await tx.execute(sql`declare sorted_leaves no scroll cursor for ${sorted}`);
    const leaves: Buffer[] = [];
    for (;;) {
      const { rows } = await tx.execute<{ leaf: Buffer }>(
        sql`fetch ${sql.raw(String(ROWS_AT_ONCE))} from sorted_leaves`,
      );
      for (const { leaf } of rows) leaves.push(leaf);
      if (rows.length < ROWS_AT_ONCE) break;
    }
    await tx.execute(sql`close sorted_leaves`);
    return leaves;
  });
}

/**
 * Serialises everything that changes or anchors the checkpoints of a Working Contract until the transaction ends.
 * A delivery takes it, computes the root and stores its operation in one transaction; a checkpoint takes it and is
 * refused once such an operation is stored. So the anchored root covers every accepted checkpoint.
 */
export async function lockCheckpoints(tx: Transaction, contractId: string): Promise<void> {
  await lock(tx, `checkpoints:${contractId}`);
}
