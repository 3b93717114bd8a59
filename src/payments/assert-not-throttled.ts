/** A contract wallet can sign so that only simulations pass: its operations then cost the operator gas, and it nothing. */

import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, gt, isNotNull, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { operation } from "../db/schema.js";
import { AppError } from "../errors.js";

/** Operations of one agent that can fail on chain within the window. */
const MAX_FAILED = 3;
const WINDOW_SECONDS = 3600;

/** Throws `rate_limited` if that many operations of the agent failed on chain within the last hour. */
export async function assertNotThrottled(db: Executor, caller: Address): Promise<void> {
  const failed = await db
    .select({ age: sql<number>`extract(epoch from now() - ${operation.updatedAt})::float8` })
    .from(operation)
    .where(
      and(
        eq(operation.caller, caller),
        eq(operation.state, "rejected"),
        isNotNull(operation.blockNumber),
        gt(operation.updatedAt, sql`now() - make_interval(secs => ${WINDOW_SECONDS})`),
      ),
    )
    .orderBy(desc(operation.updatedAt))
    .limit(MAX_FAILED);
  const oldest = failed[MAX_FAILED - 1];
  if (oldest === undefined) return;
  const retryAfterSeconds = Math.max(1, Math.ceil(WINDOW_SECONDS - oldest.age));
  throw new AppError("rate_limited", {
    message: `${MAX_FAILED} operations of ${caller} failed on chain within the last hour, though they had passed every check. This call took no payment; retry in ${retryAfterSeconds} s.`,
    retryable: true,
    retryAfterSeconds,
  });
}
