/** GET /v1/votes and GET /v1/contracts/{id}/votes: newest first, paged by keyset (docs/rules.md 57). */

import { z } from "@hono/zod-openapi";
import { OUTCOMES, type Outcome } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, inArray, type SQL, sql } from "drizzle-orm";
import { requireIndex } from "../../db/index-position.js";
import { vote, workingContract as w } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { phasesOf, statusSql } from "../contracts/status-sql.js";
import { criterion, selectVotes, tallied, toVote, type VoteRow, VoteSchema } from "./view.js";

export interface VoteFilter {
  contractId?: Address | undefined;
  backupAgent?: Address | undefined;
  majorityOutcome?: Outcome | undefined;
  /** Parties and time-aware status of the contract voted on. */
  client?: Address | undefined;
  worker?: Address | undefined;
  statuses?: readonly Status[] | undefined;
  limit: number;
  cursor?: string | undefined;
}

export const VoteListSchema = z
  .object({ data: z.array(VoteSchema), nextCursor: z.string().nullable() })
  .openapi("VoteList");

export type VotePage = z.infer<typeof VoteListSchema>;

/** One page of votes as `caller` may see them. Throws `invalid_request` if the cursor is not from this list. */
export async function listVotes(
  deps: Pick<Deps, "db" | "clock">,
  caller: Address,
  filter: VoteFilter,
): Promise<VotePage> {
  const rows = await selectVotes(
    deps.db,
    caller,
    and(filterSql(filter, deps.clock.now()), afterCursor(filter.cursor)),
  )
    .orderBy(desc(vote.sealedAt), desc(vote.contractId), desc(vote.position), criterion)
    .limit(filter.limit + 1);
  await requireIndex(deps.db);
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  return {
    data: page.map(toVote),
    nextCursor: last !== undefined && rows.length > page.length ? encodeCursor(last) : null,
  };
}

function filterSql(filter: VoteFilter, now: number): SQL | undefined {
  const { contractId, backupAgent, majorityOutcome, client, worker, statuses } = filter;
  return and(
    contractId && eq(vote.contractId, contractId),
    backupAgent && eq(vote.backupAgent, backupAgent),
    majorityOutcome &&
      and(tallied, sql`(${w.outcomes} >> (2 * ${criterion})) & 3 = ${OUTCOMES.indexOf(majorityOutcome) + 1}`),
    client && eq(w.client, client),
    worker && eq(w.worker, worker),
    statuses && inArray(w.phase, phasesOf(statuses)),
    statuses && inArray(statusSql(now), [...statuses]),
  );
}

/**
 * Within a ballot the criteria are in ascending order, so their part of the key is reversed. The second condition implies
 * the first, which an index can answer.
 */
function afterCursor(cursor: string | undefined): SQL | undefined {
  if (cursor === undefined) return undefined;
  const [sealedAt, contractId, position, index] = decodeCursor(cursor);
  return sql`(${vote.sealedAt}, ${vote.contractId}, ${vote.position})
    <= (${sealedAt}::numeric, ${contractId}, ${position}::integer)
    and (${vote.sealedAt}, ${vote.contractId}, ${vote.position}, -${criterion})
    < (${sealedAt}::numeric, ${contractId}, ${position}::integer, ${-index}::integer)`;
}

type Key = [sealedAt: string, contractId: string, position: number, criterion: number];

function encodeCursor({ sealedAt, contractId, position, criterionIndex }: VoteRow): string {
  const key: Key = [String(sealedAt), contractId, position, criterionIndex];
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

function decodeCursor(cursor: string): Key {
  try {
    const [sealedAt, contractId, position, index, ...rest] = JSON.parse(
      Buffer.from(cursor, "base64url").toString("utf8"),
    );
    const isIndex = (value: unknown) =>
      Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31;
    const isKey =
      typeof sealedAt === "string" &&
      /^\d{1,15}$/.test(sealedAt) &&
      typeof contractId === "string" &&
      /^0x[0-9a-f]{40}$/.test(contractId) &&
      isIndex(position) &&
      isIndex(index);
    if (isKey && rest.length === 0) return [sealedAt, contractId, position, index];
  } catch {
    // Refused below.
  }
  const message = "is not a nextCursor of this list; restart without a cursor";
  throw new AppError("invalid_request", {
    message: `cursor: ${message}`,
    details: [{ path: "cursor", message }],
  });
}
