/** The Merkle tree that a delivery anchors: a cache of trees, and the lock that keeps an anchored root complete. */

import { setImmediate as nextTurn } from "node:timers/promises";
import { ZERO_HASH } from "@working-contracts/protocol/checkpoints";
import type { Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { bytesToHex, hexToBytes, keccak256 } from "viem";
import { type Executor, lock, type Transaction } from "../../db/client.js";
import { checkpoint } from "../../db/schema.js";

export type CheckpointTrees = ReturnType<typeof createCheckpointTrees>;

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

/** Merkle trees of checkpoints, of which those used last are kept up to `maxBytes`. */
export function createCheckpointTrees({ maxBytes = MAX_BYTES } = {}) {
  /** By contract and Worker, least recently used first. */
  const trees = new Map<string, CheckpointTree>();
  /** By handle: otherwise a transaction could wait for a build that waits for a connection. */
  const building = new WeakMap<Executor, Map<string, Promise<CheckpointTree>>>();
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
    /** The tree over all checkpoints so far; `count` is their number, if known. A handle's callers share one build. */
    async of(db: Executor, by: CheckpointsBy, count?: number): Promise<CheckpointTree> {
      const name = `${by.contractId}:${by.worker}`;
      const leafCount = count ?? (await countCheckpoints(db, by));
      const known = trees.get(name);
      if (known?.leafCount === leafCount) {
        keep(name, known);
        return known;
      }
      const key = `${name}:${leafCount}`;
      const builds = building.get(db) ?? new Map<string, Promise<CheckpointTree>>();
      building.set(db, builds);
      let build = builds.get(key);
      if (build === undefined) {
        build = readLeaves(db, by, leafCount).then(buildTree);
        builds.set(key, build);
        build.finally(() => builds.delete(key)).catch(() => undefined);
      }
      const tree = await build;
      if ((trees.get(name)?.leafCount ?? 0) <= tree.leafCount) keep(name, tree);
      return tree;
    },
  };
}

/** SQL: the number of a Worker's checkpoints. They are only ever added, so it identifies their state. */
export function checkpointCount(id: SQLWrapper, worker: SQLWrapper): SQL<number> {
  return sql`(select coalesce(max(position) + 1, 0) from app.checkpoint where contract_id = ${id} and worker = ${worker})`;
}

/** As {@link checkpointCount}, in a separate statement. */
export async function countCheckpoints(db: Executor, by: CheckpointsBy): Promise<number> {
  const last = await readLastCheckpoint(db, by);
  return last === null ? 0 : last.position + 1;
}

export async function readLastCheckpoint(db: Executor, by: CheckpointsBy): Promise<CheckpointRow | null> {
  const [last] = await db
    .select()
    .from(checkpoint)
    .where(isBy(by))
    .orderBy(desc(checkpoint.position))
    .limit(1);
  return last ?? null;
}

/** Sorted by Postgres and read as one value, of at most a few MB: as rows, many leaves would block this process. */
async function readLeaves(db: Executor, by: CheckpointsBy, count: number): Promise<Buffer[]> {
  if (count === 0) return [];
  const { rows } = await db.execute<{
    nodes: Buffer | null;
  }>(sql`select string_agg(leaf, '' order by leaf) as nodes
    from (select decode(substr(leaf, 3), 'hex') as leaf from app.checkpoint where ${isBy(by)} and position < ${count})`);
  const nodes = rows[0]?.nodes ?? Buffer.alloc(0);
  return Array.from({ length: nodes.length / NODE_BYTES }, (_, i) => nodeAt({ nodes }, i));
}

/**
 * Serializes everything that changes or anchors the checkpoints of a Working Contract until the transaction ends.
 * A delivery takes it, computes the root and stores its operation in one transaction; a checkpoint takes it and is
 * refused once such an operation is stored. So the anchored root covers every accepted checkpoint.
 */
export async function lockCheckpoints(tx: Transaction, contractId: string): Promise<void> {
  await lock(tx, `checkpoints:${contractId}`);
}

export type CheckpointRow = typeof checkpoint.$inferSelect;

/** The fields of a Checkpoint that a leaf commits to: all except those that the service adds. */
export type CheckpointContent = Omit<
  CheckpointRow,
  "id" | "worker" | "position" | "leaf" | "totalBytes" | "createdAt"
>;

/** Laid out as OpenZeppelin's SimpleMerkleTree: root first, children of i at 2i+1 and 2i+2, leaves last and backwards. */
interface CheckpointTree {
  leafCount: number;
  /** All nodes, 32 bytes each. */
  nodes: Buffer;
}

const NODE_BYTES = 32;
/** At about 10 microseconds each, a tree delays other requests by a few milliseconds at most. */
const HASHES_PER_TURN = 250;

/** Builds the tree over leaves in ascending order, yielding to the event loop in between. */
export async function buildTree(sorted: readonly Uint8Array[]): Promise<CheckpointTree> {
  const leafCount = sorted.length;
  const nodeCount = Math.max(0, 2 * leafCount - 1);
  const tree = { leafCount, nodes: Buffer.alloc(nodeCount * NODE_BYTES) };
  for (const [i, leaf] of sorted.entries()) tree.nodes.set(leaf, (nodeCount - 1 - i) * NODE_BYTES);
  for (let i = nodeCount - leafCount - 1; i >= 0; i--) {
    tree.nodes.set(hashPair(nodeAt(tree, 2 * i + 1), nodeAt(tree, 2 * i + 2)), i * NODE_BYTES);
    if (i % HASHES_PER_TURN === 0) await nextTurn();
  }
  return tree;
}

/** The root; the zero hash if there are no leaves. */
export function rootOf(tree: CheckpointTree): Hex {
  return tree.leafCount === 0 ? ZERO_HASH : bytesToHex(nodeAt(tree, 0));
}

/** The sibling hashes from `leaf` up. Throws if the tree does not contain the leaf. */
export function proofOf(tree: CheckpointTree, leaf: Hex): Hex[] {
  const proof: Hex[] = [];
  for (let index = indexOf(tree, leaf); index > 0; index = (index - 1) >> 1) {
    proof.push(bytesToHex(nodeAt(tree, index % 2 === 0 ? index - 1 : index + 1)));
  }
  return proof;
}

/** Leaves are stored in reverse order, so they descend with the index. */
function indexOf(tree: CheckpointTree, leaf: Hex): number {
  const wanted = hexToBytes(leaf);
  const end = 2 * tree.leafCount - 1;
  let [low, high] = [tree.leafCount - 1, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(nodeAt(tree, middle), wanted) > 0) low = middle + 1;
    else high = middle;
  }
  if (low < end && Buffer.compare(nodeAt(tree, low), wanted) === 0) return low;
  throw new RangeError(`${leaf} is no leaf of this tree`);
}

function nodeAt({ nodes }: Pick<CheckpointTree, "nodes">, index: number): Buffer {
  return nodes.subarray(index * NODE_BYTES, (index + 1) * NODE_BYTES);
}

function hashPair(a: Buffer, b: Buffer): Uint8Array {
  return keccak256(Buffer.concat(Buffer.compare(a, b) < 0 ? [a, b] : [b, a]), "bytes");
}
