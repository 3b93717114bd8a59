import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { type Placeholder, type SQL, sql } from "drizzle-orm";
import type { PublicClient } from "viem";
import type { Config } from "../config.js";
import type { Executor } from "../db/client.js";
import { hasOutcomeOnChain, isWasted } from "../db/schema.js";
import { forEachCall, prepare, prepareShared } from "../db/statements.js";
import { AppError } from "../errors.js";
import { SIGNATURE_FAULTS } from "./failures.js";
import {
  type GasPolicy,
  type GasRefusal,
  gasExhausted,
  gasRefusal,
  gasRefusalOf,
  PENDING_GAS,
} from "./gas-accounts.js";
import type { OperationKind } from "./operations.js";

/** Maximum unsent operations before new ones are refused: a few minutes of work for one signer. */
export const MAX_QUEUED = 5000;

/** SQL: whether fewer operations than `maxQueued` are waiting. Counted once for a statement, up to the maximum of all. */
export const hasRoom = (maxQueued: number | Placeholder | SQL) => sql`(
  select count(*) from (
    select 1 from app.operation where state in ('queued', 'held') limit ${MAX_QUEUED}) waiting) < ${maxQueued}::bigint`;

/** They begin something that costs gas. Other kinds are limited only if their caller's signature could burn gas. */
const LIMITED_KINDS: ReadonlySet<OperationKind> = new Set(["create", "accept", "vote", "stake"]);

/** The policy for this kind. A vote's gas counts for its voter alone: others' debts must not outlast its window. */
export const policyFor = (kind: OperationKind, policy: GasPolicy): GasPolicy =>
  kind === "vote" ? { ...policy, budget: 0 } : policy;

const CALLER = sql.placeholder("caller");

const WINDOW_SECONDS = 3600;
/** A stake can be added to at any time: a request this long after a payment means another one. */
const STAKE_REPEAT_SECONDS = 3600;

export interface RelayingState {
  /** Seconds since the failure that makes the agent wait; null if it need not. */
  failureAge: number | null;
  gasRefusal: GasRefusal | null;
}

const rejectionAge = (caller: SQL | Placeholder, isCounted: SQL, most: number) => sql`(
  select extract(epoch from now() - updated_at)::float8 from app.operation
  where caller = ${caller} and state = 'rejected' and ${isCounted}
    and updated_at > now() - make_interval(secs => ${WINDOW_SECONDS})
  order by updated_at desc offset ${most - 1} limit 1)`;

const failedAge = (caller: SQL | Placeholder) =>
  rejectionAge(caller, sql`block_number is not null`, LIMITS.failedOperationsPerHour);

/** SQL: {@link RelayingState.failureAge} */
const throttlingFailure = (caller: SQL) => sql`least(
  ${failedAge(caller)}, ${rejectionAge(caller, sql`reason in ${[...SIGNATURE_FAULTS]}`, LIMITS.refusedOperationsPerHour)})`;

interface SignerState extends RelayingState {
  /** Whether the newest signature with an outcome on chain was applied. */
  isProven: boolean;
  /** Signed operations that were published and then rejected without a block, so excused, within a day: 0, 1 or 2 for more. */
  wasted: number;
  /** Whether a delegation was stored within a day. */
  wasToday: boolean;
}

const readSignerState = prepare<SignerState>(
  "signer_state",
  // Not those that the simulation refused: whoever lacks money for 30 payments must still be able to deliver. The first of
  // the two conditions on `kind` is the partial index's.
  sql`with ${PENDING_GAS} select ${failedAge(CALLER)} as "failureAge", ${gasRefusal} as "gasRefusal",
    coalesce((
      select state <> 'rejected' from app.operation
      where caller = ${CALLER} and signed and ${hasOutcomeOnChain}
      order by id desc limit 1), false) as "isProven",
    (select count(*)::int from (
      select 1 from app.operation
      where caller = ${CALLER} and ${isWasted} and updated_at > now() - interval '1 day' limit 2) recent) as wasted,
    exists (
      select 1 from app.operation
      where caller = ${CALLER} and kind in ('delegate', 'revoke-delegation') and kind = 'delegate'
        and case when state = 'rejected' then block_number is not null
          else once_key is distinct from ${sql.placeholder("registering")} end
        and created_at > now() - interval '1 day') as "wasToday"`,
);

interface LimitDeps {
  config: Pick<Config, "gasPolicy">;
  db: Executor;
  publicClient: Pick<PublicClient, "getCode">;
}

/** For each refusal its consequence, and a way out. */
const REFUSALS = {
  action: {
    fate: "This action was not relayed.",
    hint: "Sign the action (Action-Signature): an ordinary account's signed action is relayed whatever its gas balance, unless a signature of that account was broadcast within a day and had no effect. Or send the transaction from your own account (`onChain` of the client).",
  },
  "sign-in": {
    fate: "This sign-in is narrower than your current delegation, or than one that is pending, so it has to be registered on chain. No key was issued.",
    hint: "Sign in with your current delegation, or revoke all keys first, or register the narrower one on chain yourself (`onChain.register` of the client).",
  },
  credit: {
    fate: "Your payment reached the escrow's address by a direct transfer, and this call is not relayed yet.",
    hint: "Retry the identical request after that time. Anyone can also create the contract with this money, or later refund the transfer, on chain (docs/rules.md 12).",
  },
  refund: {
    fate: "Your payment reached the escrow by a direct transfer, and is not refunded yet.",
    hint: "Retry the identical request after that time. Anyone can also open the escrow with it, or later refund it, on chain (docs/rules.md 12).",
  },
  mark: {
    fate: "The contract is open; whether this payment was its deposit is not known yet.",
    hint: "Retry the identical request after that time.",
  },
};
type Purpose = keyof typeof REFUSALS;

/**
 * Admits an operation that carries the agent's signature, if it is not one of {@link LIMITED_KINDS}. Throws
 * `rate_limited` if it exceeds the gas policy or the agent's operations keep failing; otherwise returns the policy to
 * check again when the operation is stored ({@link policyOf}).
 */
export async function admitSigned(deps: LimitDeps, agent: Address): Promise<GasPolicy | undefined> {
  const state = await readState(deps, agent, "action");
  return requireGas(await policyOf(deps, agent, state), { agent, state, purpose: "action" });
}

/**
 * As {@link admitSigned}, for a call that a direct transfer paid for. {@link LIMITED_KINDS} are held to the policy
 * whatever the account: the caller can have made that transfer itself.
 */
export async function admitCredit(
  deps: LimitDeps,
  { caller, kind }: { caller: Address; kind: OperationKind },
): Promise<GasPolicy | undefined> {
  const state = await readState(deps, caller, "credit");
  const policy = LIMITED_KINDS.has(kind)
    ? policyFor(kind, deps.config.gasPolicy)
    : // Money that has arrived cannot be timed: this call fails at most once for each contract.
      await policyOf(deps, caller, { ...state, wasted: 0 });
  return requireGas(policy, { agent: caller, state, purpose: "credit" });
}

/** Admits by the gas of every account, whatever its history ("Gas accounts"). */
export async function admitWithinLimits(
  deps: LimitDeps,
  agent: Address,
  purpose: Purpose,
): Promise<GasPolicy | undefined> {
  const state = await readState(deps, agent, purpose);
  return requireGas(deps.config.gasPolicy, { agent, state, purpose });
}

/**
 * As {@link admitSigned}, for a delegation. A second one within a day has to stay within the limits, whoever signs; the
 * same one that is stored already, by its once-key, is no second one.
 */
export async function admitDelegation(
  deps: LimitDeps,
  { agent, onceKey }: { agent: Address; onceKey: string | undefined },
): Promise<GasPolicy | undefined> {
  const state = await readState(deps, agent, "action", onceKey);
  const policy = state.wasToday ? deps.config.gasPolicy : await policyOf(deps, agent, state);
  return requireGas(policy, { agent, state, purpose: "action" });
}

async function readState({ db, config }: LimitDeps, caller: Address, purpose: Purpose, registering?: string) {
  const { allowance, budget } = config.gasPolicy;
  const [state] = await readSignerState(db, { caller, allowance, budget, registering: registering ?? null });
  if (state === undefined) throw new Error("A select without a table returned no row");
  requireNotThrottled(caller, state.failureAge, REFUSALS[purpose]);
  return state;
}

/**
 * No policy for an ordinary account, nor for one whose newest signature was applied. An account that wasted gas within
 * a day has limits: its own after the first time, which a stranger or a slow chain can cause, and the common one after
 * the second ("Failing callers"). An address has code also if its key is delegated (EIP-7702).
 */
async function policyOf(
  { config: { gasPolicy }, publicClient }: LimitDeps,
  address: Address,
  { isProven, wasted }: SignerState,
): Promise<GasPolicy | undefined> {
  if (wasted > 1) return gasPolicy;
  const isTrusted = isProven || (await publicClient.getCode({ address })) === undefined;
  if (!isTrusted) return gasPolicy;
  return wasted === 0 ? undefined : { ...gasPolicy, budget: 0 };
}

function requireGas(
  policy: GasPolicy | undefined,
  {
    agent,
    state: { gasRefusal: refusal },
    purpose,
  }: { agent: Address; state: RelayingState; purpose?: Purpose },
): GasPolicy | undefined {
  if (policy !== undefined && refusal !== null && policy[refusal.limit] > 0)
    throw gasExhausted(agent, refusal, policy, purpose && REFUSALS[purpose]);
  return policy;
}

/**
 * As {@link admitSigned}, for a paid operation, also before its quote. {@link LIMITED_KINDS} are held to the policy
 * whatever the account.
 */
export async function admitPaid(
  deps: LimitDeps,
  { caller, kind }: { caller: Address; kind: OperationKind },
  state: RelayingState,
): Promise<GasPolicy | undefined> {
  requireNotThrottled(caller, state.failureAge, { fate: "This call used no payment." });
  if (!LIMITED_KINDS.has(kind)) return admitSigned(deps, caller);
  return requireGas(policyFor(kind, deps.config.gasPolicy), { agent: caller, state });
}

function requireNotThrottled(
  caller: Address,
  failureAge: number | null,
  { fate, hint }: { fate: string; hint?: string },
): void {
  if (failureAge === null) return;
  const retryAfterSeconds = Math.max(1, Math.ceil(WINDOW_SECONDS - failureAge));
  throw new AppError("rate_limited", {
    message: `Too many operations of ${caller} failed within an hour: the limit is ${LIMITS.failedOperationsPerHour} on chain, or ${LIMITS.refusedOperationsPerHour} in simulation. ${fate} Retry in ${retryAfterSeconds} s.`,
    ...(hint && { hint }),
    retryAfterSeconds,
  });
}

/** The outbox as a paid call finds it, in one statement: its own earlier operations, recent failures, room in the queue. */
interface OutboxState extends RelayingState {
  /** The operation of this payment's authorization, which a repeated request resumes. */
  earlier: string | null;
  /** The caller's own paid operation for this action that has no response yet: a second payment would be one too many. */
  unreported: string | null;
  /** Payments of the caller for this action that were published and not used, and have not expired by the newest block. */
  published: { nonce: Hex; notAfter: number | null }[] | null;
  /** Whether `enqueue` accepts new work. */
  hasRoom: boolean;
}

const forAction = sql`caller = call.caller and kind = call.kind
      and (request_hash = call."requestHash" or escrow = call.escrow) and nonce is not null`;
const gasOfCall = gasRefusalOf({
  caller: sql`call.caller`,
  allowance: sql`call.allowance`,
  budget: sql`call.budget`,
});
export const outboxStateSql = forEachCall(
  {
    caller: "text",
    allowance: "float8",
    budget: "float8",
    asset: "text",
    payer: "text",
    nonce: "text",
    kind: "text",
    requestHash: "text",
    escrow: "text",
    headTime: "bigint",
  },
  sql`select
    (select id from app.operation
     where asset = call.asset and payer = call.payer and nonce = call.nonce and state <> 'rejected') as earlier,
    (select max(id) from app.operation
     where ${forAction} and state <> 'rejected' and response is null
       and (kind <> 'stake' or state not in ('mined', 'final')
         or created_at > now() - make_interval(secs => ${STAKE_REPEAT_SECONDS}))) as unreported,
    (select json_agg(json_build_object('nonce', nonce, 'notAfter', not_after)) from app.operation
     where ${forAction} and state = 'rejected' and published_at is not null
       and (not_after is null or not_after >= call."headTime")) as published,
    ${throttlingFailure(sql`call.caller`)} as "failureAge", ${gasOfCall} as "gasRefusal",
    ${hasRoom(MAX_QUEUED)} as "hasRoom"`,
  PENDING_GAS,
);
const outboxState = prepareShared<OutboxState>("outbox_state", outboxStateSql);

export async function readOutboxState(
  db: Executor,
  {
    caller,
    gasPolicy: { allowance, budget },
    authorization,
    action,
  }: {
    caller: Address;
    gasPolicy: GasPolicy;
    authorization?: { asset: Address; payer: Address; nonce: Hex };
    /** `headTime`: the newest block's time, in seconds. */
    action?: { kind: OperationKind; requestHash: string; escrow: Address; headTime: number };
  },
): Promise<OutboxState> {
  const [row] = await outboxState(db, { caller, allowance, budget, ...authorization, ...action });
  if (row === undefined) throw new Error("A select without a table returned no row");
  return row;
}
