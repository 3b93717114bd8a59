/** Reads under load: one contract, and lists over many; and how fresh they are. */
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import { type FloodResult, measureFloods } from "./flood.js";
import { describeLoad, get, type Load, percentiles, report, runLoad } from "./load.js";
import { createContract } from "./write-path.js";

export interface ReadResult extends Load {
  call: string;
  /** The same query and rows from bare Hono and pg, measured right after. */
  bare?: Load;
}

/** Contracts that the lists search. */
export const SEEDED = 100_000;
/** Different contracts that Get reads. */
const READ = 1000;
const CONCURRENCY = 32;

const LISTS = {
  "List, newest 50": "?limit=50",
  "List, open, price 10 to 20": "?status=open&minPrice=10&maxPrice=20",
  "List, one client": "?client={client}",
  "Search, a rare word": "?q=needle+77",
  "Search, common words": "?q=needle+haystack",
} as const;

/** The calls that {@link Bed.startBare} serves too. */
const BARE = new Set(["Get", "List, newest 50"]);

/** Measures how fresh reads are, the reads themselves, and lists during floods. */
export async function measureReading(
  bed: Bed,
  seconds: number,
): Promise<{ freshness: Freshness; reads: ReadResult[]; floods: FloodResult[] }> {
  const [reader] = await bed.newAgents(1);
  if (reader === undefined) throw new Error("There is no agent to read with.");
  const freshness = await measureFreshness(bed, reader);
  await bed.mine("automine");
  const { failure } = await createContract(bed, reader);
  if (failure !== null) throw new Error(failure);
  const { data } = await reader.get<{ id: string }[]>("/v1/contracts?limit=1");
  const reads = await measureReads(bed, { id: data[0]?.id ?? "", reader, seconds });
  return { freshness, reads, floods: await measureFloods(bed, seconds) };
}

/** Measures Get, of {@link READ} contracts in turn, and List with 32 concurrent readers, over {@link SEEDED} contracts. */
async function measureReads(
  bed: Bed,
  { id, reader, seconds }: { id: string; reader: Agent; seconds: number },
): Promise<ReadResult[]> {
  const ids = await seed(bed, id);
  const paths = {
    Get: "/{id}",
    ...Object.fromEntries(
      Object.entries(LISTS).map(([name, query]) => [name, query.replace("{client}", reader.address)]),
    ),
  };
  const bare = await bed.startBare();
  let calls = 0;
  const measure = (url: string, path: string) =>
    runLoad({ concurrency: CONCURRENCY, seconds }, () => {
      const called = path.replace("{id}", ids[calls++ % ids.length] ?? "");
      return get(`${url}/v1/contracts${called}`, reader.apiKey);
    });
  const results: ReadResult[] = [];
  for (const [call, path] of Object.entries(paths)) {
    const load = await measure(bed.service.url, path);
    report(`${call}: ${describeLoad(load)}`);
    const result: ReadResult = { call, ...load };
    if (BARE.has(call)) {
      result.bare = await measure(bare.url, path);
      report(`${call}, bare: ${describeLoad(result.bare)}`);
    }
    results.push(result);
  }
  await bare.end();
  return results;
}

/** Copies a contract's row and terms, with other ids, prices, parties and texts. Triggers are off. Returns {@link READ} ids. */
async function seed({ network }: Bed, id: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: network.databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ schema: string }>(
      "select table_schema as schema from information_schema.tables where table_name = 'working_contract' and table_type = 'BASE TABLE' and table_schema like 'onchain%'",
    );
    const table = `"${rows[0]?.schema}".working_contract`;
    await client.query("set session_replication_role = replica");
    await client.query("create temporary table made as select * from app.terms where false");
    await client.query(`create temporary table mined as select * from ${table} where false`);
    const address = "'0x' || substr(encode(sha256((i || 'contract')::bytea), 'hex'), 1, 40)";
    await client.query(
      `insert into mined select c.* from ${table} c, generate_series(1, ${SEEDED}) where c.id = $1`,
      [id],
    );
    await client.query(
      `insert into made select t.* from app.terms t, generate_series(1, ${SEEDED}) where t.id = $1`,
      [id],
    );
    for (const copy of ["mined", "made"]) {
      await client.query(`alter table ${copy} add column i serial`);
      await client.query(`update ${copy} set id = ${address}`);
    }
    await client.query(
      `update mined set price = 1000000 + i * 1000, price_band = 1 + floor(log(2, 1000000 + i * 1000)), created_at = created_at - i,
        client = case when i % 1000 = 0 then client else '0x' || substr(encode(sha256((i % 5000)::text::bytea), 'hex'), 1, 40) end`,
    );
    await client.query(
      "update made set body_hash = i::text, title = 'Find needle ' || i || ' in a haystack', words = array_to_tsvector(array['find', 'needle', i::text, 'in', 'a', 'haystack']), opened_at = now()",
    );
    for (const [copy, target] of [
      ["mined", table],
      ["made", "app.terms"],
    ] as const) {
      await client.query(`alter table ${copy} drop column i`);
      await client.query(`insert into ${target} select * from ${copy}`);
      await client.query(`analyze ${target}`);
    }
    const made = await client.query<{ id: string }>(`select id from made limit ${READ}`);
    return made.rows.map((row) => row.id);
  } finally {
    await client.end();
  }
}

export type Freshness = Awaited<ReturnType<typeof measureFreshness>>;

const BLOCKS = 20;
const POLL_MS = 2;

/** Milliseconds from the request to mine a block to the visible row, and to the response of the paid call. */
async function measureFreshness(bed: Bed, agent: Agent) {
  const { testClient, publicClient, network } = bed;
  await bed.mine("automine");
  await testClient.setAutomine(false);
  const client = new pg.Client({ connectionString: network.databaseUrl });
  await client.connect();
  const [row, answer]: [number[], number[]] = [[], []];
  try {
    for (let block = 0; block < BLOCKS; block++) {
      let answeredAt = 0;
      const created = createContract(bed, agent).then(({ failure }) => {
        if (failure !== null) throw new Error(failure);
        answeredAt = performance.now();
      });
      await poll(async () => (await testClient.getTxpoolStatus()).pending > 0);
      const minedAt = performance.now();
      await testClient.mine({ blocks: 1 });
      const number = await publicClient.getBlockNumber({ cacheTime: 0 });
      await poll(async () => {
        const { rowCount } = await client.query(
          "select 1 from onchain.escrow_event where block_number = $1",
          [number.toString()],
        );
        return rowCount !== 0;
      });
      row.push(performance.now() - minedAt);
      await created;
      answer.push(answeredAt - minedAt);
    }
  } finally {
    await client.end();
  }
  return { row: percentiles(row), answer: percentiles(answer) };
}

async function poll(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await delay(POLL_MS);
}
