/** Trees of checkpoints over a real table: shared, cached, bounded, and never stale. */
import { randomBytes } from "node:crypto";
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../../src/db/client.js";
import {
  type CheckpointsBy,
  createCheckpointTrees,
  rootOf,
} from "../../src/features/checkpoints/checkpoint-trees.js";
import { useWorld } from "../support/world.js";

const { db, query, info } = await useWorld();

/** Adds `count` checkpoints to a contract. Their leaves are hashes of their positions. */
async function addCheckpoints(
  { contractId, worker }: CheckpointsBy,
  { from, count }: { from: number; count: number },
) {
  await query(
    `insert into app.checkpoint (id, contract_id, worker, position, from_sequence, to_sequence, merkle_root,
        last_receipt_hash, tee_measurement, tee_signature, data, leaf, total_bytes, checkpointed_at)
      select gen_random_uuid()::text, $1, $4, i, i + 1, i + 1, 'r', 'h', 'm', 's', '{}',
        '0x' || encode(sha256(($1 || $4 || i)::bytea), 'hex'), (i + 1) * 300, now()
      from generate_series($2::int, $2::int + $3::int - 1) as i`,
    [contractId, from, count, worker],
  );
}

async function expectedRoot({ contractId, worker }: CheckpointsBy): Promise<string> {
  const rows = await query("select leaf from app.checkpoint where contract_id = $1 and worker = $2", [
    contractId,
    worker,
  ]);
  return SimpleMerkleTree.of(rows.map(({ leaf }) => leaf)).root;
}

const newContract = () => ({ contractId: `0x${randomBytes(20).toString("hex")}`, worker: "0xa" });

test("a tree is built once for each state, whoever asks first, and equals OpenZeppelin's", async () => {
  const trees = createCheckpointTrees();
  const id = newContract();
  expect(rootOf(await trees.of(db, id))).toBe(`0x${"0".repeat(64)}`);

  await addCheckpoints(id, { from: 0, count: 4500 });
  const [first, ...others] = await Promise.all(Array.from({ length: 10 }, () => trees.of(db, id)));
  expect(others.every((other) => other === first)).toBe(true);
  expect(await trees.of(db, id)).toBe(first);
  expect(await db.transaction((tx) => trees.of(tx, id))).toBe(first);
  expect(first?.leafCount).toBe(4500);
  expect(first && rootOf(first)).toBe(await expectedRoot(id));

  const other = { ...id, worker: "0xb" };
  await addCheckpoints(other, { from: 0, count: 4500 });
  expect(rootOf(await trees.of(db, other))).toBe(await expectedRoot(other));
  expect(await trees.of(db, id)).toBe(first);

  await addCheckpoints(id, { from: 4500, count: 1 });
  const next = await trees.of(db, id);
  expect(next.leafCount).toBe(4501);
  expect(rootOf(next)).toBe(await expectedRoot(id));
});

test("a transaction with the last connection waits for no build that waits for one", async () => {
  const { pool, db } = createDatabase(info.databaseUrl, { maxConnections: 1 });
  onTestFinished(() => pool.end());
  const trees = createCheckpointTrees();
  const id = newContract();
  await addCheckpoints(id, { from: 0, count: 10 });
  const { tree, waiting } = await db.transaction(async (tx) => {
    const waiting = trees.of(db, id, 10);
    return { tree: await trees.of(tx, id, 10), waiting };
  });
  expect(rootOf(tree)).toBe(await expectedRoot(id));
  expect(await waiting).toEqual(tree);
});

test("if there are more trees than room, the most recently used are kept", async () => {
  const trees = createCheckpointTrees({ maxBytes: 2 * 32 * (2 * 10 - 1) });
  const ids = [newContract(), newContract(), newContract()] as const;
  for (const id of ids) await addCheckpoints(id, { from: 0, count: 10 });
  const [a, b] = [await trees.of(db, ids[0]), await trees.of(db, ids[1])];
  expect(await trees.of(db, ids[0])).toBe(a);
  await trees.of(db, ids[2]);
  expect(await trees.of(db, ids[0])).toBe(a);
  expect(await trees.of(db, ids[1])).not.toBe(b);
});
