/**
 * Relaying is free for agents, and so are addresses: what limits it. Accounts of the gas that each address has cost, and has
 * earned by the fees of its contracts: gas that is not earned is limited for each address, and for all of them together.
 * Failures that repeat, and room in the queue. A refusal has the reason and a way out.
 */
import { escrowAbi } from "@working-contracts/protocol/abi";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { type Placeholder, type SQL, sql } from "drizzle-orm";
import { type PublicClient, parseEventLogs, type TransactionReceipt } from "viem";
import type { Config } from "../config.js";
import { type Executor, prepare, type Transaction } from "../db/client.js";
import { AppError } from "../errors.js";
import { SIGNATURE_FAULTS } from "./failures.js";
import type { OperationKind } from "./operations.js";

/** Maximum unsent operations before new ones are refused: a few minutes of work for one signer. */
export const MAX_QUEUED = 5000;

/** SQL: whether fewer operations than `maxQueued` are waiting. */
export const hasRoom = sql`not exists (
  select 1 from app.operation where state in ('queued', 'held') offset ${sql.placeholder("maxQueued")}::bigint - 1 limit 1)`;

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

/** They begin something that costs gas. Other kinds are limited only if their caller's signature could burn gas. */
const LIMITED_KINDS: ReadonlySet<OperationKind> = new Set(["create", "accept", "vote", "stake"]);

/** Which limit refuses an address another operation now, and for how long. */
export interface GasRefusal {
  limit: "allowance" | "budget";
  retryAfterSeconds: number;
}

const limits = { allowance: sql.placeholder("allowance"), budget: sql.placeholder("budget") };
const caller = sql.placeholder("caller");

/**
 * SQL: the {@link GasRefusal} of the placeholder `caller` under the limits `allowance` and `budget`, as JSON; null if
 * nothing refuses, or both limits are 0. The gas limits of pending operations count. An address with gas to spare does not
 * use the common budget. Sent operations are found by their batches: indexes on their state are full of dead rows.
 */
export const gasRefusal: SQL = sql`case when ${limits.allowance}::float8 > 0 or ${limits.budget}::float8 > 0 then (
  with pending as (
    select o.caller, o.gas_limit, coalesce(a.owed, 0) >= 0 as is_unearned
    from (
      select caller, gas_limit from app.operation where state in ('queued', 'held')
      union all
      select o.caller, o.gas_limit from app.batch b join app.operation o on o.batch_id = b.id and o.state = 'sent'
      where b.state in ('sent', 'mined', 'quarantined')) o
    left join app.gas_account a on a.address = o.caller where o.caller is not null),
  limits (name, address, most, seconds, pending) as (
    values ('allowance', ${caller}, ${limits.allowance}::float8, ${ALLOWANCE_SECONDS}::float8,
        (select coalesce(sum(gas_limit), 0) from pending where pending.caller = ${caller})),
      ('budget', ${UNEARNED}, ${limits.budget}::float8, ${BUDGET_SECONDS}::float8,
        (select coalesce(sum(gas_limit), 0) from pending where is_unearned))),
  accounts as (
    select limits.*, coalesce(account.owed, 0) + limits.pending as used,
      coalesce(${owedNow(limits)}, 0) + limits.pending - most as excess
    from limits left join app.gas_account account using (address))
  select json_build_object('limit', name, 'retryAfterSeconds', greatest(1, ceil(excess * seconds / most)))
  from accounts
  where most > 0 and excess >= 0
    and (name = 'allowance' or exists (select 1 from accounts own where own.name = 'allowance' and own.used >= 0))
  order by name limit 1) end`;

const refusalOf = prepare<{ refusal: GasRefusal | null }>(
  "gas_refusal",
  sql`select ${gasRefusal} as refusal`,
);

const CALL_ENDS = {
  fate: "This call took no payment.",
  hint: "Calls on contracts that you already have are still relayed. You can also send this one from your own account and pay its gas: the factory and the escrow take it from anyone.",
};

const NOT_STORED = {
  fate: "Other calls used up the gas meanwhile, so this one was not stored, and took no payment.",
  hint: "Repeat the identical request then.",
};

/** `rate_limited`, with when to retry and a way out. */
function gasExhausted(
  caller: string,
  { limit, retryAfterSeconds }: GasRefusal,
  { allowance, budget }: GasLimits,
  { fate, hint } = CALL_ENDS,
): AppError {
  const reason =
    limit === "allowance"
      ? `The gas relayed for ${caller} has reached ${allowance} a day beyond what the fees of its contracts cover.`
      : `The gas relayed for all agents beyond what their fees cover has reached this hour's ${budget}.`;
  return new AppError("rate_limited", {
    message: `${reason} ${fate} Retry in ${retryAfterSeconds} s.`,
    hint,
    details: { limit, retryAfterSeconds },
    retryAfterSeconds,
  });
}

/** Throws {@link gasExhausted} if the address cannot have another operation relayed now. */
export async function assertGas(db: Executor, caller: string, limits: GasLimits): Promise<void> {
  const { allowance, budget } = limits;
  const [row] = await refusalOf(db, { caller, allowance, budget });
  if (row?.refusal) throw gasExhausted(caller, row.refusal, limits, NOT_STORED);
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
function owedNow({ allowance, budget }: Record<"allowance" | "budget", number | Placeholder>): SQL {
  return sql`greatest(least(account.owed, 0),
    account.owed - extract(epoch from now() - account.owed_at) * case account.address
      when ${UNEARNED} then ${budget}::float8 / ${BUDGET_SECONDS} else ${allowance}::float8 / ${ALLOWANCE_SECONDS} end)`;
}

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

/** Operations of one agent that can fail on chain within the window: a wallet can sign so that only simulations pass. */
const MAX_FAILED = 3;
/** Signatures of one agent that the relayer's simulation can refuse within the window: each had passed the same check. */
const MAX_REFUSED = 30;
const WINDOW_SECONDS = 3600;

export interface RelayingState {
  /** Seconds since the failure that makes the agent wait; null if it need not. */
  failureAge: number | null;
  gasRefusal: GasRefusal | null;
}

const rejectionAge = (isCounted: SQL, most: number) => sql`(
  select extract(epoch from now() - updated_at)::float8 from app.operation
  where caller = ${caller} and state = 'rejected' and ${isCounted}
    and updated_at > now() - make_interval(secs => ${WINDOW_SECONDS})
  order by updated_at desc offset ${most - 1} limit 1)`;

const failedAge = rejectionAge(sql`block_number is not null`, MAX_FAILED);

/** SQL: {@link RelayingState.failureAge} */
const throttlingFailure = sql`least(
  ${failedAge}, ${rejectionAge(sql`reason in ${[...SIGNATURE_FAULTS]}`, MAX_REFUSED)})`;

const readSignerState = prepare<RelayingState & { isProven: boolean; wasToday: boolean }>(
  "signer_state",
  // Not those that the simulation refused: whoever lacks money for 30 payments must still be able to deliver.
  sql`select ${failedAge} as "failureAge", ${gasRefusal} as "gasRefusal",
    coalesce((
      select state <> 'rejected' from app.operation
      where caller = ${caller} and signed
        and (state in ('mined', 'final') or (state = 'rejected' and block_number is not null))
      order by id desc limit 1), false) as "isProven",
    exists (
      select 1 from app.operation
      where caller = ${caller} and kind in ('delegate', 'revoke-delegation') and kind = 'delegate'
        and (state <> 'rejected' or block_number is not null) and created_at > now() - interval '1 day') as "wasToday"`,
);

interface LimitDeps {
  config: Pick<Config, "gasLimits">;
  db: Executor;
  publicClient: Pick<PublicClient, "getCode">;
}

interface Refusal {
  fate: string;
  hint: string;
}

const ACTION_WAITS: Refusal = {
  fate: "This action was not relayed.",
  hint: "You can also send it from your own account: the escrow takes it from its agent.",
};
const SIGN_IN_WAITS: Refusal = {
  fate: "This sign-in changes what is delegated, and nothing was issued.",
  hint: "Sign in with what is delegated already, or register the new text on chain yourself (`onChain.register` of the client).",
};
const CREDIT_WAITS: Refusal = {
  fate: "Your payment reached the escrow's address by a direct transfer, and this call is not relayed yet.",
  hint: "Repeat the identical request then. Anyone can also create the contract with this money, or later refund the transfer, on chain (docs/rules.md 12).",
};
const REFUND_WAITS: Refusal = {
  fate: "Your payment reached the escrow by a direct transfer, and is not refunded yet.",
  hint: "Repeat the identical request then. Later anyone can refund it on chain (docs/rules.md 12).",
};

/**
 * The limits under which an operation that carries the agent's signature is stored, if it is not one of
 * {@link LIMITED_KINDS}. None for an ordinary account, or if its newest signature was applied: it must be able to act on
 * the contracts that it has. A contract wallet can accept its signature in simulations only, so any other has to stay
 * within the limits. Throws `rate_limited` if it does not, or if its operations keep failing.
 */
export async function limitsOfSigned(
  deps: LimitDeps,
  agent: Address,
  refusal = ACTION_WAITS,
): Promise<GasLimits | undefined> {
  const state = await readState(deps, agent, refusal);
  if (state.isProven || !(await isContract(deps, agent))) return undefined;
  return requireGas(deps, agent, state, refusal);
}

/**
 * The limits of a paid call whose money a direct transfer brought: those of any call if its kind is one of
 * {@link LIMITED_KINDS}, since its caller can have made the transfer itself; otherwise as {@link limitsOfSigned}.
 */
export async function limitsOfCredit(
  deps: LimitDeps,
  { caller, kind }: { caller: Address; kind: OperationKind },
): Promise<GasLimits | undefined> {
  if (!LIMITED_KINDS.has(kind)) return limitsOfSigned(deps, caller, CREDIT_WAITS);
  return limitsOfAnyone(deps, caller, CREDIT_WAITS);
}

/** The limits of the refund of a direct transfer: anyone can transfer the smallest amount to anyone's escrow. */
export const limitsOfRefund = (deps: LimitDeps, payer: Address): Promise<GasLimits> =>
  limitsOfAnyone(deps, payer, REFUND_WAITS);

/** The limits of a sign-in that replaces what the address has delegated. */
export const limitsOfReplacement = (deps: LimitDeps, agent: Address): Promise<GasLimits> =>
  limitsOfAnyone(deps, agent, SIGN_IN_WAITS);

async function limitsOfAnyone(deps: LimitDeps, agent: Address, refusal: Refusal): Promise<GasLimits> {
  return requireGas(deps, agent, await readState(deps, agent, refusal), refusal);
}

/** As {@link limitsOfSigned}, for a delegation. A second one within a day has to stay within the limits, whoever signs. */
export async function limitsOfDelegation(deps: LimitDeps, agent: Address): Promise<GasLimits | undefined> {
  const state = await readState(deps, agent, ACTION_WAITS);
  if (!state.wasToday && (state.isProven || !(await isContract(deps, agent)))) return undefined;
  return requireGas(deps, agent, state, ACTION_WAITS);
}

async function readState({ db, config }: LimitDeps, caller: Address, refusal: Refusal) {
  const { allowance, budget } = config.gasLimits;
  const [state] = await readSignerState(db, { caller, allowance, budget });
  if (state === undefined) throw new Error("A select without a table returned no row");
  refuseThrottled(caller, state.failureAge, refusal);
  return state;
}

/** Whether the address has code, a delegated key (EIP-7702) included. */
async function isContract({ publicClient }: LimitDeps, address: Address): Promise<boolean> {
  return (await publicClient.getCode({ address })) !== undefined;
}

function requireGas(
  { config: { gasLimits } }: LimitDeps,
  agent: Address,
  { gasRefusal: refusal }: RelayingState,
  texts: Refusal,
): GasLimits {
  if (refusal !== null) throw gasExhausted(agent, refusal, gasLimits, texts);
  return gasLimits;
}

/**
 * The limits under which a paid operation of one of {@link LIMITED_KINDS} is stored. Throws `rate_limited` if the agent
 * exceeds them, or if the agent's operations, of whatever kind, keep failing.
 */
export function assertRelayable(
  { config: { gasLimits } }: Pick<LimitDeps, "config">,
  { caller, kind }: { caller: Address; kind: OperationKind },
  { failureAge, gasRefusal: refusal }: RelayingState,
): GasLimits | undefined {
  refuseThrottled(caller, failureAge, { fate: "This call took no payment." });
  if (!LIMITED_KINDS.has(kind)) return undefined;
  if (refusal !== null) throw gasExhausted(caller, refusal, gasLimits);
  return gasLimits;
}

function refuseThrottled(
  caller: Address,
  failureAge: number | null,
  { fate, hint }: { fate: string; hint?: string },
): void {
  if (failureAge === null) return;
  const retryAfterSeconds = Math.max(1, Math.ceil(WINDOW_SECONDS - failureAge));
  throw new AppError("rate_limited", {
    message: `Operations of ${caller} keep failing though they passed every check: at most ${MAX_FAILED} an hour on chain, or ${MAX_REFUSED} before they are sent. ${fate} Retry in ${retryAfterSeconds} s.`,
    ...(hint && { hint }),
    retryAfterSeconds,
  });
}

/** The outbox as a paid call finds it, in one statement: its own earlier operations, recent failures, room in the queue. */
export interface OutboxState extends RelayingState {
  /** The operation of this payment's authorization, which a repeated request resumes. */
  earlier: bigint | null;
  /** The caller's own paid operation for this action that has no response yet: a second payment would be one too many. */
  unanswered: bigint | null;
  /** Whether `enqueue` accepts new work. */
  hasRoom: boolean;
}

export const outboxStateSql = sql`select
    (select id from app.operation
     where asset = ${sql.placeholder("asset")} and payer = ${sql.placeholder("payer")}
       and nonce = ${sql.placeholder("nonce")} and state <> 'rejected') as earlier,
    (select max(id) from app.operation
     where caller = ${caller} and kind = ${sql.placeholder("kind")}
       and (request_hash = ${sql.placeholder("requestHash")} or escrow = ${sql.placeholder("escrow")})
       and state <> 'rejected' and nonce is not null and response is null) as unanswered,
    ${throttlingFailure} as "failureAge", ${gasRefusal} as "gasRefusal", ${hasRoom} as "hasRoom"`;
const outboxState = prepare<
  RelayingState & { earlier: string | null; unanswered: string | null; hasRoom: boolean }
>("outbox_state", outboxStateSql);

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
  const given = { ...nothing, caller, allowance, budget, maxQueued: MAX_QUEUED, ...authorization, ...action };
  const [row] = await outboxState(db, given);
  if (row === undefined) throw new Error("A select without a table returned no row");
  return { ...row, earlier: idOf(row.earlier), unanswered: idOf(row.unanswered) };
}

const idOf = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
