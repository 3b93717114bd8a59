/** The outbox: actions are stored here before anything is sent, and callers wait here for what becomes of them. */
import { sql } from "drizzle-orm";
import { type Executor, hasSqlState, type Notifications, SQLSTATE } from "../db/client.js";
import { ENDED, operation } from "../db/schema.js";
import { columnsOf, prepare, prepareRows, prepareShared, rowOf, sharedCalls } from "../db/statements.js";
import { type AppError, unavailable } from "../errors.js";
import { type GasRefusal, gasExhausted, gasRefusalOf, PENDING_GAS } from "./gas-accounts.js";
import { hasRoom, MAX_QUEUED } from "./limits.js";
import type { NewOperation } from "./operations.js";

const NOT_STORED = {
  fate: "Other calls used up the gas meanwhile, so nothing was stored.",
  hint: "Retry the identical request after that time.",
};

/** An existing row can be rejected, which frees its key, between our insert and our read. */
const INSERT_TRIES = 5;

/** Why in sequence, and in which order: docs/decisions.md, "Calls share statements". */
const insertion = prepareShared<{ has_room: boolean; refusal: GasRefusal | null; id: string | null }>(
  "operation_insert",
  sql`
    with call as materialized (
      select call.*, nextval('app.operation_id_seq') as id from ${sharedCalls({
        kind: "text",
        escrow: "text",
        caller: "text",
        target: "text",
        data: "text",
        signed: "boolean",
        gasLimit: "int",
        asset: "text",
        payer: "text",
        nonce: "text",
        requestHash: "text",
        onceKey: "text",
        notAfter: "bigint",
        maxQueued: "bigint",
        allowance: "float8",
        budget: "float8",
      })}
    ), ${PENDING_GAS}, judged as materialized (
      select call.*, ${hasRoom(sql`call."maxQueued"`)} as has_room, ${gasRefusalOf({
        caller: sql`call.caller`,
        allowance: sql`call.allowance`,
        budget: sql`call.budget`,
        beside: sql`
          select earlier.caller, earlier."gasLimit" from call earlier
          where earlier.n < call.n and earlier.caller is not null`,
      })} as refusal
      from call
    ), stored as (
      insert into app.operation (id, kind, escrow, caller, target, data, signed, gas_limit, asset, payer, nonce,
        request_hash, once_key, not_after)
      select id, kind, escrow, caller, target, data, signed, "gasLimit", asset, payer, nonce, "requestHash", "onceKey",
        "notAfter"
      from judged where has_room and refusal is null
      order by "onceKey", nonce, n
      on conflict do nothing
      returning ${columnsOf(operation)})
    select judged.n, judged.has_room, judged.refusal, stored.*
    from judged left join stored on stored.id = judged.id`,
  { inSequence: true },
);

/** The stored row, or why there is none; null if a deadlock ended the statement, which stored nothing. */
async function insert(db: Executor, values: Record<string, unknown>) {
  try {
    return (await insertion(db, values))[0];
  } catch (error) {
    // In a transaction it ended that, too.
    if ("$client" in db && hasSqlState(error, SQLSTATE.deadlock)) return null;
    throw error;
  }
}

/**
 * Stores an action for the relayer, in one statement. If the outbox already has a row with the same authorization or
 * once-key that is not rejected, returns that row with `existing: true`; compare its `requestHash`, `nonce` or `data`
 * before you treat it as your own. Throws `unavailable` (503) if the queue is full, and `rate_limited` if its caller
 * exceeds the operation's gas limits.
 */
export async function enqueue(
  db: Executor,
  newOperation: NewOperation,
  { maxQueued = MAX_QUEUED }: { maxQueued?: number } = {},
): Promise<{ operation: OperationRow; existing: boolean }> {
  const { payment, gasPolicy, onceKey, caller, ...fields } = newOperation;
  for (let attempt = 0; attempt < INSERT_TRIES; attempt += 1) {
    const row = await insert(db, { ...fields, ...payment, ...gasPolicy, onceKey, caller, maxQueued });
    if (row == null) continue;
    if (row.id !== null) return { operation: rowOf(operation, row), existing: false };
    const existing =
      (payment && (await findByAuthorization(db, payment))) ??
      (onceKey === undefined ? undefined : await findByOnceKey(db, onceKey));
    if (existing !== undefined) return { operation: existing, existing: true };
    if (!row.has_room) throw queueFull();
    if (row.refusal !== null && caller !== null && gasPolicy !== undefined)
      throw gasExhausted(caller, row.refusal, gasPolicy, NOT_STORED);
  }
  throw unavailable("A previous operation for this action is still being finished. Retry in a second.", 1);
}

const operationById = prepareRows(
  "operation_by_id",
  operation,
  sql`where id = ${sql.placeholder("id")}::bigint`,
);

/** The operation with this id: one that a caller waits for is never deleted. */
export async function readOperation(db: Executor, id: string): Promise<OperationRow> {
  const [row] = await operationById(db, { id });
  if (row === undefined) throw new Error(`Operation ${id} vanished`);
  return row;
}

/** Operations whose outcome is not final, of one kind and state. */
interface OpenOperations {
  state: string;
  kind: string;
  count: number;
  /** When the oldest was stored, in seconds of Unix time, and seconds since then. */
  oldest: number;
  age: number;
}

/** By a partial index, and by the open batches: one condition would scan every operation ever stored. */
const open = prepare<OpenOperations>(
  "operations_open",
  sql`
    select state, kind, count(*)::int as count, extract(epoch from min(created_at))::float8 as oldest,
      extract(epoch from now() - min(created_at))::float8 as age
    from (
      select state, kind, created_at from app.operation where state in ('queued', 'held')
      union all
      select state, kind, created_at from app.operation
      where batch_id = any(array(select id from app.batch where state in ('sent', 'mined', 'quarantined')))
        and state in ('sent', 'mined')
    ) open group by state, kind order by state, kind`,
);

/** How many operations wait or are in flight, by state and kind, and since when the oldest does. */
export const readOpenOperations = (db: Executor): Promise<OpenOperations[]> => open(db, {});

const byAuthorization = prepareRows(
  "operation_by_authorization",
  operation,
  sql`where asset = ${sql.placeholder("asset")} and payer = ${sql.placeholder("payer")}
    and nonce = ${sql.placeholder("nonce")} and state <> 'rejected'`,
);

type Payment = NonNullable<NewOperation["payment"]>;

/** The operation with this payment authorization that is not rejected; a retried request resumes it. */
export const findByAuthorization = async (db: Executor, payment: Payment) =>
  (await byAuthorization(db, payment))[0];

const byOnceKey = prepareRows(
  "operation_by_once_key",
  operation,
  sql`where once_key = ${sql.placeholder("onceKey")} and state <> 'rejected'`,
);

/** The operation with this once-key that is not rejected: pending, or done. */
export const findByOnceKey = async (db: Executor, onceKey: string) => (await byOnceKey(db, { onceKey }))[0];

/** `unavailable`: see `MAX_QUEUED`. */
export const queueFull = (): AppError =>
  unavailable(
    "Too many operations are waiting for the chain, so this call was not stored; repeat the identical request later.",
    10,
  );

export type OperationRow = typeof operation.$inferSelect;

/** Postgres channel; the payload is a comma-separated list of operation ids. */
export const OPERATION_DONE = "operation_done";

/** Ids per query. */
const MAX_IDS = 1000;
const POLL_INTERVAL_MS = 1000;

export type OutboxWaiter = ReturnType<typeof createOutboxWaiter>;

/** The subselect hides how many ids there are: Postgres would plan a short list from scratch each time. */
const awaited = prepareRows(
  "operations_awaited",
  operation,
  sql`where id = any((select ${sql.placeholder("ids")}::bigint[])::bigint[])`,
);

type Resolve = (row: OperationRow | null) => void;

/** Lets requests wait for their operations: by notifications of Postgres, and by polling in case one is lost. */
export function createOutboxWaiter({ db, notifications }: { db: Executor; notifications: Notifications }) {
  const waiting = new Map<bigint, Set<Resolve>>();
  /** Ids not looked up yet: their operation might have finished before the wait began. */
  const fresh = new Set<bigint>();
  let polling = false;
  let stopped = false;

  const settle = (row: OperationRow): void => {
    if (!ENDED.includes(row.state)) return;
    for (const resolve of waiting.get(row.id) ?? []) resolve(row);
  };

  /** Waiters keep waiting if the database does not respond; the next poll retries. */
  const look = async (ids: bigint[]): Promise<void> => {
    for (let start = 0; start < ids.length; start += MAX_IDS) {
      const rows = await awaited(db, { ids: ids.slice(start, start + MAX_IDS) }).catch(() => []);
      for (const row of rows) settle(row);
    }
  };

  const lookAtFresh = (): void => {
    void look([...fresh]);
    fresh.clear();
  };

  const poll = setInterval(() => {
    if (polling || waiting.size === 0) return;
    polling = true;
    void look([...waiting.keys()]).finally(() => {
      polling = false;
    });
  }, POLL_INTERVAL_MS).unref();

  const unlisten = notifications.listen(OPERATION_DONE, {
    onNotification(payload) {
      const ids = payload.split(",").filter(Boolean).map(BigInt);
      void look(ids.filter((id) => waiting.has(id)));
    },
  });

  return {
    /** Resolves to the operation once it is mined, final or rejected; null after `timeoutMs`. `isNew`: just stored. */
    waitFor(
      id: bigint,
      { timeoutMs, isNew = false }: { timeoutMs: number; isNew?: boolean },
    ): Promise<OperationRow | null> {
      if (stopped) return Promise.resolve(null);
      return new Promise((resolvePromise) => {
        const resolve: Resolve = (row) => {
          clearTimeout(timer);
          const set = waiting.get(id);
          set?.delete(resolve);
          if (set?.size === 0) waiting.delete(id);
          resolvePromise(row);
        };
        const timer = setTimeout(resolve, timeoutMs, null);
        waiting.set(id, (waiting.get(id) ?? new Set()).add(resolve));
        if (isNew) return;
        if (fresh.size === 0) setImmediate(lookAtFresh);
        fresh.add(id);
      });
    },
    /** Resolves all waits with null. */
    stop(): void {
      stopped = true;
      unlisten();
      clearInterval(poll);
      for (const resolvers of waiting.values()) for (const resolve of resolvers) resolve(null);
    },
  };
}
