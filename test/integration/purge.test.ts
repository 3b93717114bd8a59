/** Rows one minute inside and one minute outside of each limit of docs/limits.md: the purge keeps the first, deletes the second. */
import { beforeAll, expect, test } from "vitest";
import { createDatabase, migrate } from "../../src/db/client.js";
import { purgeAll } from "../../src/keeper/purge.js";
import { useDatabase, waitingForLock } from "../support/database.js";

interface Purged {
  table: string;
  /** Column with the row's name. */
  name: string;
  columns: string;
  /** Rows by name: the other columns as SQL, in which `id` is the name. Null if the purge itself inserts it. */
  kept: Record<string, string | null>;
  gone: Record<string, string>;
  /** Deleted together with rows of another table. */
  follows?: boolean;
}

const younger = (limit: string) => `now() - interval '${limit}' + interval '1 minute'`;
const older = (limit: string) => `now() - interval '${limit}' - interval '1 minute'`;
const textsOf = (quotedAt: string, openedAt = "null") =>
  `'', id, '', '', '', '[]', '', '', '{}', ${quotedAt}, ${openedAt}`;
const attempt = (expiredAt: string) => `'', id, '{}', ${expiredAt}`;
const operation = (more: string) => `'create', id, '', 0, ${more}`;
const webhookOf = (owner: string, disabledAt: string, createdAt = "now()", succeededAt = "null") =>
  `${owner}, '', '', '', 0, 0, ${disabledAt}, ${createdAt}, ${succeededAt}`;
const REFERENCE = "'supplementaryMaterials', '', ''";
/** Rows with these names and the same values. */
const alike = <T extends string | null>(values: T, ...names: string[]): Record<string, T> =>
  Object.fromEntries(names.map((name) => [name, values]));

const PURGES: Purged[] = [
  {
    table: "api_key",
    name: "id",
    columns: "address, hash, revoked_at",
    kept: { active: "'', id, null", "just revoked": `'', id, ${younger("90 days")}` },
    gone: { revoked: `'', id, ${older("90 days")}` },
  },
  {
    table: "key_release",
    name: "contract_id",
    columns: "field, released_to, role, released_at",
    kept: { "last year's": `'', '', '', ${younger("1 year")}` },
    gone: { older: `'', '', '', ${older("1 year")}` },
  },
  {
    table: "gas_account",
    name: "address",
    columns: "used, owed, earned, owed_at",
    kept: {
      recent: `1, 1, 0, ${younger("7 days")}`,
      earned: `1, 1, 1, ${older("1 year")}`,
      "*": `1, 1, 0, ${older("1 year")}`,
    },
    gone: { idle: `1, 1, 0, ${older("7 days")}` },
  },
  {
    table: "operation",
    name: "escrow",
    columns: "kind, target, data, gas_limit, state, caller, published_at, updated_at",
    kept: {
      "just rejected": operation(`'rejected', '', null, ${younger("1 day")}`),
      "the keeper's": operation(`'rejected', null, null, ${younger("30 days")}`),
      published: operation(`'rejected', '', now(), ${older("1 year")}`),
      applied: operation(`'final', '', now(), ${older("1 year")}`),
      relayed: operation(`'final', id, now(), ${older("1 year")}`),
      "being paid": operation(`'queued', '', null, ${older("1 year")}`),
      "refused payment": operation("'rejected', '', null, now()"),
      "stored with an action": operation(`'rejected', null, null, ${younger("1 day")}`),
      refunded: "'refund-direct-transfer', '', '', 0, 'queued', '', null, now()",
    },
    gone: {
      rejected: operation(`'rejected', '', null, ${older("1 day")}`),
      "the keeper's old": operation(`'rejected', null, null, ${older("30 days")}`),
      "refused with its action": operation(`'rejected', null, null, ${older("1 day")}`),
    },
  },
  {
    table: "webhook",
    name: "id",
    columns:
      "owner, url, wrapped_secret, master_key_id, sent_up_to, wanted_up_to, disabled_at, created_at, last_success_at",
    kept: {
      enabled: webhookOf("id", "null", younger("90 days")),
      "just disabled": webhookOf("id", younger("90 days")),
      "a client": webhookOf("id", "null", older("90 days")),
      delivered: webhookOf("id", "null", older("1 year"), younger("90 days")),
    },
    gone: {
      disabled: webhookOf("id", older("90 days")),
      idle: webhookOf("id", "null", older("90 days")),
      failing: webhookOf("id", "null", older("1 year"), older("90 days")),
    },
  },
  {
    table: "webhook_retry",
    name: "webhook_id",
    columns: "position, attempts",
    kept: { enabled: "1, 1", "just disabled": "1, 1" },
    gone: { disabled: "1, 1", idle: "1, 1" },
    follows: true,
  },
  {
    table: "profile",
    name: "agent",
    columns: "created_at",
    kept: {
      recent: younger("90 days"),
      "a worker": older("1 year"),
      ...alike(older("90 days"), "a client", "a staker", "a voter", "relayed", "paying"),
    },
    gone: { idle: older("90 days") },
  },
  {
    table: "terms",
    name: "id",
    columns: `caller, body_hash, document, title, task_description, acceptance_criteria, award_method,
      initiator, escrow_terms, first_quoted_at, opened_at`,
    kept: {
      quoted: textsOf(younger("40 minutes")),
      opened: textsOf(older("1 year"), "now()"),
      ...alike(textsOf(older("40 minutes")), "being paid", "opened by a stranger", "applied"),
    },
    gone: alike(
      textsOf(older("40 minutes")),
      ...["unpaid", "refused payment", "refunded", "deployed", "quoted again"],
    ),
  },
  {
    table: "reference_key",
    name: "contract_id",
    columns: "field, wrapped_key, master_key_id",
    kept: alike(REFERENCE, "quoted", "being paid", "opened", "opened by a stranger"),
    gone: alike(REFERENCE, "unpaid", "refused payment"),
    follows: true,
  },
  {
    table: "expired_attempt",
    name: "id",
    columns: "caller, body_hash, escrow_terms, expired_at",
    kept: {
      recent: attempt(younger("30 days")),
      ...alike(attempt(older("30 days")), "to be settled", "with a deferred payout", "quoted again"),
      ...alike(null, "unpaid", "refused payment", "refunded", "deployed"),
    },
    gone: alike(attempt(older("30 days")), "old", "never paid", "settled"),
  },
];
const CHAIN = `
  create schema onchain;
  create table onchain._ponder_meta as select 'app' as key, '{"is_ready": 1}'::jsonb as value;
  create table onchain._ponder_checkpoint as select
    extract(epoch from now())::bigint || repeat('0', 31) || '7' || repeat('0', 33) as latest_checkpoint;
  insert into app.event_log (id, last_position, scanned_block) values (1, 0, 7);
  create table onchain.working_contract (id text, phase text, settled boolean, client text, worker text);
  insert into onchain.working_contract values
    ('opened by a stranger', 'created', false), ('applied', 'created', false), ('deployed', 'none', false), ('never paid', 'none', false),
    ('to be settled', 'created', false), ('settled', 'declined', true), ('with a deferred payout', 'declined', true);
  insert into onchain.working_contract values ('', 'created', true, 'a client', 'a worker');
  create table onchain.stake as select 'a staker' as agent;
  create table onchain.vote as select 'a voter' as backup_agent;
  create table onchain.deferred_payout (contract_id text, payee text, amount numeric);
  insert into onchain.deferred_payout values
    ('settled', '', 0), ('with a deferred payout', '', 0), ('with a deferred payout', ' ', 1)`;

const database = await useDatabase();

beforeAll(async () => {
  await migrate(database.pool);
  await database.pool.query(CHAIN);
  for (const purged of PURGES) {
    for (const [name, values] of Object.entries({ ...purged.kept, ...purged.gone })) {
      if (values !== null) await insert(purged, [name], values);
    }
  }
  await database.pool.query(`
    update app.operation set signed = true where caller = 'relayed';
    update app.operation set reason = 'WrongStatus' where escrow in ('stored with an action', 'refused with its action');
    update app.operation set caller = 'paying', nonce = '' where escrow = 'being paid'`);
  await purgeAll(database.db);
});

async function insert({ table, name, columns }: Purged, names: string[], values: string): Promise<void> {
  const text = `insert into app.${table} (${name}, ${columns}) select id, ${values} from unnest($1::text[]) id`;
  await database.pool.query(text, [names]);
}

async function namesIn(
  { table, name }: Pick<Purged, "table" | "name">,
  condition = "true",
): Promise<string[]> {
  const text = `select ${name} as name from app.${table} where ${condition} order by 1`;
  return (await database.pool.query<{ name: string }>(text)).rows.map((row) => row.name);
}

const tables = PURGES.map((purged) => ({ ...purged, expected: Object.keys(purged.kept).sort() }));
const statements = tables.filter(({ follows }) => !follows);
const insertOld = (purged: Purged, names: string[]) =>
  insert(purged, names, Object.values(purged.gone)[0] as string);

test.each(tables)("of $table, just the rows inside the limits remain", async (purged) => {
  expect(await namesIn(purged)).toEqual(purged.expected);
});

test("an attempt whose escrow was opened becomes an open contract, whoever opened it", async () => {
  const opened = await namesIn({ table: "terms", name: "id" }, "opened_at is not null");
  expect(opened).toEqual(["applied", "opened", "opened by a stranger"]);
});

test.each(statements)("of $table, 500 are deleted at a time", async (purged) => {
  const many = Array.from({ length: 501 }, (_, i) => `one of many ${purged.table} ${i}`);
  const remaining = () => namesIn(purged, `${purged.name} like 'one of many ${purged.table} %'`);
  await insertOld(purged, many);
  expect(await purgeAll(database.db)).toBe(true);
  expect(await remaining()).toHaveLength(1);
  expect(await purgeAll(database.db)).toBe(false);
  expect(await remaining()).toEqual([]);
});

test.each(statements.filter(({ table }) => ["terms", "expired_attempt", "profile"].includes(table)))(
  "of $table, none is deleted while the index is older than what it has shown",
  async (purged) => {
    const name = `a waiting ${purged.table}`;
    const remaining = () => namesIn(purged, `${purged.name} = '${name}'`);
    await insertOld(purged, [name]);
    await database.pool.query("update app.event_log set scanned_block = 8");
    await purgeAll(database.db);
    expect(await remaining()).toEqual([name]);
    await database.pool.query("update app.event_log set scanned_block = 7");
    await purgeAll(database.db);
    expect(await remaining()).toEqual([]);
  },
);

test("no attempt's texts are deleted before the index has come to its end: someone can have opened its escrow", async () => {
  const purged = statements.find(({ table }) => table === "terms") as Purged;
  const remaining = () => namesIn(purged, "id = 'opened unseen'");
  const timeOfIndex = (time: string) =>
    database.pool.query(`update onchain._ponder_checkpoint set latest_checkpoint = overlay(
      latest_checkpoint placing extract(epoch from ${time})::bigint::text from 1 for 10)`);
  await insertOld(purged, ["opened unseen"]);
  await timeOfIndex("now() - interval '2 minutes'");
  await purgeAll(database.db);
  expect(await remaining()).toEqual(["opened unseen"]);
  await timeOfIndex("now()");
  await purgeAll(database.db);
  expect(await remaining()).toEqual([]);
});

test.each([
  ["terms", "first_quoted_at = now()"],
  ["webhook", "disabled_at = null"],
  ["gas_account", "owed_at = now()"],
])("of %s, none is deleted that a call needs again at this moment", async (table, revival) => {
  const purged = statements.find((one) => one.table === table) as Purged;
  const name = `a revived ${table}`;
  await insertOld(purged, [name]);
  const call = await database.pool.connect();
  try {
    await call.query("begin");
    await call.query(`update app.${table} set ${revival} where ${purged.name} = $1`, [name]);
    const purging = purgeAll(database.db);
    await expect.poll(() => waitingForLock(database.pool)).toBe(1);
    await call.query("commit");
    await purging;
  } finally {
    await call.query("rollback");
    call.release();
  }
  expect(await namesIn(purged, `${purged.name} = '${name}'`)).toEqual([name]);
});

test("a purge that fails stops no other, however often it fails, and is reported once the others have no more to do", async () => {
  const impatient = createDatabase(database.url, { statementTimeoutMs: 1_000 });
  const terms = statements.find(({ table }) => table === "terms") as Purged;
  const many = Array.from({ length: 501 }, (_, i) => `beside a failing purge ${i}`);
  await insertOld(terms, many);
  const remaining = async () => (await namesIn(terms, `id like 'beside a failing purge %'`)).length;
  const other = await database.pool.connect();
  try {
    await other.query("begin; lock table app.operation in share row exclusive mode");
    expect(await purgeAll(impatient.db)).toBe(true);
    expect(await remaining()).toBe(1);
    await expect(purgeAll(impatient.db)).rejects.toThrow("statement timeout");
    expect(await purgeAll(impatient.db, AbortSignal.abort())).toBe(false);
    expect(await remaining()).toBe(0);
  } finally {
    await other.query("rollback");
    other.release();
    await impatient.pool.end();
  }
});
