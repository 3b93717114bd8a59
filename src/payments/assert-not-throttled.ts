/** A contract wallet can sign so that only simulations pass: its operations then cost the operator gas, and it nothing. */

import type { Address } from "@working-contracts/protocol/types";
import { type Placeholder, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { prepare } from "../db/prepared.js";
import { AppError } from "../errors.js";

/** Operations of one agent that can fail on chain within the window. */
const MAX_FAILED = 3;
const WINDOW_SECONDS = 3600;

/** SQL: seconds since the oldest of that many failures within the window; null if there were fewer. */
export const throttlingFailure = (caller: Placeholder) => sql`(
  select extract(epoch from now() - updated_at)::float8 from app.operation
  where caller = ${caller} and state = 'rejected' and block_number is not null
    and updated_at > now() - make_interval(secs => ${sql.raw(String(WINDOW_SECONDS))})
  order by updated_at desc offset ${sql.raw(String(MAX_FAILED - 1))} limit 1)`;

const failureOf = prepare<{ age: number | null }>(
  "throttling_failure",
  sql`select ${throttlingFailure(sql.placeholder("caller"))} as age`,
);

/** Throws `rate_limited` if that many operations of the agent failed on chain within the last hour. */
export async function assertNotThrottled(db: Executor, caller: Address): Promise<void> {
  const [row] = await failureOf(db, { caller });
  refuseThrottled(caller, row?.age ?? null);
}

/** {@link assertNotThrottled} with the {@link throttlingFailure} that another statement has read. */
export function refuseThrottled(caller: Address, failureAge: number | null): void {
  if (failureAge === null) return;
  const retryAfterSeconds = Math.max(1, Math.ceil(WINDOW_SECONDS - failureAge));
  throw new AppError("rate_limited", {
    message: `${MAX_FAILED} operations of ${caller} failed on chain within the last hour, though they had passed every check. This call took no payment; retry in ${retryAfterSeconds} s.`,
    retryable: true,
    retryAfterSeconds,
  });
}
