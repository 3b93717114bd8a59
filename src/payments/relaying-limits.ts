/** Relaying is free for agents, so an agent that costs the operator too much gas is refused, with the reason and a way out. */

import type { Address } from "@working-contracts/protocol/types";
import { type Placeholder, sql } from "drizzle-orm";
import { prepare } from "../db/prepared.js";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { type GasState, gasRefusal, gasState, LIMITED_KINDS } from "../relayer/gas-accounts.js";
import type { OperationKind } from "../relayer/operations.js";

/** Operations of one agent that can fail on chain within the window: a wallet can sign so that only simulations pass. */
const MAX_FAILED = 3;
const WINDOW_SECONDS = 3600;

export interface RelayingState {
  /** Seconds since the oldest of {@link MAX_FAILED} failures within the window; null if there were fewer. */
  failureAge: number | null;
  gas: GasState;
}

/** SQL: {@link RelayingState.failureAge} */
export const throttlingFailure = (caller: Placeholder) => sql`(
  select extract(epoch from now() - updated_at)::float8 from app.operation
  where caller = ${caller} and state = 'rejected' and block_number is not null
    and updated_at > now() - make_interval(secs => ${sql.raw(String(WINDOW_SECONDS))})
  order by updated_at desc offset ${sql.raw(String(MAX_FAILED - 1))} limit 1)`;

const callerState = prepare<{ failure_age: number | null; gas: GasState; was_today: boolean }>(
  "caller_limits",
  sql`select ${throttlingFailure(sql.placeholder("caller"))} as failure_age, ${gasState(sql.placeholder("caller"))} as gas,
    coalesce((
      select created_at > now() - interval '1 day' from app.operation
      where caller = ${sql.placeholder("caller")} and kind in ('delegate', 'revoke-delegation') and state <> 'rejected'
        and kind = 'delegate'
      order by id desc limit 1), false) as was_today`,
);

type LimitDeps = Pick<Deps, "config">;

/**
 * Throws `rate_limited` if the agent's operations keep failing on chain, or if it has used up its gas and has delegated
 * today: an agent must be able to act on the contracts that it has, but not to delegate and revoke in a loop.
 */
export async function assertDelegable(deps: LimitDeps & Pick<Deps, "db">, agent: Address): Promise<void> {
  const [row] = await callerState(deps.db, { caller: agent });
  if (row === undefined) return;
  refuseThrottled(agent, row.failure_age);
  if (row.was_today) refuseIndebted(deps, agent, row.gas);
}

const failure = prepare<{ age: number | null }>(
  "caller_failure",
  sql`select ${throttlingFailure(sql.placeholder("caller"))} as age`,
);

/** Throws `rate_limited` if the agent's operations keep failing on chain: before an action that it signed. */
export async function assertNotFailing({ db }: Pick<Deps, "db">, agent: Address): Promise<void> {
  const [row] = await failure(db, { caller: agent });
  refuseThrottled(agent, row?.age ?? null, {
    fate: "This action was not relayed.",
    hint: "You can also send it from your own account: the escrow takes it from its agent.",
  });
}

const REFUND_WAITS = {
  fate: "Your payment reached the escrow by a direct transfer, and is not refunded yet.",
  hint: "Repeat the identical request then. Later anyone can refund it on chain (docs/rules.md 12).",
};

/**
 * Throws `rate_limited` if the payer of a direct transfer is a contract wallet that keeps failing, or has used up its gas:
 * it could sign refunds for simulations only. An ordinary account's refund is never refused.
 */
export async function assertRefundable(
  deps: LimitDeps & Pick<Deps, "db" | "publicClient">,
  payer: Address,
): Promise<void> {
  if ((await deps.publicClient.getCode({ address: payer })) === undefined) return;
  const [row] = await callerState(deps.db, { caller: payer });
  if (row === undefined) return;
  refuseThrottled(payer, row.failure_age, REFUND_WAITS);
  refuseIndebted(deps, payer, row.gas, REFUND_WAITS);
}

/**
 * Throws `rate_limited` if the agent's operations keep failing on chain, or if the kind costs gas that it does not have,
 * unless its money is at the escrow already.
 */
export function assertRelayable(
  deps: LimitDeps,
  {
    caller,
    kind,
    isDirectTransfer = false,
  }: { caller: Address; kind: OperationKind; isDirectTransfer?: boolean },
  { failureAge, gas }: RelayingState,
): void {
  refuseThrottled(caller, failureAge);
  if (LIMITED_KINDS.has(kind) && !isDirectTransfer) refuseIndebted(deps, caller, gas);
}

const CALL_ENDS = {
  fate: "This call took no payment.",
  hint: "Calls on contracts that you already have are still relayed. You can also send this one from your own account and pay its gas: the factory and the escrow take it from anyone.",
};

function refuseThrottled(
  caller: Address,
  failureAge: number | null,
  { fate, hint }: { fate: string; hint?: string } = { fate: CALL_ENDS.fate },
): void {
  if (failureAge === null) return;
  const retryAfterSeconds = Math.max(1, Math.ceil(WINDOW_SECONDS - failureAge));
  throw new AppError("rate_limited", {
    message: `${MAX_FAILED} operations of ${caller} failed on chain within the last hour, though they had passed every check. ${fate} Retry in ${retryAfterSeconds} s.`,
    ...(hint && { hint }),
    retryable: true,
    retryAfterSeconds,
  });
}

function refuseIndebted(
  { config: { gasLimits } }: LimitDeps,
  caller: Address,
  gas: GasState,
  { fate, hint } = CALL_ENDS,
): void {
  const refusal = gasRefusal(gas, gasLimits);
  if (refusal === null) return;
  const { limit, retryAfterSeconds } = refusal;
  const what =
    limit === "allowance"
      ? `The gas relayed for ${caller} has reached ${gasLimits.allowance} a day beyond what the fees of its contracts cover.`
      : `The gas relayed for all agents beyond what their fees cover has reached this hour's ${gasLimits.budget}.`;
  throw new AppError("rate_limited", {
    message: `${what} ${fate} Retry in ${retryAfterSeconds} s.`,
    hint,
    details: { limit, retryAfterSeconds },
    retryable: true,
    retryAfterSeconds,
  });
}
