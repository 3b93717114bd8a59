import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { ADVISORY_LOCKS, createNotifications, migrate } from "../../src/db/client.js";
import { masterKeyId, wrapSecret } from "../../src/master-key.js";
import { createMatching, readMatchingLag } from "../../src/webhooks/deliveries.js";
import { createWebhookSender } from "../../src/webhooks/sender.js";
import { useDatabase } from "../support/database.js";
import { listen } from "../support/listen.js";
import { startNameServer } from "../support/name-server.js";

const { pool, db } = await useDatabase();
await migrate(pool);
const masterKey = `0x${"11".repeat(32)}` as const;

/** A log of so many events, one in each second after 1000, and a webhook for all of them. */
async function startLog(events: number, url: string): Promise<void> {
  const secret = await wrapSecret(randomBytes(24), { masterKey, boundTo: { webhook: "one" } });
  await pool.query("truncate app.event_log, app.event_reader, app.event, app.webhook");
  await pool.query("insert into app.event_reader (name, position) values ('webhooks', 0)");
  await pool.query("insert into app.event_log (id, last_position) values (1, $1)", [events]);
  await pool.query(
    `insert into app.webhook (id, owner, url, wrapped_secret, master_key_id, sent_up_to, wanted_up_to)
     values ('one', '0x1', $1, $2, $3, 0, 0)`,
    [url, secret, masterKeyId(masterKey)],
  );
  await pool.query(
    `insert into app.event (position, type, contract_id, agents, data, occurred_at, source)
     select i, 'contract.created', '0xc', '{}', '{}', to_timestamp(1000 + i), 'test ' || i
     from generate_series(1, $1::int) i`,
    [events],
  );
}

test("a webhook's name is resolved once for a turn, to the address that is counted and called; the time for it counts", async () => {
  const answered: string[] = [];
  const receiver = createServer((request, response) => {
    answered.push(String(request.url));
    response.writeHead(204).end();
  });
  const { url } = await listen(receiver);
  const names = await startNameServer(["127.0.0.1", "192.0.2.1"], { delayMs: 1_100 });
  const notifications = createNotifications({ pool });
  const sender = createWebhookSender({
    db,
    keys: { masterKey, masterKeysOld: [] },
    policy: { allowPrivate: true, nameServers: [names.address] },
    notifications,
    logger: { warn() {} },
  });
  onTestFinished(async () => {
    await sender.stop();
    await notifications.stop();
    names.close();
    receiver.close();
  });

  await startLog(2, `http://fickle.example:${new URL(url).port}/hook`);
  sender.start();

  await expect.poll(() => answered).toHaveLength(1);
  const isSlow = "select slow_until > now() as slow, failures from app.webhook";
  await expect.poll(async () => (await pool.query(isSlow)).rows).toEqual([{ slow: true, failures: 0 }]);
  expect(names.asked()).toBe(1);
});

test("matching gets ahead if events are too many for one statement: it takes half as many after each failure", async () => {
  await startLog(300, "http://127.0.0.1:9/");
  // As if more than 60 at a time took too long.
  await pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'too many'; end $$;
    create trigger too_many before update on app.webhook for each row
      when (new.wanted_up_to - old.wanted_up_to > 60) execute function refuse()`);
  const match = createMatching(db);
  const rounds = async (count: number) => {
    const all = [];
    for (let n = 0; n < count; n++) all.push(await match().catch(() => "failed"));
    return all;
  };
  expect(await rounds(2)).toEqual(["failed", "failed"]);
  expect(await readMatchingLag(db, 2000)).toBe(999);
  const other = await pool.connect();
  await other.query(`select pg_advisory_lock(${ADVISORY_LOCKS.webhookMatching})`);
  expect(await rounds(1), "another process matches").toEqual([false]);
  other.release(true);
  await expect.poll(() => rounds(1)).toEqual([true]);
  expect(await readMatchingLag(db, 2000)).toBe(949);
  expect(await rounds(3), "from all again").toEqual(["failed", "failed", true]);
  expect((await rounds(10)).at(-1)).toBe(false);
  expect(await readMatchingLag(db, 2000)).toBe(0);
});
