/** The outbox as a paid call finds it, in one statement: its own earlier operations, recent failures, room in the queue. */
import type { Address, Hex } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { prepare } from "../db/prepared.js";
import { type GasLimits, type GasRefusal, gasRefusal } from "../relayer/gas-accounts.js";
import type { OperationKind } from "../relayer/operations.js";
import { MAX_QUEUED } from "../relayer/outbox.js";
import { throttlingFailure } from "./relaying-limits.js";

export interface OutboxState {
  /** The operation of this payment's authorization, which a repeated request resumes. */
  earlier: bigint | null;
  /** The caller's own paid operation for this action that has no response yet: a second payment would be one too many. */
  unanswered: bigint | null;
  /** Both for `assertRelayable`. */
  failureAge: number | null;
  gasRefusal: GasRefusal | null;
  /** Whether `enqueue` accepts new work. */
  hasRoom: boolean;
}

const statement = prepare<{
  earlier: string | null;
  unanswered: string | null;
  failure_age: number | null;
  refusal: GasRefusal | null;
  has_room: boolean;
}>(
  "outbox_state",
  sql`select
    (select id from app.operation
     where asset = ${sql.placeholder("asset")} and payer = ${sql.placeholder("payer")}
       and nonce = ${sql.placeholder("nonce")} and state <> 'rejected') as earlier,
    (select max(id) from app.operation
     where caller = ${sql.placeholder("caller")} and kind = ${sql.placeholder("kind")}
       and (request_hash = ${sql.placeholder("requestHash")} or escrow = ${sql.placeholder("escrow")})
       and state <> 'rejected' and nonce is not null and response is null) as unanswered,
    ${throttlingFailure(sql.placeholder("caller"))} as failure_age,
    ${gasRefusal} as refusal,
    not exists (
      select 1 from app.operation where state in ('queued', 'held') offset ${sql.raw(String(MAX_QUEUED - 1))} limit 1
    ) as has_room`,
);

export async function readOutboxState(
  db: Executor,
  {
    caller,
    limits: { allowance, budget },
    authorization,
    action,
  }: {
    caller: Address;
    limits: GasLimits;
    authorization?: { asset: Address; payer: Address; nonce: Hex };
    action?: { kind: OperationKind; requestHash: string; escrow: Address };
  },
): Promise<OutboxState> {
  const nothing = { asset: null, payer: null, nonce: null, kind: null, requestHash: null, escrow: null };
  const [row] = await statement(db, { ...nothing, caller, allowance, budget, ...authorization, ...action });
  if (row === undefined) throw new Error("A select without a table returned no row");
  return {
    earlier: idOf(row.earlier),
    unanswered: idOf(row.unanswered),
    failureAge: row.failure_age,
    gasRefusal: row.refusal,
    hasRoom: row.has_room,
  };
}

const idOf = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
