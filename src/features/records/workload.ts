/** GET /v1/agents/{address}/workload: an agent's active and completed work (specification, "Workload"). */
import { z } from "@hono/zod-openapi";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { STATUS_GROUPS, type Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, inArray, isNotNull, type SQL, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { draw, requireIndex, stake, vote, workingContract as w } from "../../db/onchain.js";
import { apiKey, profile, terms } from "../../db/schema.js";
import { prepare } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { notFound } from "../../errors.js";
import { body, endpoints } from "../../http/endpoint.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";
import { phasesOf, statusSql } from "../contracts/view.js";
import { criterion, shownVotes, tallied, toVote, type VoteRow } from "../votes/view.js";

/** Maximum entries of each array; the newest are kept. */
const WORKLOAD_LIMIT = 1_000;

const WorkloadSchema = z
  .object({
    data: z.object({
      activeAsWorker: z.array(AddressViewSchema),
      completedAsWorker: z.array(AddressViewSchema),
      activeAsClient: z.array(AddressViewSchema),
      completedAsClient: z.array(AddressViewSchema),
      pendingBaVotes: z.array(z.object({ contractId: AddressViewSchema, criterionIndex: z.number() })),
      resolvedBaVotes: z.array(
        z.object({
          contractId: AddressViewSchema,
          criterionIndex: z.number(),
          vote: z.enum(OUTCOMES).nullable().openapi({ description: "Null if it was never opened" }),
          majorityOutcome: z.enum(OUTCOMES).nullable(),
        }),
      ),
    }),
    truncated: z
      .boolean()
      .openapi({ description: "True if an array had more than its newest 1,000 entries" }),
  })
  .openapi("Workload");

export type Workload = z.infer<typeof WorkloadSchema>;
export type WorkloadView = Workload["data"];

const ACTIVE: readonly Status[] = [...STATUS_GROUPS.open, ...STATUS_GROUPS.active];
const CLOSED: readonly Status[] = STATUS_GROUPS.closed;

/** The workload of `address` as `caller` may see it. Throws 404 `not_found` for an address that was never seen. */
export async function readWorkload(
  { db, clock }: Pick<Deps, "db" | "clock">,
  { address, caller, limit = WORKLOAD_LIMIT }: { address: Address; caller: Address; limit?: number },
): Promise<Workload> {
  const now = clock.now();
  // A direct award is no workload of the named Worker before it accepts.
  const asWorker = and(eq(w.worker, address), isNotNull(w.matchedAt));
  const asClient = eq(w.client, address);
  let longest = 0;
  // One more than is shown is read, to see whether there are more.
  const cut = <T>(list: T[]): T[] => {
    longest = Math.max(longest, list.length);
    return list.slice(0, limit);
  };
  const [activeAsWorker, completedAsWorker, activeAsClient, completedAsClient, pending, resolved] =
    await Promise.all([
      findContracts(db, { role: asWorker, statuses: ACTIVE, now, limit }),
      findContracts(db, { role: asWorker, statuses: CLOSED, now, limit }),
      findContracts(db, { role: asClient, statuses: ACTIVE, now, limit }),
      findContracts(db, { role: asClient, statuses: CLOSED, now, limit }),
      findPendingVotes(db, address, limit),
      findResolvedVotes(db, { address, caller, limit }),
    ]);
  await requireIndex(db);
  const data = {
    activeAsWorker: cut(activeAsWorker),
    completedAsWorker: cut(completedAsWorker),
    activeAsClient: cut(activeAsClient),
    completedAsClient: cut(completedAsClient),
    pendingBaVotes: cut(pending),
    resolvedBaVotes: cut(resolved),
  };
  if (longest === 0 && !(await isKnown(db, address))) {
    throw notFound(`No activity for this address: ${address}`);
  }
  return { data, truncated: longest > limit };
}

async function findContracts(
  db: Executor,
  {
    role,
    statuses,
    now,
    limit,
  }: { role: SQL | undefined; statuses: readonly Status[]; now: number; limit: number },
): Promise<Address[]> {
  const rows = await db
    .select({ id: w.id })
    .from(w)
    .innerJoin(terms, eq(terms.id, w.id))
    .where(
      and(
        role,
        isNotNull(w.createdAt),
        inArray(w.phase, phasesOf(statuses)),
        inArray(statusSql(now), [...statuses]),
      ),
    )
    .orderBy(desc(w.createdAt), desc(w.id))
    .limit(limit + 1);
  return rows.map(({ id }) => id);
}

/** A vote is pending from the draw to the tally; without a draw, from the ballot on. */
async function findPendingVotes(
  db: Executor,
  agent: Address,
  limit: number,
): Promise<WorkloadView["pendingBaVotes"]> {
  const drawnOrSealed = sql`(
    select ${draw.contractId} from ${draw} where ${draw.backupAgent} = ${agent}
    union select ${vote.contractId} from ${vote} where ${vote.backupAgent} = ${agent})`;
  return db
    .select({ contractId: w.id, criterionIndex: criterion })
    .from(w)
    .innerJoin(terms, eq(terms.id, w.id))
    .innerJoin(sql`generate_series(0, ${w.criteriaCount} - 1) as criterion`, sql`true`)
    .where(and(eq(w.phase, "disputed"), sql`${w.id} in ${drawnOrSealed}`))
    .orderBy(desc(w.disputedAt), desc(w.id), criterion)
    .limit(limit + 1);
}

const resolvedVotes = prepare<VoteRow>(
  "resolved_votes",
  sql`${shownVotes(and(eq(vote.backupAgent, sql.placeholder("address")), tallied))}
    order by ${desc(vote.sealedAt)}, ${desc(vote.contractId)}, ${criterion} limit ${sql.placeholder("limit")}`,
);

async function findResolvedVotes(
  db: Executor,
  { address, caller, limit }: { address: Address; caller: Address; limit: number },
): Promise<WorkloadView["resolvedBaVotes"]> {
  const rows = await resolvedVotes(db, { address, caller, limit: limit + 1 });
  return rows.map((row) => {
    const { contractId, criterionIndex, vote, majorityOutcome } = toVote(row);
    return { contractId, criterionIndex, vote, majorityOutcome };
  });
}

/** Whether an address without a workload has any other activity. */
async function isKnown(db: Executor, address: Address): Promise<boolean> {
  const { rows } = await db.execute<{ known: boolean }>(sql`select
    exists (select 1 from ${apiKey} where ${apiKey.address} = ${address})
    or exists (select 1 from ${profile} where ${profile.agent} = ${address})
    or exists (select 1 from ${stake} where ${stake.agent} = ${address})
    or exists (select 1 from ${draw} where ${draw.backupAgent} = ${address})
    or exists (select 1 from ${vote} where ${vote.backupAgent} = ${address})
    or exists (select 1 from ${w} where ${w.worker} = ${address})
    or exists (select 1 from ${w} where ${w.client} = ${address})
    as known`);
  return rows[0]?.known === true;
}

export const workloadEndpoints = [
  endpoints("Agents").get("/v1/agents/{address}/workload", {
    operationId: "getWorkload",
    summary: "Read an agent's active and completed contracts and votes",
    longRead: true,
    params: AddressParamsSchema,
    returns: body("The workload, newest first in each array", WorkloadSchema),
    errors: ["not_found"],
    handle: (deps, { params: { address }, caller }) => readWorkload(deps, { address, caller }),
  }),
];
