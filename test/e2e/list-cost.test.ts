/**
 * A page of contracts costs the same however many contracts there are. `npm run measure:lists` shows this, plan by
 * plan, with a million contracts (LIST_CONTRACTS); this test uses fewer.
 */
import { beforeAll, expect, test } from "vitest";
import {
  type ContractFilter,
  listContracts,
  PAGE_LENGTH,
  SORTS,
  WALK,
} from "../../src/features/contracts/list-contracts.js";
import { useLargeDatabase } from "./index-tables.js";

const FEW = 10;
const MANY = Number(process.env.LIST_CONTRACTS || 20_000);
const SHOWS_PLANS = process.env.LIST_CONTRACTS !== undefined;
const PAGE = 5;
/** Blocks of 8 KiB that Postgres can read for a page: a few levels of the indexes of 18 partitions, and the rows. */
const MOST_BLOCKS = 400;
/** Tables of which one row holds the index's progress. */
const ONE_ROW = /Seq Scan on (_ponder_meta|_ponder_checkpoint|event_log)\b/g;
const READER = { ip: "", caller: "" };
const NOW = 2_000_000_000;
const clock = { now: () => NOW, knownBlock: () => 0n };
/** 1 to 1,000, of which the newest open contracts have all. */
const PRICE = "((1 + i::bigint * 7919 % 1000) * 1000000)::numeric";
const CLIENT = `0x${"c1".repeat(20)}` as const;

const database = await useLargeDatabase(["working_contract", "vote"]);
/** The statement that read the last list. */
let asked: { text: string; values: unknown[] };
/** How many contracts the tables hold, if they hold those of `fill` alone. */
let filled: number | null = null;

beforeAll(() => {
  const { pool } = database;
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  pool.query = ((config: string | typeof asked, values?: unknown[]) => {
    if (typeof config !== "string" && config.text.includes("working_contract")) asked = config;
    return query(config, values);
  }) as typeof pool.query;
});

/**
 * Contract `i` was created in second `i`. The newest hundredth is open, about ten are disputed, and one client has ten.
 */
async function fill(count: number): Promise<void> {
  if (filled === count) return;
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
    price: PRICE,
    price_band: `1 + floor(log(2, ${PRICE}))`,
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
    title: "'Find needle ' || i || ' in a haystack'",
    task_description: "'Look.'",
    words:
      "array_to_tsvector(array['find', 'needle', i::text, 'in', 'a', 'haystack', 'look', case when i % 2 = 0 then 'even' else 'odd' end])",
    acceptance_criteria: `'["Found"]'`,
    award_method: "'open_tender'",
    initiator: "'client'",
    escrow_terms: "'{}'",
    opened_at: "now()",
  });
  await database.pool.query("vacuum analyze onchain.working_contract");
  await database.pool.query("vacuum analyze app.terms");
  filled = count;
}

interface Cost {
  rows: number;
  /** Blocks of 8 KiB, in memory or on disk. */
  blocks: number;
  plan: string;
}

async function costOf(filter: Partial<ContractFilter>): Promise<Cost> {
  const deps = { db: database.db, clock };
  const { data } = await listContracts(deps, { sort: "-createdAt", limit: PAGE, ...filter }, READER);
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
  const costs: Record<string, Record<string, Cost>> = {};
  for (const size of ["few", "many", "not vacuumed"] as const) {
    if (size !== "not vacuumed") await fill(size === "few" ? FEW : MANY);
    else {
      await database.pool.query("update onchain.working_contract set updated_block = updated_block");
      await database.pool.query("analyze onchain.working_contract");
    }
    const pages: Record<string, Partial<ContractFilter>> = {
      ...Object.fromEntries(SORTS.map((sort) => [`sort=${sort}`, { sort }])),
      "a cursor in the middle": { cursor: await cursorInTheMiddle() },
      "one client": { client: CLIENT },
      "status=open": { status: ["created"] },
      "status=disputed": { status: ["disputed"] },
      "q=needle": { q: "Needle haystack" },
      "q=needle, open, by price": { q: "needle", status: ["created"], sort: "budgetOrPrice" },
      "q=needle 7": { q: "needle 7" },
      "open, price 190 to 210": { status: ["created"], minPrice: 190_000_000n, maxPrice: 210_000_000n },
      "minPrice=100, by price": { minPrice: 100_000_000n, sort: "budgetOrPrice" },
    };
    for (const [name, filter] of Object.entries(pages)) {
      costs[name] ??= {};
      costs[name][size] = await costOf(filter);
    }
  }
  for (const [name, { few, ...more }] of Object.entries(costs)) {
    expect(few?.rows, name).toBeGreaterThan(0);
    for (const [size, { blocks, plan }] of Object.entries(more)) {
      if (SHOWS_PLANS) console.log(`${name}, ${size}: ${few?.blocks} and ${blocks} blocks\n${plan}\n`);
      expect(plan.replaceAll(ONE_ROW, ""), `${name}, ${size}`).not.toContain("Seq Scan");
      expect(blocks, `${name}, ${size}\n${plan}`).toBeLessThan(MOST_BLOCKS);
    }
  }
}, 1_800_000);

test("a range of prices lists the contracts of the range, in their order", async () => {
  await fill(MANY);
  for (const [minPrice, maxPrice] of [
    [1n, 5n],
    [16n, 17n],
    [67n, 68n],
    [200n, 300n],
    [999n, 5000n],
    [5n, 4n],
  ].map((range) => range.map((price) => price * 1_000_000n) as [bigint, bigint])) {
    const range: Partial<ContractFilter> = { status: ["created", "disputed"], minPrice, maxPrice };
    const { rows } = await database.pool.query<{ id: string }>(
      `select id from onchain.working_contract where phase in ('created', 'disputed') and price between $1 and $2
       order by created_at desc, id desc`,
      [minPrice, maxPrice],
    );
    const listed = await pagesOf(range, { pages: MANY });
    expect(listed.flat(), `${minPrice} to ${maxPrice}`).toEqual(rows.map(({ id }) => id));
  }
}, 600_000);

test("a page ends at a bounded length of texts, and the next continues behind them", async () => {
  await fill(MANY);
  const newest = (await pagesOf({ limit: 20 }, { pages: 1 })).flat();
  const write = (text: string) =>
    database.pool.query("update app.terms set task_description = $1, document = $1 where id = any($2)", [
      text,
      newest,
    ]);
  await write("字".repeat(65_536));
  const deps = { db: database.db, clock };
  const page = await listContracts(deps, { sort: "-createdAt", limit: 200 }, READER);
  const length = Buffer.byteLength(JSON.stringify(page));
  expect(length).toBeGreaterThan(PAGE_LENGTH / 2);
  expect(length).toBeLessThan(PAGE_LENGTH + 300_000);
  const pages = await pagesOf({ limit: 200 }, { pages: 5 });
  expect(pages.length).toBe(5);
  expect(pages.flat().slice(0, 20)).toEqual(newest);
  await write("Look.");
});

test("a page looks at a bounded number of rows, and the next continues behind them", async () => {
  await fill(MANY);
  const client = { client: CLIENT };
  const before = { all: await pagesOf({}), client: await pagesOf(client) };
  filled = null;
  // Newer than all contracts. Their terms are unknown here, and they name the victim as Client.
  await database.pool.query(`insert into onchain.working_contract select made.*
    from (select to_jsonb(c) as row from onchain.working_contract c limit 1) one, generate_series(1, ${WALK}) i,
      jsonb_populate_record(null::onchain.working_contract, row || jsonb_build_object(
        'id', '0x' || lpad(to_hex(i), 40, '0'), 'client', '${CLIENT}', 'created_at', ${2 * MANY} + i)) made`);
  await database.pool.query("analyze onchain.working_contract");

  expect(before.client.flat()).toHaveLength(10);
  for (const [filter, known] of [
    [{}, before.all],
    [client, before.client],
  ] as const) {
    const [empty, ...pages] = await pagesOf(filter, { pages: 3 });
    expect(empty).toEqual([]);
    expect(pages).toEqual(known);
  }
  const neverMeet = await pagesOf({ q: "even odd" }, { pages: MANY });
  expect(neverMeet.flat()).toEqual([]);
  expect(neverMeet).toHaveLength(Math.floor((MANY + WALK) / WALK) + 1);
}, 600_000);

test("a reader's searches wait for each other, 50 of them, and never for long before another reader's", async () => {
  const deps = { db: database.db, clock };
  let ended = 0;
  const search = (reader: string) =>
    listContracts(deps, { sort: "-createdAt", limit: PAGE, q: "needle" }, { ip: reader, caller: "" })
      .catch(({ code }: { code: string }) => code)
      .finally(() => {
        ended += 1;
      });
  const many = Array.from({ length: 60 }, () => search("one"));
  await search("other");
  expect(ended).toBeLessThan(20);
  const refused = (await Promise.all(many)).filter((result) => result === "unavailable");
  expect(refused).toHaveLength(60 - 1 - 50);
});

/** The ids of the first pages. In a transaction, because statistics are kept for each connection or transaction. */
function pagesOf(filter: Partial<ContractFilter>, { pages = 2 } = {}): Promise<string[][]> {
  return database.db.transaction(async (db) => {
    const deps = { db, clock };
    const found: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await listContracts(deps, { sort: "-createdAt", limit: PAGE, ...filter, cursor }, READER);
      found.push(page.data.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && found.length < pages);
    return found;
  });
}
