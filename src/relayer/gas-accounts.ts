/**
 * Accounts of the gas that each address has cost, and has earned by the fees of its contracts. Relaying is free for
 * agents, and so are addresses: gas that is not earned is limited for each address, and for all of them together.
 */

import { escrowAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import { type Placeholder, type SQL, sql } from "drizzle-orm";
import { parseEventLogs, type TransactionReceipt } from "viem";
import type { Executor, Transaction } from "../db/client.js";
import type { OperationKind } from "./operations.js";

/** Gas; a limit of 0 disables it. */
export interface GasLimits {
  /** Relayed for one address in a day beyond what it earned. */
  allowance: number;
  /** Relayed in an hour for all addresses beyond what each of them earned. */
  budget: number;
  /** Earned by 1.0 that a contract pays to the Treasury, shared by its parties and voters. */
  perFee: number;
}

const ALLOWANCE_SECONDS = 86_400;
const BUDGET_SECONDS = 3_600;
const FEE_UNIT = 1_000_000n;

/** The account of the gas that no address had earned. */
const UNEARNED = "*";

/**
 * They begin something that costs gas. All other kinds continue it, get money out or protect it, and are not refused,
 * but for contract wallets that could fail (`assertRefundable`); their gas counts as well.
 */
export const LIMITED_KINDS: ReadonlySet<OperationKind> = new Set(["create", "accept", "vote", "stake"]);

export interface GasState {
  /** Gas relayed for the address that neither time nor fees have covered; negative if it has gas to spare. */
  owed: number;
  /** Seconds since `owed` was true. */
  age: number;
  /** Gas limits of the address's operations in the queue. */
  queued: number;
  unearned: { owed: number; age: number; queued: number };
}

/** SQL: the {@link GasState} of an address, as JSON. */
export const gasState = (caller: Placeholder): SQL => sql`(
  with queue as (
    select o.caller, o.gas_limit, coalesce(a.owed, 0) >= 0 as is_unearned
    from app.operation o left join app.gas_account a on a.address = o.caller
    where o.state in ('queued', 'held') and o.caller is not null)
  select json_build_object(
    'owed', coalesce(max(owed) filter (where address <> ${UNEARNED}), 0),
    'age', coalesce(max(age) filter (where address <> ${UNEARNED}), 0),
    'queued', (select coalesce(sum(gas_limit), 0) from queue where queue.caller = ${caller}),
    'unearned', json_build_object(
      'owed', coalesce(max(owed) filter (where address = ${UNEARNED}), 0),
      'age', coalesce(max(age) filter (where address = ${UNEARNED}), 0),
      'queued', (select coalesce(sum(gas_limit), 0) from queue where is_unearned)))
  from (
    select address, owed, extract(epoch from now() - owed_at)::float8 as age
    from app.gas_account where address in (${caller}, ${UNEARNED})) accounts)`;

/** Which limit refuses the address another operation now, and for how long; null if none does. */
export function gasRefusal(
  { unearned, ...own }: GasState,
  { allowance, budget }: GasLimits,
): { limit: "allowance" | "budget"; retryAfterSeconds: number } | null {
  const ownExcess = excess(own, allowance, ALLOWANCE_SECONDS);
  if (ownExcess > 0) return { limit: "allowance", retryAfterSeconds: ownExcess };
  if (own.owed + own.queued < 0) return null;
  const sharedExcess = excess(unearned, budget, BUDGET_SECONDS);
  return sharedExcess > 0 ? { limit: "budget", retryAfterSeconds: sharedExcess } : null;
}

/** Seconds until the account is below the limit, which time pays back once per period; 0 if it is. */
function excess(
  { owed, age, queued }: { owed: number; age: number; queued: number },
  limit: number,
  periodSeconds: number,
): number {
  if (limit === 0) return 0;
  const perSecond = limit / periodSeconds;
  const left = owed > 0 ? Math.max(0, owed - age * perSecond) : owed;
  const over = left + queued - limit;
  return over < 0 ? 0 : Math.max(1, Math.ceil(over / perSecond));
}

/** Gas of the common budget that is in use now. */
export async function readUnearned(db: Executor, limits: GasLimits): Promise<number> {
  const { rows } = await db.execute<{ owed: number }>(
    sql`select (${owedNow(limits)})::float8 as owed from app.gas_account account where address = ${UNEARNED}`,
  );
  return rows[0]?.owed ?? 0;
}

/** The addresses that owe most, and what their contracts earned. */
export async function readDebtors(
  db: Executor,
  limits: GasLimits,
  limit: number,
): Promise<{ address: string; owed: number; used: number; earned: number }[]> {
  const { rows } = await db.execute<{ address: string; owed: number; used: number; earned: number }>(sql`
    select address, (${owedNow(limits)})::float8 as owed, used::float8, earned::float8
    from app.gas_account account where owed > 0 and address <> ${UNEARNED} order by account.owed desc limit ${limit}`);
  return rows.filter(({ owed }) => owed > 0);
}

/** SQL: what an account owes now. */
const owedNow = ({ allowance, budget }: GasLimits): SQL => sql`greatest(least(account.owed, 0),
  account.owed - extract(epoch from now() - account.owed_at)
    * case account.address when ${UNEARNED} then ${budget / BUDGET_SECONDS}::float8 else ${allowance / ALLOWANCE_SECONDS}::float8 end)`;

/**
 * Records a batch's place on chain, and its gas: an operation's share is that of its gas limit, and the keeper's
 * operations count for whoever posted the contract. Fees that contracts paid in it are credited to their agents. After a
 * reorg only the difference in gas is charged, and no fee is credited again. Without a receipt, what was charged is
 * refunded: the batch is superseded, and never on chain.
 */
export async function recordBatch(
  tx: Transaction,
  { id, state }: { id: bigint; state: "mined" | "final" | "reverted" | "superseded" },
  receipt: TransactionReceipt | null,
  limits: GasLimits,
): Promise<void> {
  const { transactionHash = null, blockHash = null } = receipt ?? {};
  const [gasUsed, blockNumber] = [
    receipt?.gasUsed.toString() ?? null,
    receipt?.blockNumber.toString() ?? null,
  ];
  const fees = receipt === null ? [] : creditsIn(receipt, limits);
  await tx.execute(sql`
    with before as (select gas_used, operation_ids from app.batch where id = ${id.toString()}::bigint for update),
    recorded as (
      update app.batch set state = ${state}, transaction_hash = ${transactionHash}, block_hash = ${blockHash},
        block_number = ${blockNumber}::bigint, gas_used = ${gasUsed}::bigint, updated_at = now()
      where id = ${id.toString()}::bigint),
    carried as (
      select coalesce(o.caller, t.caller) as address, 0 as earned,
        (coalesce(${gasUsed}::numeric, 0) - coalesce(before.gas_used, 0)) * o.gas_limit / sum(o.gas_limit) over () as used
      from before join app.operation o on o.id = any(before.operation_ids) left join app.terms t on t.id = o.escrow),
    credited as (
      select party.caller as address, fee.gas / count(*) over (partition by fee.escrow) as earned, 0 as used
      from unnest(${sql.param(fees.map(({ escrow }) => escrow))}::text[], ${sql.param(fees.map(({ gas }) => gas))}::numeric[])
        as fee (escrow, gas)
      join before on before.gas_used is null
      join lateral (
        select distinct caller from app.operation o where o.escrow = fee.escrow and o.kind in ('create', 'accept', 'vote')
          and o.state in ('mined', 'final') and o.caller is not null) party on true),
    changes as (
      select address, sum(used) as used, sum(earned) as earned
      from (select address, used, earned from carried union all select address, used, earned from credited) both_sides
      where address is not null group by address),
    entries as (
      select address, used, earned, used - earned as owed from changes
      union all
      select ${UNEARNED}, sum(spent), 0, sum(spent)
      from (
        select case when changes.used < 0 then greatest(changes.used, -greatest(0, coalesce(a.owed, 0)))
          else greatest(0, least(changes.used, coalesce(a.owed, 0) + changes.used)) end as spent
        from changes left join app.gas_account a using (address)) unearned
      having sum(spent) <> 0)
    insert into app.gas_account as account (address, used, earned, owed)
    select address, round(used), round(earned), round(entries.owed) from entries
    where used <> 0 or earned <> 0 order by address
    on conflict (address) do update set used = account.used + excluded.used, earned = account.earned + excluded.earned,
      owed = greatest(${owedNow(limits)} + excluded.owed, case account.address when ${UNEARNED} then 0 end),
      owed_at = now()`);
}

/**
 * Gas earned by each escrow that settled in this transaction. A forged event earns nothing: only agents with operations
 * on that escrow are credited.
 */
function creditsIn({ logs }: TransactionReceipt, { perFee }: GasLimits): { escrow: Address; gas: string }[] {
  return parseEventLogs({ abi: escrowAbi, eventName: "WorkingContractSettled", logs }).flatMap(
    ({ address, args }) => {
      const gas = (args.payout.treasury * BigInt(perFee)) / FEE_UNIT;
      return gas > 0n ? [{ escrow: address.toLowerCase() as Address, gas: gas.toString() }] : [];
    },
  );
}
