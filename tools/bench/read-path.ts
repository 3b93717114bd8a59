/** Reads under load: one contract, and lists over many. */
import pg from "pg";
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import { describeLoad, type Load, runLoad, send } from "./load.js";

export interface ReadResult extends Load {
  call: string;
  /** The same query and rows from bare Hono and pg, measured right after. */
  bare?: Load;
}

/** Contracts that the lists search. */
export const SEEDED = 100_000;
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

/** Measures Get and List with 32 concurrent readers, over {@link SEEDED} contracts. */
export async function measureReads(
  bed: Bed,
  { id, reader, seconds, report }: { id: string; reader: Agent; seconds: number; report(line: string): void },
): Promise<ReadResult[]> {
  await seed(bed, id);
  const headers = { authorization: `Bearer ${reader.apiKey}` };
  const paths = {
    Get: `/${id}`,
    ...Object.fromEntries(
      Object.entries(LISTS).map(([name, query]) => [name, query.replace("{client}", reader.address)]),
    ),
  };
  const bare = await bed.startBare();
  const measure = (url: string, path: string) =>
    runLoad({ concurrency: CONCURRENCY, seconds }, async () => {
      const startedAt = performance.now();
      const { status } = await send(`${url}/v1/contracts${path}`, { headers });
      return { ms: performance.now() - startedAt, failure: status === 200 ? null : String(status) };
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

/** Copies a contract's row and terms, with other ids, prices, parties and texts. Triggers are off. */
async function seed({ network }: Bed, id: string): Promise<void> {
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
  } finally {
    await client.end();
  }
}
