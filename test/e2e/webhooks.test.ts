/** Webhooks from registration to delivery, with targets that respond, fail, hang and recover. */
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { eq } from "drizzle-orm";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { parseConfig } from "../../src/config.js";
import { webhook } from "../../src/db/schema.js";
import type { EventView } from "../../src/events/log.js";
import type { WebhookView } from "../../src/features/webhooks/webhooks.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { masterKeyId, wrapSecret } from "../../src/master-key.js";
import {
  type Lane,
  postpone,
  recordOutcome,
  type Task,
  WEBHOOKS_DUE,
  type WebhookRow,
} from "../../src/webhooks/deliveries.js";
import { freePort } from "../../tools/local/ports.js";
import { type Agent, type ApiResponse, signIn } from "../support/agent.js";
import { byWallClock } from "../support/chain-time.js";
import { created, delivered, HOUR, matched, newPair, ok, signedChallenge } from "../support/contracts.js";
import { allEvents, eventually, untilEvent } from "../support/event-log.js";
import { listen } from "../support/listen.js";
import { useWorld } from "../support/world.js";

type NewWebhook = WebhookView & { secret: string };
const PATH = "/v1/agents/me/webhooks";

const world = await useWorld();
const { client, worker } = await newPair(world);
const open: { close(): void }[] = [];
afterEach(async () => {
  for (const receiver of open.splice(0)) receiver.close();
  await world.pool.query("delete from app.webhook");
  await world.pool.query("delete from app.webhook_retry");
});

interface Received {
  headers: Record<string, string>;
  body: string;
  event: EventView;
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

async function startReceiver(host = "127.0.0.1") {
  const received: Received[] = [];
  let respond = (response: ServerResponse, _received: Received): unknown => response.writeHead(204).end();
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const message = { headers: request.headers as Record<string, string>, body, event: JSON.parse(body) };
    received.push(message);
    respond(response, message);
  });
  const { url } = await listen(server, host);
  const receiver = {
    url: `${url}/hook`,
    received,
    /** Sets the response to the next calls. */
    answer(next: typeof respond): void {
      respond = next;
    },
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
  open.push(receiver);
  return receiver;
}

const send = <T>(agent: Agent, method: string, path: string, body?: unknown): Promise<ApiResponse<T>> =>
  agent.call<T>(method, path, { body });

async function register(agent: Agent, body: Record<string, unknown>): Promise<NewWebhook> {
  const answer = await send<NewWebhook>(agent, "POST", PATH, body);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.data;
}

/** Concurrent calls to targets that are slow or unknown. */
const SLOW_LANE = 50;

/** Webhooks of strangers to all events, each owner's at its own IP address if the target listens at all. */
async function registerMany(url: string, { owners, each }: { owners: number; each: number }): Promise<void> {
  const masterKey = `0x${"11".repeat(32)}` as const;
  for (let index = 0; index < owners * each; index += 1) {
    const owner = index % owners;
    const id = `slow ${index}`;
    const target = url.replace("0.0.0.0", `127.0.1.${owner + 1}`);
    const wrapped = await wrapSecret(new Uint8Array(24), { masterKey, boundTo: { webhook: id } });
    await world.pool.query(
      `insert into app.webhook (id, owner, url, wrapped_secret, master_key_id, sent_up_to, wanted_up_to)
       select $1, $2, $3, $4, $5, last_position, last_position from app.event_log`,
      [id, `0x${String(owner).padStart(40, "5")}`, target, wrapped, masterKeyId(masterKey)],
    );
  }
}

const read = async (agent: Agent, id: string): Promise<WebhookView> =>
  (await send<WebhookView>(agent, "GET", `${PATH}/${id}`)).data;

const typesAt = ({ received }: Receiver): string[] => received.map(({ event }) => event.type);

/** As if the webhook's pause after its failures were over, which the senders hear at once. */
async function skipRest(id: string): Promise<void> {
  await world.pool.query(
    "update app.webhook set next_attempt_at = now(), paused_until = null where id = $1 and leased_until is null",
    [id],
  );
  await world.pool.query("select pg_notify($1, '')", [WEBHOOKS_DUE]);
}

/** As if the time of every retry had come. */
async function skipWaits(id: string): Promise<void> {
  await world.pool.query("update app.webhook_retry set next_attempt_at = now() where webhook_id = $1", [id]);
  await skipRest(id);
}

/** As if its target had begun to fail that much earlier, with so many attempts since. */
async function failEarlier(id: string, { seconds, failures }: { seconds: number; failures?: number }) {
  await world.pool.query(
    `update app.webhook set failing_since = failing_since - make_interval(secs => $2),
       failures = coalesce($3, failures) where id = $1`,
    [id, seconds, failures],
  );
}

describe("a webhook", () => {
  test("is sent the events that concern its owner, signed, as in the log", async () => {
    const receiver = await startReceiver();
    const { secret } = await register(worker, { url: receiver.url });
    await created(world, client);
    const matchDeadline = await world.inSeconds(2 * HOUR);
    const { id } = await matched(world, { client, worker }, { matchDeadline });
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));
    await eventually("it is sent", async () => typesAt(receiver).includes("contract.delivered"));

    expect(typesAt(receiver)).toEqual(["contract.accepted", "contract.delivered"]);
    const log = await allEvents(worker, `contractId=${id}&agent=${worker.address}`);
    expect(receiver.received.map(({ event }) => event)).toEqual(
      log.filter(({ type }) => type !== "contract.created"),
    );
    for (const { headers, body, event } of receiver.received) {
      expect(headers["content-type"]).toBe("application/json");
      expect(headers["webhook-id"]).toBe(`evt_${event.id}`);
      const verify = (payload: string) => byWallClock(() => new Webhook(secret).verify(payload, headers));
      expect(verify(body)).toEqual(event);
      expect(() => verify(body.replace("contract", "contrakt"))).toThrow("No matching signature found");
    }
  });

  test("waits without a failure while no master key opens its secret", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url });
    const rowOf = async () =>
      (await world.pool.query("select * from app.webhook where id = $1", [id])).rows[0];
    const set = (secret: string) =>
      world.pool.query("update app.webhook set wrapped_secret = $2, leased_until = null where id = $1", [
        id,
        secret,
      ]);
    const { wrapped_secret } = await rowOf();
    const lost = { masterKey: `0x${"22".repeat(32)}`, boundTo: { webhook: id } } as const;
    await set(await wrapSecret(new Uint8Array(32), lost));
    await created(world, client);
    // The turn that fails gives its lease up with time alone.
    await eventually("it is leased", async () => (await rowOf()).leased_until !== null);
    const waiting = await rowOf();

    await set(wrapped_secret);
    await eventually("it is sent", async () => typesAt(receiver).includes("contract.created"));
    for (const row of [waiting, await rowOf()])
      expect(row).toMatchObject({ failures: 0, last_error: null, disabled_at: null });
  });

  test("is sent the events that it chose: others' events, one contract's, or some types", async () => {
    const [everything, one, some] = [await startReceiver(), await startReceiver(), await startReceiver()];
    const stranger = await world.newAgent();
    const first = await created(world, client);
    await untilEvent(client, first.id, "contract.created");
    await register(stranger, { url: everything.url, agent: null });
    await register(stranger, { url: one.url, agent: null, contractId: first.id });
    await register(client, { url: some.url, types: ["payout.paid", "key.*"] });
    // As after a reorg.
    for (const type of ["contract.created", "payout.paid"])
      await world.query(
        `insert into app.event (type, contract_id, agents, data, occurred_at, source)
         values ('event.reverted', $1, array[$2], jsonb_build_object('type', $3::text), now(), 'revert:' || $3)`,
        [first.id, client.address, type],
      );

    const { id } = await delivered(world, { client, worker });
    ok(await client.get(`/v1/contracts/${id}/keys`));
    ok(await client.post(`/v1/contracts/${first.id}/cancel`));
    await eventually(
      "all is sent",
      async () => typesAt(some).length === 3 && typesAt(everything).length >= 7,
    );
    expect(typesAt(some).sort()).toEqual(["event.reverted", "key.released", "payout.paid"]);
    const reverted = some.received.filter(({ event }) => event.type === "event.reverted");
    expect(reverted.map(({ event }) => event.data)).toEqual([{ type: "payout.paid" }]);
    expect(typesAt(everything), "key releases go to the parties only").not.toContain("key.released");
    await eventually("the one contract is reported", async () => typesAt(one).length >= 3);
    expect(new Set(one.received.map(({ event }) => event.contractId))).toEqual(new Set([first.id]));
  });

  test("is visible only to its owner, can be changed and deleted, and shows its secret once", async () => {
    const receiver = await startReceiver();
    const created = await register(client, { url: receiver.url, description: "mine", types: ["contract.*"] });
    expect(created.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const { secret, ...shown } = created;
    expect(shown).toMatchObject({
      url: receiver.url,
      description: "mine",
      agent: client.address,
      contractId: null,
      status: "active",
      pendingRetries: 0,
      givenUp: [],
    });
    expect(shown.types).toContain("contract.settled");
    const list = await send<WebhookView[]>(client, "GET", PATH);
    expect(list.data).toEqual([shown]);
    expect(JSON.stringify(list.body)).not.toContain(secret);

    for (const [method, path, body] of [
      ["GET", created.id, undefined],
      ["PATCH", created.id, { description: "theirs" }],
      ["DELETE", created.id, undefined],
      ["POST", `${created.id}/replay`, { after: "0" }],
    ] as const) {
      expect((await send(worker, method, `${PATH}/${path}`, body)).status, method).toBe(404);
    }
    const changed = await send<WebhookView>(client, "PATCH", `${PATH}/${created.id}`, {
      description: null,
      types: null,
    });
    expect(changed.data).toEqual({ ...shown, description: null, types: null });
    expect((await send(client, "DELETE", `${PATH}/${created.id}`)).data).toEqual({ id: created.id });
    expect((await send(client, "GET", `${PATH}/${created.id}`)).status).toBe(404);
  });

  test("is switched off with its address's last key, and on again with a new one", async () => {
    const agent = await world.newAgent();
    const { url } = world;
    const { id } = await register(agent, { url: "http://127.0.0.1:9/" });
    expect((await read(agent, id)).status).toBe("active");

    const proof = await signedChallenge(agent, agent);
    ok(await agent.post(`/v1/agents/${agent.address}/api-key/revoke`, proof));

    const again = await signIn({ url, chainId: world.deployment.chainId, account: agent.account });
    expect(await read(again, id)).toMatchObject({
      status: "disabled",
      disabledReason: "all API keys were revoked",
    });
    const { data } = await send<WebhookView>(again, "PATCH", `${PATH}/${id}`, { disabled: false });
    expect(data.status).toBe("active");
  });

  test("is not created by a call whose key was revoked meanwhile", async () => {
    const agent = await world.newAgent();
    const proof = await signedChallenge(agent, agent);
    const waits = async (statement: string) =>
      (
        await world.query("select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ $1", [
          statement,
        ])
      ).length;
    const holder = await world.pool.connect();
    try {
      await holder.query("begin; lock table app.webhook in access exclusive mode");
      const creating = agent.post(PATH, { url: "http://127.0.0.1:9/" });
      await expect.poll(() => waits("select .*owner.* from .app.*webhook")).toBeGreaterThan(0);
      const revoking = agent.post(`/v1/agents/${agent.address}/api-key/revoke`, proof);
      await expect.poll(() => waits("^select pg_advisory_xact_lock.* from ")).toBeGreaterThan(0);
      await holder.query("commit");
      ok(await revoking);
      expect((await creating).status).toBe(401);
    } finally {
      holder.release();
    }
    expect(await world.query("select 1 from app.webhook where owner = $1", [agent.address])).toEqual([]);
  });

  test("is for parties and stakers only if it wants events of others, once there are 2,000, and for no one at 10,000", async () => {
    await matched(world, { client, worker });
    const poster = await world.newAgent({ usd: "100" });
    await created(world, poster);
    const stranger = await world.newAgent();
    const url = "http://127.0.0.1:9/";
    const { id } = await register(stranger, { url });
    /** Webhooks for all events, from the far future on. */
    const watch = (from: number, to: number) =>
      world.pool.query(
        `insert into app.webhook (id, owner, url, wrapped_secret, master_key_id, sent_up_to, wanted_up_to)
         select 'watcher ' || i, '0x' || i, '', '', '', 1e15, 1e15 from generate_series($1::int, $2::int) i`,
        [from, to],
      );
    const refuses = async (agent: Agent, method: string, path: string, body: Record<string, unknown>) => {
      const refused = await send(agent, method, path, body);
      expect(refused, method).toMatchObject({ status: 429, error: { code: "too_many_webhooks" } });
    };
    await watch(1, 2000);
    await refuses(stranger, "POST", PATH, { url, agent: null });
    await refuses(stranger, "POST", PATH, { url, agent: client.address });
    await refuses(stranger, "PATCH", `${PATH}/${id}`, { agent: null });
    await refuses(poster, "POST", PATH, { url, agent: null });
    await register(stranger, { url });
    const { id: allowed } = await register(worker, { url, agent: null });
    await watch(2001, 9999);
    await refuses(client, "POST", PATH, { url, agent: null });
    ok(await send(worker, "PATCH", `${PATH}/${allowed}`, { disabled: true }));
    await register(client, { url, agent: null });
    await refuses(worker, "PATCH", `${PATH}/${allowed}`, { disabled: false });
    await register(client, { url });
  });

  test("is rejected if it makes no sense, or beyond ten per address", async () => {
    const greedy = await world.newAgent();
    for (const body of [
      {},
      { url: "nonsense" },
      { url: "ftp://example.com" },
      { url: "http://127.0.0.1/", types: ["contract.nothing"] },
      { url: "http://127.0.0.1/", types: [] },
      { url: "http://127.0.0.1/", agent: "0x1" },
      { url: `http://127.0.0.1/${"x".repeat(2048)}` },
    ]) {
      expect((await send(greedy, "POST", PATH, body)).status, JSON.stringify(body)).toBe(400);
    }
    const all = await Promise.all(
      Array.from({ length: 12 }, () => send(greedy, "POST", PATH, { url: "http://127.0.0.1:9/" })),
    );
    expect(all.map(({ status }) => status).sort()).toEqual([...Array(10).fill(201), 429, 429]);
    expect(all.find(({ status }) => status === 429)?.error?.code).toBe("too_many_webhooks");
    expect((await fetch(`${world.url}${PATH}`)).status).toBe(401);
  });
});

describe("a target that fails", () => {
  test("gets the event again with the same id until it accepts it, and meanwhile the events after it", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    receiver.answer((response) => response.writeHead(500).end());
    const first = await created(world, client);
    await eventually("the first attempt failed", async () => (await read(client, id)).status === "failing");
    expect(await read(client, id)).toMatchObject({
      status: "failing",
      lastStatus: 500,
      lastError: "the target responded with 500",
      lastSuccessAt: null,
      pendingRetries: 1,
    });
    receiver.answer((response, { event }) =>
      response.writeHead(event.contractId === first.id ? 500 : 200).end(),
    );
    const second = await created(world, client);
    const attemptsAt = (contractId: string) =>
      receiver.received.filter(({ event }) => event.contractId === contractId);
    await eventually("the second is accepted", async () => {
      await skipRest(id);
      return attemptsAt(second.id).length === 1;
    });
    receiver.answer((response) => response.writeHead(200).end());
    await eventually("the first is accepted", async () => {
      await skipWaits(id);
      return (await read(client, id)).pendingRetries === 0;
    });
    expect(await read(client, id)).toMatchObject({ status: "active", lastStatus: 200, lastError: null });
    const ids = attemptsAt(first.id).map(({ headers }) => headers["webhook-id"]);
    expect(ids.length).toBeGreaterThan(1);
    expect(new Set(ids).size).toBe(1);
    expect(attemptsAt(second.id)).toHaveLength(1);
  });

  test("is sent new events beside those that it refuses, and after an outage what failed in it", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    const names: Record<string, string> = {};
    const create = async (name: string): Promise<string> => {
      const contract = await created(world, client);
      names[contract.id] = name;
      return contract.id;
    };
    let isDown = true;
    receiver.answer((response, { event: { contractId } }) =>
      response.writeHead(isDown || names[contractId] === "refused" ? 500 : 204).end(),
    );
    const calls = async (from: number, count: number): Promise<(string | undefined)[]> => {
      await eventually(`call ${from + count}`, async () => {
        await skipRest(id);
        return receiver.received.length >= from + count;
      });
      return receiver.received.slice(from, from + count).map(({ event }) => names[event.contractId]);
    };
    const holds = async (sql: string, ...values: unknown[]): Promise<void> => {
      await eventually(sql, async () => (await world.query(sql, [id, ...values])).length > 0);
    };
    await create("refused");
    await holds("select 1 from app.webhook where id = $1 and failures > 0");
    await world.query("update app.webhook set paused_until = now() + interval '1 day' where id = $1", [id]);
    await create("accepted");
    await holds(
      "select 1 from app.webhook where id = $1 and wanted_up_to > sent_up_to and leased_until is null",
    );
    isDown = false;
    await skipWaits(id);
    expect(await calls(0, 3)).toEqual(["refused", "accepted", "refused"]);

    const outage = async (): Promise<unknown> => {
      const from = receiver.received.length;
      isDown = true;
      const failed = await create("failed");
      await calls(from, 1);
      await holds(
        `select 1 from app.webhook_retry join app.event using (position)
         where webhook_id = $1 and contract_id = $2`,
        failed,
      );
      const tomorrow = "update app.webhook_retry set next_attempt_at = now() + interval '1 day'";
      await world.query(`${tomorrow} where webhook_id = $1`, [id]);
      isDown = false;
      await create("accepted");
      return calls(from, 3);
    };
    expect(await outage()).toEqual(["failed", "accepted", "failed"]);
    await world.query(
      `insert into app.webhook_retry (webhook_id, position, attempts, next_attempt_at)
       select $1, -i, 1, now() + interval '1 day' from generate_series(1, 500) i`,
      [id],
    );
    expect(await outage(), "half of those that can wait do").toEqual(["failed", "accepted", "refused"]);
  });

  test("waits longer after each failure, over three days", async () => {
    const receiver = await startReceiver();
    receiver.answer((response) => response.writeHead(503).end());
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    await created(world, client);
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 9; attempt++) {
      const waitOf = async (): Promise<number | undefined> => {
        const { rows } = await world.pool.query(
          `select extract(epoch from r.next_attempt_at - w.last_attempt_at)::float as wait
           from app.webhook_retry r join app.webhook w on w.id = r.webhook_id
           where r.webhook_id = $1 and r.attempts = $2 and w.leased_until is null`,
          [id, attempt],
        );
        return rows[0]?.wait;
      };
      await eventually(`attempt ${attempt}`, async () => (await waitOf()) !== undefined);
      const wait = (await waitOf()) as number;
      waits.push(Math.round(wait));
      await failEarlier(id, { seconds: wait });
      await skipWaits(id);
    }
    expect(waits).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    await eventually("it is disabled", async () => (await read(client, id)).status === "disabled");
    expect(await read(client, id)).toMatchObject({
      disabledReason: "all attempts over three days failed",
      pendingRetries: 0,
      givenUp: [expect.any(String)],
    });
    expect(receiver.received).toHaveLength(10);

    await created(world, client);
    receiver.answer((response) => response.writeHead(200).end());
    const on = await send<WebhookView>(client, "PATCH", `${PATH}/${id}`, { disabled: false });
    expect(on.data).toMatchObject({ status: "active", disabledAt: null, disabledReason: null });
    // And recorded: a replay ends the sender's lease, and an event whose outcome is not stored yet is sent again.
    await eventually("the missed event is sent", async () => (await read(client, id)).lastStatus === 200);
    expect(receiver.received).toHaveLength(11);

    const [givenUp] = on.data.givenUp;
    ok(await send(client, "POST", `${PATH}/${id}/replay`, { eventId: givenUp }));
    await eventually("the abandoned event is sent", async () => receiver.received.length > 11);
    expect(receiver.received[11]?.event.id).toBe(givenUp);
    expect((await read(client, id)).givenUp).toEqual([]);
    await world.query(
      "insert into app.webhook_retry (webhook_id, position, attempts) select $1, i, 10 from generate_series(1, 30) i",
      [id],
    );
    expect((await read(client, id)).givenUp).toEqual(Array.from({ length: 20 }, (_, i) => String(30 - i)));
  });

  test("is disabled after three days without a success, although events wait, and gets them once it is enabled", async () => {
    const receiver = await startReceiver();
    receiver.answer((response) => response.writeHead(503).end());
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    await created(world, client);
    const attempted = async (count: number): Promise<WebhookView> => {
      const stored = `select 1 from app.webhook w join app.webhook_retry r on r.webhook_id = w.id
        where w.id = $1 and r.attempts = $2 and w.leased_until is null`;
      await eventually(`attempt ${count}`, async () => (await world.query(stored, [id, count])).length === 1);
      return read(client, id);
    };
    await attempted(1);
    await failEarlier(id, { seconds: 3 * 86_400, failures: 100 });
    await skipWaits(id);
    expect((await attempted(2)).status, "less time than one event gets").toBe("failing");
    await failEarlier(id, { seconds: 86_400, failures: 8 });
    await skipWaits(id);
    expect((await attempted(3)).status, "fewer attempts than one event gets").toBe("failing");
    await skipWaits(id);
    expect(await attempted(4)).toMatchObject({
      status: "disabled",
      disabledReason: "all attempts over three days failed",
      pendingRetries: 1,
      givenUp: [],
    });
    receiver.answer((response) => response.writeHead(204).end());
    ok(await send(client, "PATCH", `${PATH}/${id}`, { disabled: false }));
    await eventually("it is sent", async () => (await read(client, id)).pendingRetries === 0);
    expect(receiver.received).toHaveLength(5);
  });

  test("is not disabled for what it refused before by the first failure of a later event", async () => {
    const receiver = await startReceiver();
    receiver.answer((response) => response.writeHead(503).end());
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    await created(world, client);
    const waiting = (count: number) =>
      eventually(`${count} wait`, async () => {
        await skipRest(id);
        return (await read(client, id)).pendingRetries === count;
      });
    await waiting(1);
    await world.pool.query("update app.webhook_retry set attempts = 9 where webhook_id = $1", [id]);
    await skipWaits(id);
    await waiting(0);
    await failEarlier(id, { seconds: 4 * 86_400, failures: 100 });
    await created(world, client);
    await waiting(1);
    expect((await read(client, id)).status).toBe("failing");
  });

  test("keeps its 100 newest abandoned events, beside those that wait for a retry", async () => {
    const receiver = await startReceiver();
    receiver.answer((response) => response.writeHead(503).end());
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    await world.pool.query(
      `insert into app.webhook_retry (webhook_id, position, attempts, next_attempt_at)
       select $1, -i, 9, case when i = 1 then now() + interval '1 day' end from generate_series(1, 101) i`,
      [id],
    );
    const rows = async () =>
      (
        await world.pool.query<{ position: number; attempts: number }>(
          "select position::int, attempts from app.webhook_retry where webhook_id = $1 order by 1",
          [id],
        )
      ).rows;
    await created(world, client);
    await eventually("its first attempt failed", async () => (await rows()).length === 102);
    await world.pool.query("update app.webhook_retry set attempts = 9 where webhook_id = $1", [id]);
    await world.pool.query(
      "update app.webhook_retry set next_attempt_at = now() where webhook_id = $1 and position > 0",
      [id],
    );
    await eventually("its last attempt failed", async () => {
      await skipRest(id);
      return (await rows()).at(-1)?.attempts === 10;
    });
    const positions = (await rows()).map(({ position }) => position);
    expect(positions.slice(0, -1)).toEqual(Array.from({ length: 100 }, (_, i) => i - 100));
  });

  test("gets no new event while 1,000 wait for a retry, and no replay of one", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    const retries = (from: number, to: number) =>
      world.pool.query(
        `insert into app.webhook_retry (webhook_id, position, attempts, next_attempt_at)
         select $1, -i, 1, now() + interval '1 day' from generate_series($2::int, $3::int) i`,
        [id, from, to],
      );
    await retries(1, 999);
    await created(world, client);
    await eventually("it is sent beside 999", async () => (await read(client, id)).lastStatus === 204);

    await retries(1000, 1000);
    await created(world, client);
    await eventually("the sender leaves the next one in the log", async () => {
      const { rowCount } = await world.pool.query(
        `select from app.webhook where id = $1 and wanted_up_to > sent_up_to and leased_until is null
           and next_attempt_at > now() + interval '1 hour'`,
        [id],
      );
      return rowCount === 1;
    });
    const eventId = receiver.received[0]?.event.id;
    const full = await send(client, "POST", `${PATH}/${id}/replay`, { eventId });
    expect(full).toMatchObject({
      status: 429,
      error: { code: "rate_limited", message: expect.stringContaining("1000 events waiting for a retry") },
    });
    expect(full.headers.get("retry-after")).toBe("60");
    expect(receiver.received).toHaveLength(1);
    expect((await read(client, id)).pendingRetries).toBe(1000);

    await world.pool.query("delete from app.webhook_retry where webhook_id = $1 and position = -1000", [id]);
    await skipRest(id);
    await eventually("it is sent once there is room", async () => receiver.received.length === 2);
  });

  test("gets nothing more after it reports that it is gone, until its owner switches it on", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    receiver.answer((response) => response.writeHead(410).end());
    await created(world, client);
    await eventually("it is disabled", async () => (await read(client, id)).status === "disabled");
    expect((await read(client, id)).disabledReason).toBe("the target responded with 410 Gone");
    const replay = await send(client, "POST", `${PATH}/${id}/replay`, { after: "0" });
    expect(replay.status).toBe(409);

    const other = await startReceiver();
    await register(client, { url: other.url, types: ["contract.created"] });
    const missed = await created(world, client);
    await eventually("another webhook of the owner got the event", async () => other.received.length === 1);
    expect(receiver.received).toHaveLength(1);

    receiver.answer((response) => response.writeHead(204).end());
    ok(await send(client, "PATCH", `${PATH}/${id}`, { disabled: false }));
    await eventually("it got what it missed", async () =>
      receiver.received.some(({ event }) => event.contractId === missed.id),
    );
  });

  const isLinux = process.platform === "linux"; // The only system with 127.0.0.2.
  test.runIf(isLinux)("delays neither the service nor other targets, however many hang", async () => {
    const dead = await startReceiver("127.0.0.2");
    dead.answer(() => {});
    const prompt = await startReceiver();
    await registerMany(dead.url, { owners: 6, each: 10 });
    await register(worker, { url: prompt.url, types: ["contract.accepted"] });
    await matched(world, { client, worker });
    await eventually("the other one is served", async () => prompt.received.length === 1);
    expect(dead.received.length, "not one of the hanging calls had to end before").toBeLessThanOrEqual(4);
  });

  test("moves a slow webhook to the slow lane, whatever its owner changes during the call", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url });
    const [hook] = await world.db.select().from(webhook).where(eq(webhook.id, id));
    const lost = { ...(hook as WebhookRow), leasedUntil: new Date(0) };
    const task = { row: { position: 1n }, attempts: null } as Task;
    const outcome = { ok: false, status: null, error: "no response", seconds: 10 };
    expect(await recordOutcome(world.db, lost, { task, outcome })).toBeNull();
    const slow = "select 1 from app.webhook where id = $1 and slow_until > now()";
    expect(await world.query(slow, [id])).toHaveLength(1);
  });

  test("is looked at again after a second if its address is busy, in the slow lane after two at least", async () => {
    const { id } = await register(client, { url: "http://127.0.0.1:9/" });
    /** Seconds until the webhook is due, by the database's clock. */
    const pauseOf = async (lane: Lane): Promise<number> => {
      const [leased] = await world.query(
        "update app.webhook set leased_until = '2100-01-01' where id = $1 returning now() as at",
        [id],
      );
      const [hook] = await world.db.select().from(webhook).where(eq(webhook.id, id));
      await postpone(world.db, hook as WebhookRow, lane);
      const due = "select next_attempt_at as at from app.webhook where id = $1 and leased_until is null";
      const [row] = await world.query(due, [id]);
      return (Number(row?.at) - Number(leased?.at)) / 1000;
    };
    expect(await pauseOf("fast")).toBeGreaterThanOrEqual(1);
    expect(await pauseOf("slow")).toBeGreaterThanOrEqual(2);
  });

  test("keeps half of its capacity for targets that respond, whoever owns the slow ones and wherever they are", async () => {
    const prompt = await startReceiver();
    await register(worker, { url: prompt.url, agent: client.address, types: ["contract.created"] });
    await created(world, client);
    await eventually("the target has responded once", async () => prompt.received.length === 1);

    const slow = await startReceiver("0.0.0.0");
    let hanging = 0;
    let most = 0;
    slow.answer((response) => {
      most = Math.max(most, ++hanging);
      response.once("close", () => hanging--);
    });
    await registerMany(slow.url, { owners: 80, each: 10 });
    await created(world, client);
    await eventually("the slow ones have taken what they can", async () => hanging >= SLOW_LANE);
    await created(world, client);
    await eventually("the prompt target is served", async () => prompt.received.length === 3);
    expect(most).toBeLessThanOrEqual(SLOW_LANE);
  });
});

test("webhooks that look for their next event use 6 connections at a time, however many there are", async () => {
  /** Nothing to send, but due, in both lanes. */
  const makeDue = (name: string) =>
    world.pool.query(
      `insert into app.webhook (id, owner, agent, url, wrapped_secret, master_key_id, sent_up_to, wanted_up_to,
         last_success_at, next_attempt_at)
       select $1 || i, $1 || i, $1 || i, 'http://127.0.2.' || i || ':9/', '', '', 0, 0, case when i > 10 then now() end,
         now() from generate_series(1, 20) i`,
      [name],
    );
  const count = async (condition: string): Promise<number> =>
    (await world.pool.query(`select ${condition}`)).rowCount ?? 0;
  const looking = () =>
    count("from pg_stat_activity where wait_event_type = 'Lock' and query like '%webhook_retry%'");
  const areLeased = async (name: string) =>
    (await count(`from app.webhook where id like '${name}%' and leased_until > now()`)) === 20;
  const holder = await world.pool.connect();
  try {
    await holder.query("begin");
    await holder.query("lock table app.event");
    await makeDue("early ");
    await eventually("they look", async () => (await areLeased("early ")) && (await looking()) >= 6);
    await makeDue("late ");
    await eventually("others would look, too", () => areLeased("late "));
    expect(await looking()).toBe(6);
  } finally {
    await holder.query("rollback");
    holder.release();
  }
});

describe("a replay", () => {
  test("sends everything after an event again, or skips what was not sent", async () => {
    const receiver = await startReceiver();
    const { id } = await register(client, { url: receiver.url, types: ["contract.created"] });
    const contracts = [await created(world, client), await created(world, client)];
    await eventually("both are sent", async () => receiver.received.length === 2);
    const [first] = receiver.received;
    await send(client, "POST", `${PATH}/${id}/replay`, { after: first?.event.id });
    await eventually("the second is sent again", async () => receiver.received.length === 3);
    expect(receiver.received.map(({ event }) => event.contractId)).toEqual([
      contracts[0]?.id,
      contracts[1]?.id,
      contracts[1]?.id,
    ]);
    expect(receiver.received[2]?.headers["webhook-id"]).toBe(receiver.received[1]?.headers["webhook-id"]);

    await send(client, "POST", `${PATH}/${id}/replay`, { eventId: first?.event.id });
    // The second can come again: its outcome was perhaps not stored when the replay ended the sender's lease.
    const again = () => receiver.received.slice(3).find(({ event }) => event.id === first?.event.id);
    await eventually("the first is sent again", async () => again() !== undefined);
    expect(again()?.event).toEqual(first?.event);

    for (const body of [{}, { after: "x" }, { eventId: "999999999" }, { after: "999999999" }]) {
      expect((await send(client, "POST", `${PATH}/${id}/replay`, body)).status, JSON.stringify(body)).toBe(
        400,
      );
    }
    receiver.answer((response) => response.writeHead(500).end());
    await created(world, client);
    await eventually("it fails", async () => (await read(client, id)).status === "failing");
    await failEarlier(id, { seconds: 4 * 86_400, failures: 100 });
    await send(client, "POST", `${PATH}/${id}/replay`, { after: "latest" });
    expect((await read(client, id)).pendingRetries).toBe(0);
    await created(world, client);
    await eventually("the next one fails", async () => (await read(client, id)).pendingRetries === 1);
    expect((await read(client, id)).status, "days without an event count for nothing").toBe("failing");
  });
});

describe("outside a local network", async () => {
  const config = parseConfig({
    DATABASE_URL: world.info.databaseUrl,
    RPC_URL: world.info.rpcUrl,
    DEPLOYMENT: world.info.deploymentPath,
    MASTER_KEY: "11".repeat(32),
    ROLES: "api",
    PORT: String(await freePort()),
  });
  const service = await createService(config, { logger: createLogger("silent") });
  afterAll(() => service.stop());

  const post = (body: unknown, more: Record<string, string> = {}) =>
    fetch(`${service.url}${PATH}`, {
      method: "POST",
      headers: { authorization: `Bearer ${client.apiKey}`, "content-type": "application/json", ...more },
      body: JSON.stringify(body),
    });

  test("private and local addresses are rejected when they are given", async () => {
    for (const url of ["http://example.com/", "https://10.0.0.1/"]) {
      const response = await post({ url });
      expect(response.status, url).toBe(400);
      expect(((await response.json()) as { error: { code: string } }).error.code).toBe("invalid_request");
    }
  });

  test("a repeated registration returns the first, even if its target would now be refused", async () => {
    const key = { "idempotency-key": "moved" };
    const body = { url: "http://127.0.0.1:9/" };
    const first = await client.call<NewWebhook>("POST", PATH, { body, headers: key });
    const repeated = await post(body, key);
    expect([first.status, repeated.status]).toEqual([201, 201]);
    expect(((await repeated.json()) as { data: NewWebhook }).data.secret).toBe(first.data.secret);
  });
});
