/**
 * Bounds the gas that a contract wallet can burn. A wallet can accept a signature in every simulation and reject it on
 * chain. A batch carries only as many signed operations of a wallet as were applied in a row before. None of them gets a
 * second try, and a failure rejects what else the wallet has in the queue.
 */

import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import type { TransactionReceipt } from "viem";
import type { Transaction } from "../db/client.js";
import type { Candidate } from "./choose.js";
import type { Head, SignerContext } from "./context.js";
import { stateOf } from "./simulate.js";

const MAX_ALLOWANCE = 32;
/** Maximum callers asked about per batch; the others count as wallets. */
const MAX_ASKED = 200;

/**
 * Callers with several signed operations: those to count as wallets because they have code at `head` or it is not known,
 * and the first of the latter.
 */
export function crowdedCallers(
  { memory }: Pick<SignerContext, "memory">,
  candidates: readonly Candidate[],
  head: Pick<Head, "hash">,
): { wallets: string[]; unknown: string[] } {
  const known = memory.code.head === head.hash ? memory.code.of : new Map<string, boolean>();
  const seen = new Set<string>();
  const crowded = new Set<string>();
  for (const { caller, signed } of candidates) {
    if (!signed || caller === null) continue;
    if (seen.has(caller)) crowded.add(caller);
    seen.add(caller);
  }
  const wallets = [...crowded].filter((caller) => known.get(caller) !== false);
  return { wallets, unknown: wallets.filter((caller) => !known.has(caller)).slice(0, MAX_ASKED) };
}

/** Signed operations applied in a row since the last failure, at least 1, for each of these callers. */
export async function readAllowances(
  tx: Transaction,
  callers: readonly string[],
): Promise<Map<string, number>> {
  if (callers.length === 0) return new Map();
  const { rows } = await tx.execute<{ caller: string; allowance: number }>(sql`
    select caller, greatest(1, (
      select count(*) filter (where not has_failed)::int from (
        select bool_or(state = 'rejected') over (order by id desc) as has_failed from app.operation
        where operation.caller = asked.caller and signed
          and (state in ('mined', 'final') or (state = 'rejected' and block_number is not null))
        order by id desc limit ${MAX_ALLOWANCE}) newest)) as allowance
    from unnest(${sql.param(callers)}::text[]) as asked (caller)`);
  return new Map(rows.map(({ caller, allowance }) => [caller, allowance]));
}

/**
 * Learns which of these callers have code at `head`, a delegated key (EIP-7702) included. Forgets what it knew of other
 * blocks, because code can come and go.
 */
export async function learnCode(
  context: SignerContext,
  callers: readonly string[],
  head: Pick<Head, "hash">,
): Promise<void> {
  const { memory } = context;
  if (memory.code.head !== head.hash) memory.code = { head: head.hash, of: new Map() };
  for (const [caller, hasCode] of await readCode(context, callers, stateOf(head)))
    memory.code.of.set(caller, hasCode);
}

/**
 * The caller of each of these operations that is signed by an account with code. If the node has dropped the state of the
 * receipt's block, by its newest state: the answer must not keep a receipt from being recorded.
 */
export async function walletsAmong(
  context: SignerContext,
  ids: readonly bigint[],
  { blockHash }: Pick<TransactionReceipt, "blockHash">,
): Promise<Map<bigint, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await context.db.execute<{ id: string; caller: string }>(sql`
    select id::text, caller from app.operation
    where id = any(${sql.param(ids.map(String))}::bigint[]) and caller is not null and signed`);
  const callers = [...new Set(rows.map(({ caller }) => caller))];
  const hasCode = await readCode(context, callers, stateOf({ hash: blockHash })).catch(() =>
    readCode(context, callers, "latest"),
  );
  return new Map(rows.flatMap(({ id, caller }) => (hasCode.get(caller) ? [[BigInt(id), caller]] : [])));
}

/**
 * Rejects what else a wallet has signed that was never broadcast, after it failed on chain. Its caller can retry, within
 * the limit on failures. Returns the ids.
 */
export async function rejectWaiting(tx: Transaction, caller: string): Promise<bigint[]> {
  const { rows } = await tx.execute<{ id: string }>(sql`
    update app.operation set state = 'rejected', reason = 'WalletFailed', retry_at = null, updated_at = now()
    where state in ('queued', 'held') and caller = ${caller} and signed and published_at is null
      and (claimed_until is null or claimed_until < now())
    returning id::text`);
  return rows.map(({ id }) => BigInt(id));
}

async function readCode(
  { publicClient }: Pick<SignerContext, "publicClient">,
  callers: readonly string[],
  at: ReturnType<typeof stateOf> | "latest",
): Promise<Map<string, boolean>> {
  const ask = async (caller: string): Promise<[string, boolean]> => {
    const params = [caller as Address, at] as const;
    return [caller, (await publicClient.request({ method: "eth_getCode", params: [...params] })) !== "0x"];
  };
  return new Map(await Promise.all(callers.map(ask)));
}
