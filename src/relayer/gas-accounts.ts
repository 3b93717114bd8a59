/** Accounts of the gas that each address has cost, and has earned by the fees of its contracts (docs/decisions.md). */
import { escrowAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import { type Placeholder, type SQL, sql } from "drizzle-orm";
import { encodeEventTopics, parseEventLogs, type TransactionReceipt } from "viem";
import type { Executor, Transaction } from "../db/client.js";
import { prepare } from "../db/statements.js";
import { AppError } from "../errors.js";

/** Gas; a limit of 0 disables it. */
export interface GasPolicy {
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
/** Credit of an address at most: a token of huge supply can be the stablecoin, and no sum may leave `bigint`. */
const MOST_EARNED = sql`${Number.MAX_SAFE_INTEGER}::bigint`;

/** Topic of the event by which an escrow earns gas: `parseEventLogs` hashes every event of the ABI for every log. */
const [SETTLED] = encodeEventTopics({ abi: escrowAbi, eventName: "WorkingContractSettled" });

/** The account of the gas that no address had earned. */
export const UNEARNED = "*";

/** Which limit refuses an address another operation now, and for how long. */
export interface GasRefusal {
  limit: "allowance" | "budget";
  retryAfterSeconds: number;
}

/**
 * SQL: for a `with` of the whole statement, the gas limits of unfinished operations by caller, and their sum: read once for
 * all calls that share the statement. Sent operations are found by their batches, as in lease.ts.
 */
export const PENDING_GAS = sql`
  pending_gas (caller, gas) as materialized (
    select caller, sum(gas_limit) from (
      select caller, gas_limit from app.operation where state in ('queued', 'held') and caller is not null
      union all
      select caller, gas_limit from app.operation
      where batch_id = any(array(
          select id from app.batch where state in ('sent', 'mined', 'quarantined') and (state <> 'mined' or has_failures)))
        and state = 'sent' and caller is not null) unfinished
    group by caller),
  pending_total as materialized (select coalesce(sum(gas), 0) as gas from pending_gas)`;

/**
 * SQL: the {@link GasRefusal} of `caller`, as JSON; null if nothing refuses, or both limits are 0. An address is refused if
 * what it owes and has pending reaches its allowance. It is also refused if the common debt and all that is pending beyond
 * each address's credit reach the budget, unless its own credit exceeds what it has pending.
 * Pending are the statement's {@link PENDING_GAS}, and what `beside` selects.
 */
export const gasRefusalOf = ({
  caller,
  beside = sql`select null, 0 where false`,
  ...limits
}: Record<"caller" | "allowance" | "budget", SQL | Placeholder> & {
  beside?: SQL;
}): SQL => sql`case when ${limits.allowance}::float8 > 0 or ${limits.budget}::float8 > 0 then (
  with beside (caller, gas) as (${beside}),
  limits (name, address, most, seconds, pending) as (
    select 'allowance', ${caller}, ${limits.allowance}::float8, ${ALLOWANCE_SECONDS}::float8,
      (select coalesce(sum(gas), 0) from (table pending_gas union all table beside) own where caller = ${caller})
    union all
    select 'budget', ${UNEARNED}, ${limits.budget}::float8, ${BUDGET_SECONDS}::float8,
      (select gas from pending_total) + (select coalesce(sum(gas), 0) from beside)),
  accounts as (
    select limits.*, coalesce(account.owed, 0) + limits.pending as used,
      coalesce(${owedNow(limits)}, 0) + limits.pending - most as excess
    from limits left join app.gas_account account using (address)),
  exceeded as (
    select name, most, seconds, excess - case name when 'allowance' then 0 else (
      select coalesce(sum(least(p.gas, -a.owed)), 0)
      from (select caller, sum(gas) as gas from (table pending_gas union all table beside) pending group by caller) p
      join app.gas_account a on a.address = p.caller where a.owed < 0) end as excess
    from accounts
    where most > 0 and excess >= 0
      and (name = 'allowance' or exists (select 1 from accounts own where own.name = 'allowance' and own.used >= 0)))
  select json_build_object('limit', name, 'retryAfterSeconds', greatest(1, ceil(excess * seconds / most)))
  from exceeded where excess >= 0 order by name limit 1) end`;

/** SQL: {@link gasRefusalOf} the placeholders of the same names. */
export const gasRefusal = gasRefusalOf({
  caller: sql.placeholder("caller"),
  allowance: sql.placeholder("allowance"),
  budget: sql.placeholder("budget"),
});

const CALL_ENDS = {
  fate: "This call used no payment.",
  hint: "Calls on your existing contracts are still relayed. You can also send this transaction from your own account and pay its gas: the factory and the escrow accept it from anyone.",
};

/** `rate_limited`, with when to retry and a way out. */
export function gasExhausted(
  caller: string,
  { limit, retryAfterSeconds }: GasRefusal,
  { allowance, budget }: GasPolicy,
  { fate, hint } = CALL_ENDS,
): AppError {
  const reason =
    limit === "allowance"
      ? `${caller} has used its daily gas allowance of ${allowance} beyond what the fees of its contracts cover.`
      : `The hourly gas budget of ${budget} for all agents, beyond what their fees cover, is used up.`;
  return new AppError("rate_limited", {
    message: `${reason} ${fate} Retry in ${retryAfterSeconds} s.`,
    hint,
    details: { limit, retryAfterSeconds },
    retryAfterSeconds,
  });
}

/** Gas of the common budget that is in use now. */
export async function readUnearned(db: Executor, policy: GasPolicy): Promise<number> {
  const { rows } = await db.execute<{ owed: number }>(
    sql`select (${owedNow(policy)})::float8 as owed from app.gas_account account where address = ${UNEARNED}`,
  );
  return rows[0]?.owed ?? 0;
}

/** The addresses that owe most, and what their contracts earned. */
export async function readDebtors(
  db: Executor,
  policy: GasPolicy,
  limit: number,
): Promise<{ address: string; owed: number; used: number; earned: number }[]> {
  const { rows } = await db.execute<{ address: string; owed: number; used: number; earned: number }>(sql`
    select address, (${owedNow(policy)})::float8 as owed, used::float8, earned::float8
    from app.gas_account account where owed > 0 and address <> ${UNEARNED} order by account.owed desc limit ${limit}`);
  return rows.filter(({ owed }) => owed > 0);
}

function owedNow({ allowance, budget }: Record<"allowance" | "budget", number | SQL | Placeholder>): SQL {
  return sql`greatest(least(account.owed, 0),
    account.owed - extract(epoch from now() - account.owed_at) * case account.address
      when ${UNEARNED} then ${budget}::float8 / ${BUDGET_SECONDS} else ${allowance}::float8 / ${ALLOWANCE_SECONDS} end)`;
}

const value = sql.placeholder;

/**
 * `carried`: the change in the batch's gas, shared by gas limits, each charged to the operation's caller or else the
 * contract's poster. `credited`: what settled contracts earn, once, shared by their parties and voters. `entries`: both by
 * address, and for all addresses the part of the gas that no credit covered.
 */
const recording = prepare(
  "batch_recorded",
  sql`
    with before as (select gas_used, operation_ids from app.batch where id = ${value("id")}::bigint for update),
    recorded as (
      update app.batch set state = ${value("state")}, has_failures = ${value("hasFailures")},
        transaction_hash = ${value("transactionHash")}, block_hash = ${value("blockHash")},
        block_number = ${value("blockNumber")}::bigint, gas_used = ${value("gasUsed")}::bigint, updated_at = now()
      where id = ${value("id")}::bigint),
    carried as (
      select coalesce(o.caller, t.caller, e.caller) as address, 0 as earned,
        (coalesce(${value("gasUsed")}::numeric, 0) - coalesce(before.gas_used, 0))
          * o.gas_limit / sum(o.gas_limit) over () as used
      from before join app.operation o on o.id = any(before.operation_ids)
      left join app.terms t on t.id = o.escrow left join app.expired_attempt e on e.id = o.escrow),
    credited as (
      select party.caller as address, fee.gas / count(*) over (partition by fee.escrow) as earned, 0 as used
      from unnest(${value("escrows")}::text[], ${value("gases")}::numeric[]) as fee (escrow, gas)
      join before on before.gas_used is null
      join lateral (
        select distinct caller from app.operation o where o.escrow = fee.escrow and o.kind in ('create', 'accept', 'vote')
          and o.state in ('mined', 'final') and o.caller is not null) party on true),
    changes as (
      select address, sum(used) as used, least(sum(earned), ${MOST_EARNED}) as earned
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
    on conflict (address) do update set used = account.used + excluded.used,
      earned = least(account.earned + excluded.earned, ${MOST_EARNED}),
      owed = greatest(excluded.owed + ${owedNow({ allowance: value("allowance"), budget: value("budget") })},
        case account.address when ${UNEARNED} then 0 else -${MOST_EARNED} end),
      owed_at = now()`,
);

/**
 * Records a batch's place on chain, charges its gas, and credits its contracts' fees ("Gas accounts"). After a reorg only
 * the difference in gas is charged. Without a receipt the batch is superseded, and its charge is refunded.
 */
export async function recordBatch(
  tx: Transaction,
  {
    id,
    state,
    hasFailures = false,
  }: { id: bigint; state: "mined" | "final" | "reverted" | "superseded"; hasFailures?: boolean },
  receipt: TransactionReceipt | null,
  policy: GasPolicy,
): Promise<void> {
  const { transactionHash = null, blockHash = null } = receipt ?? {};
  const fees = receipt === null ? [] : creditsIn(receipt, policy);
  await recording(tx, {
    id: id.toString(),
    state,
    hasFailures,
    transactionHash,
    blockHash,
    blockNumber: receipt?.blockNumber.toString() ?? null,
    gasUsed: receipt?.gasUsed.toString() ?? null,
    escrows: fees.map(({ escrow }) => escrow),
    gases: fees.map(({ gas }) => gas),
    allowance: policy.allowance,
    budget: policy.budget,
  });
}

/** Gas earned by each escrow that settled here. A forged event credits only agents with operations on that escrow. */
function creditsIn({ logs }: TransactionReceipt, { perFee }: GasPolicy): { escrow: Address; gas: string }[] {
  const settled = logs.filter(({ topics }) => topics[0] === SETTLED);
  return parseEventLogs({ abi: escrowAbi, eventName: "WorkingContractSettled", logs: settled }).flatMap(
    ({ address, args }) => {
      const gas = (args.payout.treasury * BigInt(perFee)) / FEE_UNIT;
      return gas > 0n ? [{ escrow: address.toLowerCase() as Address, gas: gas.toString() }] : [];
    },
  );
}
