/** The end of every relayed call: wait for the chain and the indexer, answer once, and the same again ever after. */
import { createHash } from "node:crypto";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq, isNull } from "drizzle-orm";
import { type IndexedTarget, waitForIndexed } from "../db/onchain.js";
import { operation } from "../db/schema.js";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import type { OperationKind } from "../relayer/operations.js";
import type { OperationRow } from "../relayer/outbox.js";
import type { X402Version } from "./quote.js";
import { receiptHeaders } from "./receipt.js";

/** A finished HTTP answer; the body is JSON text, so that a replay is the same to the byte. */
export interface Answer {
  status: 200 | 201 | 402;
  headers: Record<string, string>;
  body: string;
}

/** What a successful call tells its caller; wrapped as `{ data }`. */
export interface Success {
  data: unknown;
  headers?: Record<string, string>;
}

/** What makes two calls the same one (docs/rules.md 16, 17). `act` names the operation and its contract. */
export interface CallIdentity {
  act: string;
  caller: Address;
  rawBody: Uint8Array;
}

/** SHA-256 over act, caller and the body's raw bytes, hex. */
export function requestHash({ act, caller, rawBody }: CallIdentity): string {
  return createHash("sha256").update(`${act}\n${caller}\n`).update(rawBody).digest("hex");
}

export type Conclusion =
  | {
      ok: true;
      answer: Answer;
      /** Of the first answer: a reorganisation may have moved the operation to another one since. */
      transaction: Hex;
    }
  | { ok: false; rejected: OperationRow };

/**
 * Waits until `stored` is mined and visible to readers, then answers with what `respond` makes of it; the first answer
 * is kept and repeated. Throws 503 `settlement_pending` where that takes longer than the configured wait, and where a
 * reorganisation took the block away meanwhile.
 */
export async function conclude(
  deps: Deps,
  stored: OperationRow,
  respond: (mined: OperationRow) => Promise<Success>,
): Promise<Conclusion> {
  if (stored.response !== null) return replayOf(stored.response);

  const deadline = Date.now() + deps.config.settlementWaitMs;
  const row = await deps.outbox.waitFor(stored.id, { timeoutMs: deps.config.settlementWaitMs });
  if (row === null) throw settlementPending();
  if (row.state === "rejected") return { ok: false, rejected: row };
  if (row.response !== null) return replayOf(row.response);

  const block = {
    blockNumber: row.blockNumber ?? 0n,
    blockHash: (row.blockHash as Hex | null) ?? undefined,
    escrow: (row.escrow as Address | null) ?? undefined,
    staker: STAKING.has(row.kind) ? ((row.caller as Address | null) ?? undefined) : undefined,
  };
  const timeoutMs = Math.max(deadline - Date.now(), 1000);
  const { data, headers = {} } = await respondFrom(deps.db, { ...block, timeoutMs }, () => respond(row));
  deps.logger.info(
    {
      operation: row.id.toString(),
      kind: row.kind,
      escrow: row.escrow,
      transaction: row.transactionHash,
      block: row.blockNumber?.toString(),
    },
    "operation applied",
  );
  const answered: Answered = {
    ok: true,
    answer: { status: 200, headers, body: JSON.stringify({ data }) },
    transaction: row.transactionHash as Hex,
  };
  // Stored unheard, it would be nobody's: a repeated act is picked up where it has no answer yet.
  return keepFirst(deps, row, answered).catch(() => keepFirst(deps, row, answered));
}

/**
 * What `respond` makes of the views once they show `target`, and show it still when it is done: else it would tell of a
 * contract that is not there, or not as far. Throws 503 `settlement_pending` otherwise.
 */
export async function respondFrom<T>(
  db: Deps["db"],
  target: IndexedTarget,
  respond: () => Promise<T>,
): Promise<T> {
  if (!(await waitForIndexed(db, target))) throw settlementPending();
  const [made] = await Promise.allSettled([respond()]);
  if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 }))) throw settlementPending();
  if (made.status === "rejected") throw made.reason;
  return made.value;
}

/** The receipt header of a settled payment; not stored with the answer, because a replay may use the other version. */
export function receiptOf(
  { deployment }: Pick<Deps, "deployment">,
  paid: { version: X402Version; transaction: Hex; payer: Address; amount: bigint },
): Record<string, string> {
  const { version, ...outcome } = paid;
  return receiptHeaders({ version, chainId: deployment.chainId, outcome: { success: true, ...outcome } });
}

/** 503 for a call whose outcome is not known yet: repeating it, byte for byte, picks the same operation up. */
export function settlementPending(): AppError {
  return new AppError("settlement_pending", {
    message:
      "The operation is on its way to the chain. Repeat the identical call, with the same payment, to get its outcome.",
    hint: "Do not sign a new payment for it.",
    retryable: true,
    retryAfterSeconds: 2,
  });
}

/** Acts that change their caller's stake. */
const STAKING: ReadonlySet<string> = new Set(["stake", "request-unstake"] satisfies OperationKind[]);

type Answered = Extract<Conclusion, { ok: true }>;

/**
 * Of several identical calls that end at once, one stores its answer and the others repeat it. Asked again where a
 * connection broke, it finds the answer that it stored.
 */
async function keepFirst(deps: Deps, row: OperationRow, answered: Answered): Promise<Answered> {
  const { answer, transaction } = answered;
  const { status, body, headers } = answer;
  const written = await deps.db
    .update(operation)
    .set({ response: { status, body, headers, transaction } })
    .where(and(eq(operation.id, row.id), isNull(operation.response)))
    .returning({ id: operation.id });
  if (written.length > 0) return answered;
  const [current] = await deps.db
    .select({ response: operation.response })
    .from(operation)
    .where(eq(operation.id, row.id));
  return current?.response ? replayOf(current.response) : answered;
}

function replayOf(stored: NonNullable<OperationRow["response"]>): Answered {
  const { status, headers, body, transaction } = stored;
  const answer: Answer = {
    status: status as Answer["status"],
    headers: { ...headers, "Idempotent-Replay": "true" },
    body: String(body),
  };
  return { ok: true, answer, transaction: transaction as Hex };
}
