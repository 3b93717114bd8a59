import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { createNotifications, migrate } from "../../src/db/client.js";
import { masterKeyId, wrapSecret } from "../../src/master-key.js";
import { createWebhookSender } from "../../src/webhooks/sender.js";
import { useDatabase } from "../support/database.js";
import { listen } from "../support/listen.js";
import { startNameServer } from "../support/name-server.js";

const { pool, db } = await useDatabase();
await migrate(pool);

test("a webhook's name is resolved once for a turn, to the address that is counted and called; the time for it counts", async () => {
  const answered: string[] = [];
  const receiver = createServer((request, response) => {
    answered.push(String(request.url));
    response.writeHead(204).end();
  });
  const { url } = await listen(receiver);
  const names = await startNameServer(["127.0.0.1", "192.0.2.1"], { delayMs: 1_100 });
  const notifications = createNotifications({ pool });
  const masterKey = `0x${"11".repeat(32)}` as const;
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

  const secret = await wrapSecret(randomBytes(24), { masterKey, boundTo: { webhook: "one" } });
  await pool.query("insert into app.event_reader (name, position) values ('webhooks', 0)");
  await pool.query("insert into app.event_log (id, last_position) values (1, 2)");
  await pool.query(
    `insert into app.webhook (id, owner, url, wrapped_secret, master_key_id, sent_up_to, wanted_up_to)
     values ('one', '0x1', $1, $2, $3, 0, 0)`,
    [`http://fickle.example:${new URL(url).port}/hook`, secret, masterKeyId(masterKey)],
  );
  await pool.query(
    `insert into app.event (position, type, contract_id, agents, data, occurred_at, source)
     select i, 'contract.created', '0xc', '{}', '{}', now(), 'test ' || i from generate_series(1, 2) i`,
  );
  sender.start();

  await expect.poll(() => answered).toHaveLength(1);
  const isSlow = "select slow_until > now() as slow, failures from app.webhook";
  await expect.poll(async () => (await pool.query(isSlow)).rows).toEqual([{ slow: true, failures: 0 }]);
  expect(names.asked()).toBe(1);
});
