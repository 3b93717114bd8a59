/** Lists that callers can shape use indexes, however many rows there are. */
import type { SQL } from "drizzle-orm";
import { and, desc, eq, sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { vote } from "../../src/db/onchain.js";
import { prepare } from "../../src/db/statements.js";
import { paidByMonth } from "../../src/features/records/routes.js";
import { newestStakeQuery } from "../../src/features/stakes/routes.js";
import { criterion, shownVotes } from "../../src/features/votes/view.js";
import { outboxStateSql } from "../../src/relayer/limits.js";
import { useWorld } from "../support/world.js";

const AGENT = `0x${"ab".repeat(20)}` as const;

const { db } = await useWorld();

/** The plan that Postgres would choose for large tables. It prefers to read small ones completely and to sort them. */
async function planOf(query: SQL, values: Record<string, unknown> = {}): Promise<string> {
  return db.transaction(async (tx) => {
    for (const way of ["seqscan", "sort", "hashjoin", "mergejoin"]) {
      await tx.execute(sql.raw(`set local enable_${way} = off`));
    }
    const rows = await prepare<{ "QUERY PLAN": string }>(undefined, sql`explain ${query}`)(tx, values);
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  });
}

test.each([
  ["of everyone", undefined],
  ["of one agent", eq(vote.backupAgent, AGENT)],
  [
    "of one agent after a cursor",
    and(
      eq(vote.backupAgent, AGENT),
      sql`(${vote.sealedAt}, ${vote.contractId}, ${vote.position}) <= (1, ${AGENT}, 1)`,
    ),
  ],
])("votes %s come in order from an index, ballot by ballot", async (_name, where) => {
  const order = [desc(vote.sealedAt), desc(vote.contractId), desc(vote.position), criterion];
  const query = sql`${shownVotes(where)} order by ${sql.join(order, sql`, `)} limit 50`;
  const plan = await planOf(query, { caller: AGENT });
  expect(plan).toMatch(/Index (Only )?Scan Backward using \S+ on vote/);
  expect(plan).toMatch(/Presorted Key: vote.sealed_at, vote.contract_id, vote."?position/);
});

test("what a worker was paid by month comes from its newest contracts, by an index", async () => {
  const plan = await planOf(paidByMonth(db, { worker: AGENT, since: 0 }).getSQL());
  expect(plan).toMatch(/Limit/);
  expect(plan).toMatch(/Index (Only )?Scan Backward using \S+ on working_contract/);
  expect(plan).toMatch(
    /Index Scan using \S+ on deferred_payout .*\s+Index Cond: \(\(contract_id = newest.id\)/,
  );
});

test("a caller's newest stake is found by an index", async () => {
  expect(await planOf(newestStakeQuery(db, AGENT).getSQL())).toContain("operation_stake");
});

test("a caller's unanswered payments are found by an index, and what is sent by its open batches", async () => {
  const authorization = { asset: AGENT, payer: AGENT, nonce: AGENT };
  const action = { caller: AGENT, kind: "stake", requestHash: "hash", escrow: AGENT, headTime: 0 };
  const call = { n: 0, ...authorization, ...action, allowance: 1, budget: 1 };
  const plan = await planOf(outboxStateSql, { calls: JSON.stringify([call]) });
  for (const index of ["operation_by_authorization", "operation_unanswered", "operation_rejected"])
    expect(plan).toContain(index);
  expect(plan).toMatch(/operation_by_batch .*\s+Index Cond: \(batch_id = ANY/);
  // At the top, not below each call.
  expect(plan).toMatch(/^ {2}CTE pending_gas$/m);
});
