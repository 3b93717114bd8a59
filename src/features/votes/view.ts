/** The query, the mapper and the schema for every response that shows a Vote: docs/rules.md 48 and 57. */
import { z } from "@hono/zod-openapi";
import {
  cappedRewards,
  type FeeParameters,
  type Rewards,
  verdictOn,
} from "@working-contracts/protocol/ledger";
import { OUTCOMES, outcomeAt, tallyOutcomes } from "@working-contracts/protocol/outcomes";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, type SQL, sql } from "drizzle-orm";
import {
  type IndexedRow,
  type IndexReader,
  requireIndex,
  vote,
  workingContract as w,
  wholeBlock,
} from "../../db/onchain.js";
import { entrustedVote, terms } from "../../db/schema.js";
import { prepareShapes, selected, sizeOf } from "../../db/statements.js";
import { AddressViewSchema, decodeCursor, encodeCursor } from "../../http/schemas.js";
import { phasesOf, statusSql } from "../contracts/view.js";
import type { VoteQuerySchema } from "./routes.js";

const untilTally = { description: "Null until the tally" };

/** A Vote as the API shows it (specification, "Vote"): one Backup Agent, one criterion. */
export const VoteSchema = z
  .object({
    contractId: AddressViewSchema,
    backupAgent: AddressViewSchema,
    criterionIndex: z.number(),
    vote: z.enum(OUTCOMES).nullable().openapi({
      description:
        "Until the tally null to everyone except the voter, and to the voter as well while only it can open its vote; after it null if it was never opened",
    }),
    majorityOutcome: z.enum(OUTCOMES).nullable().openapi(untilTally),
    bondOutcome: z.enum(["returned", "slashed", "partially slashed"]).nullable().openapi(untilTally),
    reward: z.number().nullable().openapi({
      description: "Whole protocol tokens; less at prices whose fee does not cover it. Null until the tally",
    }),
  })
  .openapi("Vote");

export type VoteView = z.infer<typeof VoteSchema>;

/** SQL: 0-based criterion of a row of {@link shownVotes}. */
export const criterion = sql<number>`criterion`;

/** Votes that are opened on chain stay sealed here until the tally. */
export const tallied = eq(w.phase, "tallied");

/** A row of {@link shownVotes}. */
export interface VoteRow extends IndexedRow, FeeParameters, Rewards {
  contractId: Address;
  backupAgent: Address;
  position: number;
  sealedAt: string;
  /** Of the caller's own ballot, if it was entrusted to the service. */
  salt: Hex | null;
  criterionIndex: number;
  /** Packed votes of the ballot; null while sealed to the caller, or never opened. */
  ballot: number | null;
  /** Packed outcomes of the tally; null before it. */
  outcomes: number | null;
  price: string;
  criteriaCount: number;
  openedVotes: number;
}

const CALLER = sql.placeholder("caller");
const SHOWN = {
  contractId: vote.contractId,
  backupAgent: vote.backupAgent,
  position: vote.position,
  sealedAt: vote.sealedAt,
  salt: entrustedVote.salt,
  criterionIndex: criterion,
  ballot: sql`case when ${tallied} then ${vote.votes} when ${vote.backupAgent} = ${CALLER}
    then coalesce(${entrustedVote.votes}, ${vote.votes}) end`,
  outcomes: sql`case when ${tallied} then ${w.outcomes} end`,
  price: w.price,
  criteriaCount: w.criteriaCount,
  openedVotes: w.openedVotes,
  workerStakeRatio: w.workerStakeRatio,
  disputeBondRatio: w.disputeBondRatio,
  protocolFee: w.protocolFee,
  absentNoneMetClientShare: w.absentNoneMetClientShare,
  tokenMintRewardFull: w.tokenMintRewardFull,
  tokenMintRewardReduced: w.tokenMintRewardReduced,
  indexBlock: wholeBlock,
};

/** SQL: ballots by criterion, as far as the placeholder `caller` may see them. Add order and limit. */
export function shownVotes(where?: SQL): SQL {
  return sql`
    select ${selected(SHOWN)}
    from ${vote}
    join ${w} on ${w.id} = ${vote.contractId}
    join ${terms} on ${terms.id} = ${w.id}
    join generate_series(0, ${w.criteriaCount} - 1) as criterion on true
    left join ${entrustedVote} on ${vote.backupAgent} = ${CALLER} and ${entrustedVote.contractId} = ${vote.contractId}
      and ${entrustedVote.backupAgent} = ${vote.backupAgent} and ${entrustedVote.commitment} = ${vote.commitment}
    where ${where ?? sql`true`}`;
}

/** The Vote of a row. A ballot that was not opened by the tally counts as slashed. */
export function toVote(row: VoteRow): VoteView {
  const { contractId, backupAgent, criterionIndex, ballot, outcomes } = row;
  const vote = ballot === null ? null : outcomeAt(ballot, criterionIndex);
  const majorityOutcome = outcomes === null ? null : outcomeAt(outcomes, criterionIndex);
  const shown = { contractId, backupAgent, criterionIndex, vote, majorityOutcome };
  if (outcomes === null || majorityOutcome === null) return { ...shown, bondOutcome: null, reward: null };
  const tally = tallyOutcomes(outcomes, row.criteriaCount);
  const rewards = cappedRewards({ ...row, price: BigInt(row.price), tally, parameters: row });
  return { ...shown, ...verdictOn(vote, majorityOutcome, rewards) };
}

type VoteFilter = z.output<typeof VoteQuerySchema>;

export const VoteListSchema = z
  .object({ data: z.array(VoteSchema), nextCursor: z.string().nullable() })
  .openapi("VoteList");

export type VotePage = z.infer<typeof VoteListSchema>;

const value = sql.placeholder;
const statementOf = prepareShapes<VoteRow>("vote_list");

/** One page of votes as `caller` may see them. Throws `invalid_request` if the cursor is not from this list. */
export async function listVotes(deps: IndexReader, caller: Address, filter: VoteFilter): Promise<VotePage> {
  const { db, clock } = deps;
  const { limit, cursor, status, majorityOutcome, ...values } = filter;
  const after = cursor === undefined ? undefined : decodeCursor(CursorSchema, cursor);
  const given = Object.entries(filter)
    .filter(([name, member]) => name !== "limit" && member !== undefined)
    .map(([name]) => name as keyof VoteFilter);
  const size = sizeOf(limit);
  const { run } = statementOf(JSON.stringify([size, given]), () => ({
    weight: 1,
    text: sql`${shownVotes(and(...given.map((name) => CONDITIONS[name])))}
      order by ${desc(vote.sealedAt)}, ${desc(vote.contractId)}, ${desc(vote.position)}, ${criterion}
      limit ${size + 1}`,
  }));
  const rows = await run(db, {
    ...values,
    caller,
    status,
    phases: status && phasesOf(status),
    now: clock.now(),
    majority: majorityOutcome && OUTCOMES.indexOf(majorityOutcome) + 1,
    ...after,
  });
  const page = rows.slice(0, limit);
  await requireIndex(deps, page);
  const last = page.at(-1);
  return {
    data: page.map(toVote),
    nextCursor:
      last !== undefined && rows.length > page.length
        ? encodeCursor([String(last.sealedAt), last.contractId, last.position, last.criterionIndex])
        : null,
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
  status: sql`${w.phase} = any(${value("phases")}::text[])
    and ${statusSql(value("now"))} = any(${value("status")}::text[])`,
  cursor: sql`(${vote.sealedAt}, ${vote.contractId}, ${vote.position})
    <= (${value("sealedAt")}::numeric, ${value("afterContract")}, ${value("position")}::integer)
    and (${vote.sealedAt}, ${vote.contractId}, ${vote.position}, -${criterion})
    < (${value("sealedAt")}::numeric, ${value("afterContract")}, ${value("position")}::integer, -${value("index")}::integer)`,
};

const CountSchema = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
const CursorSchema = z
  .tuple([z.string().regex(/^\d{1,15}$/), z.string().regex(/^0x[0-9a-f]{40}$/), CountSchema, CountSchema])
  .transform(([sealedAt, afterContract, position, index]) => ({ sealedAt, afterContract, position, index }));
