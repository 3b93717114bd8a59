/** GET /v1/votes and GET /v1/contracts/{id}/votes: newest first, paged by keyset (docs/rules.md 57). */

import { z } from "@hono/zod-openapi";
import { OUTCOMES, type Outcome } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, type SQL, sql } from "drizzle-orm";
import { prepareShapes } from "../../db/client.js";
import { requireIndex, vote, workingContract as w } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { invalidField } from "../../errors.js";
import { phasesOf, statusSql } from "../contracts/view.js";
import { criterion, shownVotes, tallied, toVote, type VoteRow, VoteSchema } from "./view.js";

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

const value = sql.placeholder;
const statementOf = prepareShapes<VoteRow>("vote_list");

/** One page of votes as `caller` may see them. Throws `invalid_request` if the cursor is not from this list. */
export async function listVotes(
  { db, clock }: Pick<Deps, "db" | "clock">,
  caller: Address,
  filter: VoteFilter,
): Promise<VotePage> {
  const { limit, cursor, statuses, majorityOutcome, ...equal } = filter;
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const given = Object.entries(filter)
    .filter(([name, member]) => name !== "limit" && member !== undefined)
    .map(([name]) => name as keyof VoteFilter);
  const statement = statementOf(
    JSON.stringify([limit, given]),
    () => sql`${shownVotes(and(...given.map((name) => CONDITIONS[name])))}
      order by ${desc(vote.sealedAt)}, ${desc(vote.contractId)}, ${desc(vote.position)}, ${criterion}
      limit ${limit + 1}`,
  );
  const rows = await statement(db, {
    ...equal,
    caller,
    statuses,
    phases: statuses && phasesOf(statuses),
    now: clock.now(),
    majority: majorityOutcome && OUTCOMES.indexOf(majorityOutcome) + 1,
    ...after,
  });
  await requireIndex(db, rows);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    data: page.map(toVote),
    nextCursor: last !== undefined && rows.length > page.length ? encodeCursor(last) : null,
  };
}

/**
 * SQL by filter. Within a ballot the criteria are in ascending order, so their part of the cursor's key is reversed; its
 * second condition implies the first, which an index can answer.
 */
const CONDITIONS: Partial<Record<keyof VoteFilter, SQL>> = {
  contractId: sql`${vote.contractId} = ${value("contractId")}`,
  backupAgent: sql`${vote.backupAgent} = ${value("backupAgent")}`,
  majorityOutcome: sql`${tallied} and (${w.outcomes} >> (2 * ${criterion})) & 3 = ${value("majority")}::integer`,
  client: sql`${w.client} = ${value("client")}`,
  worker: sql`${w.worker} = ${value("worker")}`,
  statuses: sql`${w.phase} = any(${value("phases")}::text[])
    and ${statusSql(value("now"))} = any(${value("statuses")}::text[])`,
  cursor: sql`(${vote.sealedAt}, ${vote.contractId}, ${vote.position})
    <= (${value("sealedAt")}::numeric, ${value("afterContract")}, ${value("position")}::integer)
    and (${vote.sealedAt}, ${vote.contractId}, ${vote.position}, -${criterion})
    < (${value("sealedAt")}::numeric, ${value("afterContract")}, ${value("position")}::integer, -${value("index")}::integer)`,
};

type Key = [sealedAt: string, contractId: string, position: number, criterion: number];

function encodeCursor({ sealedAt, contractId, position, criterionIndex }: VoteRow): string {
  const key: Key = [String(sealedAt), contractId, position, criterionIndex];
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

function decodeCursor(cursor: string) {
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
    if (isKey && rest.length === 0) return { sealedAt, afterContract: contractId, position, index };
  } catch {
    // Refused below.
  }
  const message = "is not a nextCursor of this list; restart without a cursor";
  throw invalidField("cursor", message, `cursor: ${message}`);
}
