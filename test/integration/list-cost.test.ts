/**
 * A page of contracts costs the same however many contracts there are. `npm run measure:lists` shows this, plan by
 * plan, with a million contracts (LIST_CONTRACTS); this test uses fewer.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ContractFilter, listContracts, SORTS } from "../../src/features/contracts/list-contracts.js";
import { createLargeDatabase, type LargeDatabase } from "./index-tables.js";

const FEW = 10;
const MANY = Number(process.env.LIST_CONTRACTS || 30_000);
const SHOWS_PLANS = process.env.LIST_CONTRACTS !== undefined;
const PAGE = 5;
/** Blocks of 8 KiB that Postgres can read for a page: a few levels of the indexes of 18 partitions, and the rows. */
const MOST_BLOCKS = 400;
/** Tables of which one row holds the index's progress. */
const ONE_ROW = /Seq Scan on (_ponder_meta|_ponder_checkpoint|event_log)\b/g;
const NOW = 2_000_000_000;
const CLIENT = `0x${"c1".repeat(20)}` as const;

let database: LargeDatabase;
/** The statement that read the last list. */
let asked: { text: string; values: unknown[] };

beforeAll(async () => {
  const tables = ["working_contract", "vote"];
  database = await createLargeDatabase(tables);
  const { pool } = database;
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  pool.query = ((config: string | typeof asked, values?: unknown[]) => {
    if (typeof config !== "string" && config.text.includes("working_contract")) asked = config;
    return query(config, values);
  }) as typeof pool.query;
});
afterAll(() => database?.drop());

/**
 * Contract `i` was created in second `i`. The newest hundredth is open, about ten are disputed, and one client has ten.
 */
async function fill(count: number): Promise<void> {
  await database.pool.query("truncate onchain.working_contract, app.terms");
  const id = "'0x' || substr(encode(sha256(i::text::bytea), 'hex'), 1, 40)";
  const tenth = Math.max(1, Math.floor(count / 10));
  const isOpen = `i > ${Math.floor(count * 0.99)}`;
  const isDisputed = `i % ${tenth} = 0`;
  const numbers = (names: string, value: string) =>
    Object.fromEntries(names.split(" ").map((name) => [name, value]));
  await database.insert("onchain.working_contract", count, {
    id,
    initiator: "'0x'",
    worker_initiated: "false",
    computed_criteria: "false",
    price: "(1 + i::bigint * 7919 % 1000) * 1000000",
    criteria_count: "3",
    match_deadline: String(NOW + 1000),
    withdrawal_deadline: String(NOW + 2000),
    delivery_deadline: `${NOW} + i * 31 % 100000`,
    review_deadline: `${NOW} + i * 37 % 100000`,
    terms_hash: "'0x'",
    ...numbers("protocol_fee worker_stake_ratio dispute_bond_ratio backup_agent_bond_ratio", "500"),
    ...numbers("early_withdrawal_slash_ratio absent_none_met_client_share ba_unclear_slash_ratio", "3000"),
    ...numbers("token_mint_reward_full token_mint_reward_reduced ba_eligibility_stake", "10"),
    ...numbers("ba_voting_window ba_recruit_count payout_hold sealed_votes opened_votes", "0"),
    phase: `case when ${isOpen} then 'created' when ${isDisputed} then 'disputed' else 'approved' end`,
    client: `case when (i + 1) % ${tenth} = 0 then '${CLIENT}' else ${id} end`,
    outcomes: "21",
    created_at: "i",
    matched_at: "i",
    drawn: "false",
    settled: `not (${isOpen} or ${isDisputed})`,
    updated_block: "i",
    updated_block_hash: "'0x'",
  });
  await database.insert("app.terms", count, {
    id,
    caller: "'0x'",
    body_hash: "i::text",
    document: "'{}'",
    terms_hash: "'0x'",
    title: "'Find needle ' || i || ' in a haystack'",
    task_description: "'Look.'",
    words: "array_to_tsvector(array['find', 'needle', i::text, 'in', 'a', 'haystack', 'look'])",
    acceptance_criteria: `'["Found"]'`,
    award_method: "'open_tender'",
    initiator: "'client'",
    escrow_terms: "'{}'",
    opened_at: "now()",
  });
  await database.pool.query("vacuum analyze onchain.working_contract");
  await database.pool.query("vacuum analyze app.terms");
}

interface Cost {
  rows: number;
  /** Blocks of 8 KiB, in memory or on disk. */
  blocks: number;
  plan: string;
}

async function costOf(filter: Partial<ContractFilter>): Promise<Cost> {
  const deps = { db: database.db, clock: { now: () => NOW } as never };
  const { data } = await listContracts(deps, { sort: "-createdAt", limit: PAGE, ...filter });
  const { text, values } = asked;
  const { rows } = await database.pool.query<{ "QUERY PLAN": string }>(
    `explain (analyze, buffers, costs off, timing off) ${text}`,
    values,
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  // The first line of buffers belongs to the topmost node and includes all nodes below it.
  const [, buffers = ""] = /Buffers: shared (.*)/.exec(plan) ?? [];
  const blocks = [...buffers.matchAll(/(?:hit|read)=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
  return { rows: data.length, blocks, plan };
}

/** From the middle of the list on. The cursor is the one that the API would have returned there. */
async function cursorInTheMiddle(): Promise<string> {
  const { rows } = await database.pool.query(
    "select id, created_at from onchain.working_contract order by created_at offset (select count(*) / 2 from app.terms) limit 1",
  );
  return Buffer.from(JSON.stringify(["-createdAt", String(rows[0].created_at), rows[0].id])).toString(
    "base64url",
  );
}

test(`a page of contracts costs the same at ${FEW} and at ${MANY.toLocaleString("en")} contracts`, async () => {
  const costs: Record<string, Record<number, Cost>> = {};
  for (const count of [FEW, MANY]) {
    await fill(count);
    const pages: Record<string, Partial<ContractFilter>> = {
      ...Object.fromEntries(SORTS.map((sort) => [`sort=${sort}`, { sort }])),
      "a cursor in the middle": { cursor: await cursorInTheMiddle() },
      "one client": { client: CLIENT },
      "status=open": { statuses: ["created"] },
      "status=disputed": { statuses: ["disputed"] },
      "q=needle": { q: "Needle haystack" },
      "q=needle, open, by price": { q: "needle", statuses: ["created"], sort: "budgetOrPrice" },
      "q=needle 7": { q: "needle 7" },
      "minPrice=100, by price": { minPrice: 100_000_000n, sort: "budgetOrPrice" },
    };
    for (const [name, filter] of Object.entries(pages)) {
      costs[name] ??= {};
      costs[name][count] = await costOf(filter);
    }
  }
  for (const [name, { [FEW]: few, [MANY]: many }] of Object.entries(costs)) {
    if (SHOWS_PLANS) console.log(`${name}: ${few?.blocks} and ${many?.blocks} blocks\n${many?.plan}\n`);
    expect(few?.rows, name).toBeGreaterThan(0);
    expect(many?.plan.replaceAll(ONE_ROW, ""), name).not.toContain("Seq Scan");
    expect(many?.blocks, `${name}\n${many?.plan}`).toBeLessThan(MOST_BLOCKS);
  }
}, 1_800_000);
