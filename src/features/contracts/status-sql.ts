/** The status rule of protocol/status.ts as SQL, for list filters; a test compares the two. */

import type { Status } from "@working-contracts/protocol/status";
import type { Phase } from "@working-contracts/protocol/types";
import { type Placeholder, type SQL, sql } from "drizzle-orm";
import { workingContract as w } from "../../db/onchain.js";

/** Status of a `working_contract` row at `now` (seconds, or a placeholder), as text. */
export function statusSql(now: number | Placeholder): SQL<Status> {
  const at = sql`${now}::numeric`;
  return sql<Status>`case ${w.phase}
    when 'created' then case when ${at} < ${w.matchDeadline} then 'created' else 'cancelled-unmatched' end
    when 'matched' then case when ${at} < ${w.deliveryDeadline} then 'matched' else 'cancelled-absent' end
    when 'delivered' then case when ${at} < ${w.reviewDeadline} then 'under-review' else ${resolvedSql} end
    when 'approved' then ${resolvedSql}
    when 'tallied' then ${resolvedSql}
    when 'disputed' then 'disputed'
    when 'declined' then 'cancelled-unmatched'
    when 'cancelled' then 'cancelled-by-initiator'
    when 'withdrawn' then 'cancelled-withdrawn'
  end`;
}

/** The phases that a status can have: an indexable prefilter for a status filter. */
export function phasesOf(statuses: readonly Status[]): Phase[] {
  const resolved: Phase[] = ["delivered", "approved", "tallied"];
  const phases: Record<Status, Phase[]> = {
    created: ["created"],
    matched: ["matched"],
    "under-review": ["delivered"],
    disputed: ["disputed"],
    resolved,
    "settled-all-met": resolved,
    "settled-none-met": resolved,
    "settled-partial": resolved,
    "cancelled-unmatched": ["created", "declined"],
    "cancelled-by-initiator": ["cancelled"],
    "cancelled-withdrawn": ["withdrawn"],
    "cancelled-absent": ["matched"],
  };
  return [...new Set(statuses.flatMap((status) => phases[status]))];
}

/** Contracts of one phase that are paid out, or are not: contiguous rows in the lists' indexes. */
export interface Partition {
  phase: Phase;
  settled: boolean;
}

/** The partitions that hold the rows of a status. */
export function partitionsOf(statuses: readonly Status[]): Partition[] {
  return [false, true].flatMap((settled) =>
    phasesOf(statuses.filter((status) => SETTLED_OF[status] !== !settled)).map((phase) => ({
      phase,
      settled,
    })),
  );
}

/** Whether contracts of a status have been paid out; null if they can be either. */
const SETTLED_OF: Record<Status, boolean | null> = {
  created: false,
  matched: false,
  "under-review": false,
  disputed: false,
  resolved: false,
  "settled-all-met": true,
  "settled-none-met": true,
  "settled-partial": true,
  "cancelled-unmatched": null,
  "cancelled-by-initiator": null,
  "cancelled-withdrawn": null,
  "cancelled-absent": null,
};

/** Packed outcomes hold two bits a criterion: 01 met, 10 not met, 11 unclear. */
const bits = (packed: SQL): SQL => sql`bit_count((${packed})::bit(24))`;
const low = sql`(${w.outcomes} & 5592405)`;
const high = sql`((${w.outcomes} >> 1) & 5592405)`;
const met = bits(sql`${low} & ~${high}`);
const unclear = bits(sql`${low} & ${high}`);
/** A criterion without an outcome counts as unclear, as in the escrow. */
const undecided = sql`(${w.criteriaCount} - ${bits(sql`${low} | ${high}`)})`;
const acceptedByTimeOut = sql`${w.phase} = 'delivered' and not ${w.computedCriteria}`;
/** Unclear criteria split the price after a vote, and pay as met if the Client accepted. */
const unclearWeight = sql`(case ${w.phase} when 'tallied' then 1 else 2 end)`;
const released = sql`div(${w.price} * (2 * ${met} + ${unclearWeight} * (${unclear} + ${undecided})), 2 * ${w.criteriaCount})`;

const resolvedSql = sql`case
  when not ${w.settled} then 'resolved'
  when (${acceptedByTimeOut}) or ${released} = ${w.price} then 'settled-all-met'
  when ${released} = 0 then 'settled-none-met'
  else 'settled-partial'
end`;
