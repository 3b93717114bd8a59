/** Checkpoints of continuous work, and their proofs. */
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { z } from "@hono/zod-openapi";
import { checkpointLeaf } from "@working-contracts/protocol/checkpoints";
import { LIMITS } from "@working-contracts/protocol/limits";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, lte, ne } from "drizzle-orm";
import type { Executor, Transaction } from "../../db/client.js";
import type { IndexReader } from "../../db/onchain.js";
import { checkpoint, operation } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { conflict, invalidField, notFound } from "../../errors.js";
import { agentsOf, stageEvent } from "../../events/log.js";
import {
  created,
  data,
  endpoints,
  IdempotencyKeySchema,
  raw,
  resourceId,
  sendJson,
} from "../../http/endpoint.js";
import { inReadQueue } from "../../http/read-queue.js";
import {
  ContractParamsSchema,
  filled,
  HexViewSchema,
  JsonObjectSchema,
  listOf,
  type Page,
  PageQuerySchema,
  shown,
  TimestampSchema,
  textUpTo,
} from "../../http/schemas.js";
import { createConcurrencyLimit } from "../../scheduling.js";
import { loadContractForAction, requireStatus, requireWorker } from "../contracts/actions.js";
import { loadContract } from "../contracts/view.js";
import {
  type CheckpointContent,
  type CheckpointRow,
  type CheckpointsBy,
  isBy,
  lockCheckpoints,
  proofOf,
  readLastCheckpoint,
  rootOf,
} from "./checkpoint-trees.js";

/** A Checkpoint as the API shows it (specification, "Checkpoint"). */
const CheckpointSchema = z
  .object({
    id: z.string(),
    contractId: z.string(),
    fromSequence: z.number().int(),
    toSequence: z.number().int(),
    merkleRoot: z.string(),
    lastReceiptHash: z.string(),
    teeMeasurement: z.string(),
    teeSignature: z.string(),
    data: z.record(z.string(), z.unknown()),
    checkpointedAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
  })
  .openapi("Checkpoint");

export type CheckpointView = z.infer<typeof CheckpointSchema>;

const toCheckpoint = (row: CheckpointContent & Pick<CheckpointRow, "id" | "createdAt">): CheckpointView =>
  shown(CheckpointSchema, row);

const START = { position: -1, totalBytes: 0 };

/** A page of `limit` checkpoints, or of as many as fit into its bytes. Throws 400 if the cursor names none of the contract. */
export async function listCheckpoints(
  db: Executor,
  { by, limit, cursor }: { by: CheckpointsBy; limit: number; cursor?: string | undefined },
): Promise<Page<CheckpointView>> {
  const after = cursor === undefined ? START : await positionOf(db, by, cursor);
  const rows = await readAfter(db, { by, after, limit });
  const end = rows.at(-1);
  const isLast = end?.position === (await readLastCheckpoint(db, by))?.position;
  return { data: rows.map(toCheckpoint), nextCursor: isLast ? null : (end?.id ?? null) };
}

/** Two pages of all streamed lists are read at a time, which leaves the processor to writes. */
const limitReads = createConcurrencyLimit(2);

/** All checkpoints, oldest first, read page by page as the consumer takes them. */
async function* streamCheckpoints(db: Executor, by: CheckpointsBy): AsyncGenerator<CheckpointView> {
  let after = START;
  for (;;) {
    const rows = await limitReads(() => readAfter(db, { by, after, limit: LIMITS.maxPageSize }));
    for (const row of rows) yield toCheckpoint(row);
    const end = rows.at(-1);
    if (end === undefined) return;
    after = end;
  }
}

/** A checkpoint is smaller than a page, so a page is empty only at the end. */
function readAfter(
  db: Executor,
  { by, after, limit }: { by: CheckpointsBy; after: typeof START; limit: number },
): Promise<CheckpointRow[]> {
  return db
    .select()
    .from(checkpoint)
    .where(
      and(
        isBy(by),
        gt(checkpoint.position, after.position),
        lte(checkpoint.totalBytes, after.totalBytes + LIMITS.checkpointPageBytes),
      ),
    )
    .orderBy(asc(checkpoint.position))
    .limit(limit);
}

async function positionOf(db: Executor, by: CheckpointsBy, id: string): Promise<typeof START> {
  const [row] = await db
    .select({ position: checkpoint.position, totalBytes: checkpoint.totalBytes })
    .from(checkpoint)
    .where(and(isBy(by), eq(checkpoint.id, id)));
  if (row !== undefined) return row;
  throw invalidField("cursor", "names no checkpoint of this contract; use the nextCursor of a response");
}

const CheckpointProofSchema = z
  .object({
    checkpointId: z.string(),
    contractId: z.string(),
    leaf: HexViewSchema.openapi({
      description:
        "keccak256 of the canonical JSON (RFC 8785) of the Checkpoint without `id` and `createdAt`",
    }),
    proof: z
      .array(HexViewSchema)
      .openapi({ description: "Sibling hashes from the leaf up; keccak256 of each pair in ascending order" }),
    root: HexViewSchema,
    leafCount: z.number().int(),
    anchoredRoot: HexViewSchema.nullable().openapi({
      description: "`checkpointsRoot` of the escrow's WorkingContractDelivered event",
    }),
    anchored: z.boolean().openapi({ description: "Whether `root` is `anchoredRoot`" }),
  })
  .openapi("CheckpointProof");

export type CheckpointProof = z.infer<typeof CheckpointProofSchema>;

/** The proof against the root over all checkpoints, which a delivery anchors. Throws 404. */
async function proveCheckpoint(
  deps: IndexReader & Pick<Deps, "checkpointTrees">,
  { id, checkpointId }: { id: Address; checkpointId: string },
): Promise<CheckpointProof> {
  const { chain } = await loadContract(deps, id);
  const by = { contractId: id, worker: chain.worker };
  const [row] = await deps.db
    .select({ leaf: checkpoint.leaf })
    .from(checkpoint)
    .where(and(isBy(by), eq(checkpoint.id, checkpointId)));
  if (row === undefined) throw notFound(`The contract has no checkpoint ${checkpointId}.`);
  const tree = await deps.checkpointTrees.of(deps.db, by);
  const root = rootOf(tree);
  const anchoredRoot = chain.checkpointsRoot;
  return {
    checkpointId,
    contractId: id,
    leaf: row.leaf,
    proof: proofOf(tree, row.leaf),
    root,
    leafCount: tree.leafCount,
    anchoredRoot,
    anchored: anchoredRoot === root,
  };
}

interface SubmittedCheckpoint {
  id: Address;
  caller: Address;
  checkpointId: string;
  draft: Omit<CheckpointContent, "contractId">;
}

/** Accepts a checkpoint, or returns that of an earlier call with its id. Refuses one out of order or too large, or during a delivery. */
async function submitCheckpoint(
  deps: IndexReader & Pick<Deps, "db">,
  { id, caller, checkpointId, draft }: SubmittedCheckpoint,
): Promise<CheckpointView> {
  // Strangers are refused before the lock, so they cannot delay the Worker.
  requireWorker(await loadContractForAction(deps, id), caller);
  return deps.db.transaction(async (tx) => {
    await lockCheckpoints(tx, id);
    const [first] = await tx.select().from(checkpoint).where(eq(checkpoint.id, checkpointId));
    if (first !== undefined) return toCheckpoint(first);
    const now = deps.clock.now();
    const row = await loadContractForAction({ ...deps, db: tx }, id);
    requireStatus(row, "matched", now);
    await requireNoDelivery(tx, id);
    const previous = await readLastCheckpoint(tx, { contractId: id, worker: caller });
    const position = previous === null ? 0 : previous.position + 1;
    requireOrder(draft, previous, now);
    const added = { ...draft, contractId: id, id: checkpointId, createdAt: new Date(now * 1000) };
    const accepted = toCheckpoint(added);
    const totalBytes = (previous?.totalBytes ?? 0) + Buffer.byteLength(JSON.stringify(accepted));
    requireWithinCapacity(totalBytes, checkpointCapacity(row.chain, now));
    await tx
      .insert(checkpoint)
      .values({ ...added, worker: caller, position, totalBytes, leaf: checkpointLeaf(accepted) });
    const { fromSequence, toSequence } = accepted;
    await stageEvent(tx, {
      type: "checkpoint.accepted",
      contractId: id,
      agents: agentsOf(row.chain.client, row.chain.worker),
      data: { checkpointId: accepted.id, fromSequence, toSequence },
      occurredAt: new Date(now * 1000),
      source: `checkpoint:${accepted.id}`,
    });
    return accepted;
  });
}

/** A stored delivery has fixed its root, even if it is not on chain yet. */
async function requireNoDelivery(tx: Transaction, id: Address): Promise<void> {
  const isDelivery = and(eq(operation.escrow, id), eq(operation.kind, "deliver"));
  if ((await tx.$count(operation, and(isDelivery, ne(operation.state, "rejected")))) === 0) return;
  throw conflict("A delivery is pending; no checkpoint can be added after it.");
}

/** Bytes that a contract's checkpoints can have by now: docs/limits.md, "Storage", says why. */
export function checkpointCapacity(
  { price, matchedAt }: { price: bigint; matchedAt: bigint | null },
  now: number,
): number {
  const perDay = LIMITS.checkpointBytesPerDay * (1 + Number(price) / 1e6);
  const days = 1 + Math.floor(Math.max(0, now - Number(matchedAt ?? now)) / 86_400);
  return Math.min(Math.floor(perDay * days), LIMITS.checkpointBytesPerContract);
}

function requireWithinCapacity(totalBytes: number, maximum: number): void {
  if (totalBytes <= maximum) return;
  const isFinal = maximum === LIMITS.checkpointBytesPerContract;
  throw conflict(
    `With this checkpoint the contract's checkpoints would have ${totalBytes} bytes, over the maximum of ${maximum}${isFinal ? "" : ", which grows each day"}. Send a smaller one, deliver, or ${isFinal ? "post a new contract" : "wait"}.`,
    { totalBytes, maximum },
  );
}

function requireOrder(
  draft: SubmittedCheckpoint["draft"],
  previous: CheckpointRow | null,
  now: number,
): void {
  const expected = previous === null ? 1 : previous.toSequence + 1;
  const latest = now + LIMITS.checkpointClockSkew;
  const details = {
    expectedFromSequence: expected,
    previousCheckpointedAt: previous?.checkpointedAt.toISOString() ?? null,
  };
  if (draft.fromSequence !== expected) {
    const rule = previous === null ? "the first checkpoint starts at 1" : "the previous toSequence plus 1";
    throw conflict(`fromSequence is ${draft.fromSequence}, expected ${expected}: ${rule}.`, details);
  }
  if (previous !== null && draft.checkpointedAt <= previous.checkpointedAt) {
    throw conflict(
      `checkpointedAt must be later than the previous checkpoint's, ${previous.checkpointedAt.toISOString()}.`,
      details,
    );
  }
  if (draft.checkpointedAt.getTime() > latest * 1000) {
    throw conflict(
      `checkpointedAt may be at most 5 minutes ahead of the chain's time: at most ${isoTime(latest)} now.`,
      details,
    );
  }
}

const SequenceSchema = z.number().int(`must be a whole number, at most ${Number.MAX_SAFE_INTEGER}`);

/** Opaque text of the Worker's own making: stored as given. */
const TextSchema = textUpTo(LIMITS.checkpointStringLength, filled());

const CheckpointBodySchema = z
  .object({
    fromSequence: SequenceSchema,
    toSequence: SequenceSchema,
    merkleRoot: TextSchema,
    lastReceiptHash: TextSchema,
    teeMeasurement: TextSchema,
    teeSignature: TextSchema,
    checkpointedAt: TimestampSchema,
    data: JsonObjectSchema(LIMITS.checkpointDataBytes),
  })
  .refine(({ fromSequence, toSequence }) => toSequence >= fromSequence, {
    path: ["toSequence"],
    message: "must not be less than fromSequence",
  })
  .openapi("SubmitCheckpoint") satisfies z.ZodType<SubmittedCheckpoint["draft"]>;

const CheckpointParamsSchema = ContractParamsSchema.extend({
  checkpointId: z
    .string()
    .min(1)
    .max(100)
    .openapi({ param: { name: "checkpointId", in: "path" } }),
});

const { get, post } = endpoints("Checkpoints");

export const checkpointEndpoints = [
  post("/v1/contracts/{id}/checkpoint", {
    operationId: "submitCheckpoint",
    summary: "Submit a checkpoint of continuous work (the matched worker)",
    params: ContractParamsSchema,
    headers: IdempotencyKeySchema,
    body: CheckpointBodySchema,
    returns: created("The checkpoint as stored", CheckpointSchema),
    errors: ["forbidden", "not_found", "conflict"],
    handle: (deps, call) => {
      const { params, body: draft, caller } = call;
      return submitCheckpoint(deps, { id: params.id, caller, checkpointId: resourceId(call), draft });
    },
  }),
  get("/v1/contracts/{id}/checkpoints", {
    operationId: "listCheckpoints",
    summary: "List the checkpoints of a contract, oldest first",
    description:
      "Everything in one response, unless `limit` or `cursor` is given. A page ends early at the page's maximum of bytes (`GET /v1/limits`); follow `nextCursor`.",
    auth: "none",
    longRead: true,
    params: ContractParamsSchema,
    query: PageQuerySchema,
    returns: raw("Checkpoints", {
      "application/json": { schema: listOf(CheckpointSchema).openapi("CheckpointList") },
    }),
    errors: ["not_found"],
    handle: async (deps, { params: { id }, query: { limit, cursor }, c }) => {
      const { db } = deps;
      const by = { contractId: id, worker: (await loadContract(deps, id)).chain.worker };
      if (limit === undefined && cursor === undefined) {
        c.get("limitDownload")();
        const text = listText(streamCheckpoints(db, by));
        // Read before the status is sent: a database that does not respond is still a 503.
        const first = await text.next();
        // As bytes: the server counts the length of a short body in the units of its pieces.
        const bytes = Readable.from(prepend(first.value, text), { objectMode: false });
        const stream = Readable.toWeb(bytes) as ReadableStream;
        return c.body(stream as globalThis.ReadableStream, 200, { "Content-Type": "application/json" });
      }
      return sendJson(c, await listCheckpoints(db, { by, limit: limit ?? LIMITS.pageSize, cursor }), 200);
    },
  }),
  get("/v1/contracts/{id}/checkpoints/{checkpointId}/proof", {
    operationId: "proveCheckpoint",
    summary: "Prove a checkpoint against the root that the delivery anchored on chain",
    description:
      "Before delivery the proof is against the root of all checkpoints so far. The tree is OpenZeppelin's SimpleMerkleTree; MerkleProof.verify accepts the proof on chain.",
    auth: "none",
    longRead: true,
    params: CheckpointParamsSchema,
    returns: data("The proof", CheckpointProofSchema),
    errors: ["not_found"],
    handle: (deps, { params, c }) => {
      const reader = { ip: c.get("ip"), caller: c.get("identity") ?? "" };
      return inReadQueue(reader, () => proveCheckpoint(deps, params));
    },
  }),
];

/** The text of `{ "data": [...] }`, item by item. */
async function* listText(items: AsyncIterable<unknown>): AsyncGenerator<string, undefined> {
  let separator = '{"data":[';
  for await (const item of items) {
    yield separator + JSON.stringify(item);
    separator = ",";
  }
  yield separator === "," ? "]}" : `${separator}]}`;
}

async function* prepend(first: string | undefined, rest: AsyncIterable<string>): AsyncGenerator<string> {
  if (first !== undefined) yield first;
  yield* rest;
}
