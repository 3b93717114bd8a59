/** The log of events: which events of a contract are reported, to whom, in which order, by polling and by stream. */

import type { Address } from "@working-contracts/protocol/types";
import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { createNotifications } from "../../src/db/client.js";
import type { AppError } from "../../src/errors.js";
import { createEventFeed } from "../../src/events/log.js";
import { resolveComplaint } from "../../src/features/complaints/routes.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { createEventStreams } from "../../src/features/events/stream-events.js";
import type { Agent } from "../support/agent.js";
import {
  checkpointBody,
  created,
  DAY,
  delivered,
  disputed,
  HOUR,
  matched,
  newJuror,
  newPair,
  ok,
  untilStatus,
  vote,
} from "../support/contracts.js";
import {
  allEvents,
  type EventStreamReader,
  eventually,
  latest,
  listEvents,
  openEventStream,
  typesOf,
  untilEvent,
} from "../support/event-log.js";
import { useWorld, type World } from "../support/world.js";

const world = await useWorld();
const pair = await newPair(world);
const { client, worker } = pair;
const stranger = await world.newAgent();

describe("the log", () => {
  test("reports a contract's lifecycle in order, with the chain's facts of each step", async () => {
    const { id } = await matched(world, pair, { matchDeadline: await world.inSeconds(2 * HOUR) });
    const checkpoint = await worker.post<{ id: string }>(
      `/v1/contracts/${id}/checkpoint`,
      await checkpointBody(world, { toSequence: 5 }),
    );
    expect(checkpoint.status).toBe(201);
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));
    ok(await client.post(`/v1/contracts/${id}/approve`));
    const complaint = await worker.post<{ id: string }>(`/v1/contracts/${id}/complaints`, { evidence: {} });
    expect(complaint.status).toBe(201);
    await untilStatus(client, id, "settled-all-met");

    await resolveComplaint(world.db, { id: complaint.data.id, status: "dismissed", note: null });

    const events = await untilEvent(stranger, id, "complaint.resolved");
    const chain = events.filter((event) => event.chain !== null);
    expect(typesOf(chain)).toEqual([
      "contract.created",
      "contract.accepted",
      "contract.delivered",
      "contract.approved",
      "contract.settled",
      "payout.paid",
    ]);
    expect(new Set(typesOf(events))).toEqual(
      new Set([...typesOf(chain), "checkpoint.accepted", "complaint.filed", "complaint.resolved"]),
    );
    const ids = events.map((event) => Number(event.id));
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    const order = typesOf(events);
    expect(order.indexOf("checkpoint.accepted")).toBeGreaterThan(order.indexOf("contract.accepted"));
    expect(order.indexOf("checkpoint.accepted")).toBeLessThan(order.indexOf("contract.delivered"));

    const of = (type: string) => events.find((event) => event.type === type);
    expect(of("contract.created")).toEqual({
      id: expect.stringMatching(/^\d+$/),
      type: "contract.created",
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.000Z$/),
      contractId: id,
      agents: expect.arrayContaining([client.address]),
      data: {
        initiator: "client",
        title: "Translate a page",
        awardMethod: "open_tender",
        budgetOrPrice: "50.0",
        matchDeadline: expect.any(String),
        deliveryDeadline: expect.any(String),
      },
      chain: {
        blockNumber: expect.any(Number),
        blockHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        transactionHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        logIndex: expect.any(Number),
      },
    });
    expect(of("contract.accepted")).toMatchObject({
      agents: [client.address, worker.address],
      data: { client: client.address, worker: worker.address },
    });
    expect(of("checkpoint.accepted")).toMatchObject({
      chain: null,
      data: { checkpointId: checkpoint.data.id, fromSequence: 1, toSequence: 5 },
    });
    expect(of("contract.approved")?.data).toEqual({ criteriaMet: ["met", "met", "met"] });
    expect(of("contract.settled")?.data).toEqual({
      status: "settled-all-met",
      payouts: { client: "0.0", worker: "50.0", treasury: "2.5" },
    });
    expect(of("payout.paid")?.data).toEqual({ payee: worker.address, role: "worker", amount: "50.0" });
    expect(of("complaint.filed")?.data).toEqual({ complaintId: complaint.data.id, filedByRole: "worker" });
    expect(of("complaint.resolved")).toMatchObject({
      agents: [client.address, worker.address],
      data: { complaintId: complaint.data.id, status: "dismissed" },
    });
  });

  test("reports other ends: cancelled, declined, withdrawn", async () => {
    const cancelled = await created(world, client);
    ok(await client.post(`/v1/contracts/${cancelled.id}/cancel`));
    const declined = await created(world, client, { awardMethod: "direct_award", worker: worker.address });
    ok(await worker.post(`/v1/contracts/${declined.id}/accept`, { accept: false }));
    const withdrawn = await matched(world, pair);
    ok(await worker.post(`/v1/contracts/${withdrawn.id}/withdraw`));
    const reserved = { initiator: "worker", awardMethod: "direct_award", client: client.address };
    const listing = await created(world, worker, reserved);
    ok(await worker.post(`/v1/contracts/${listing.id}/cancel`));

    for (const [contract, type, payees] of [
      [cancelled, "contract.cancelled", ["client"]],
      [declined, "contract.declined", ["client"]],
      [withdrawn, "contract.withdrawn", ["client", "worker"]],
      [listing, "contract.cancelled", ["worker"]],
    ] as const) {
      const events = await untilEvent(client, contract.id, "payout.paid");
      expect(typesOf(events)).toContain(type);
      const paid = events.filter((event) => event.type === "payout.paid").map(({ data }) => data.role);
      expect(paid).toEqual(payees);
    }
    const [first] = await allEvents(client, `contractId=${declined.id}&type=contract.created`);
    expect(first?.agents, "the named worker is notified").toContain(worker.address);
    const ofBuyer = typesOf(await allEvents(client, `contractId=${listing.id}&agent=${client.address}`));
    expect(ofBuyer).toEqual(expect.arrayContaining(["contract.cancelled", "contract.settled"]));
  });

  test("reports that an agent voted, and nothing of its votes before the tally", async () => {
    const jurors = [await newJuror(world), await newJuror(world)] as const;
    const { id } = await disputed(world, pair);
    for (const juror of jurors) await vote(juror, id, "met", "not met", "unclear");
    const sealedVotes = () => allEvents(stranger, `contractId=${id}&type=vote.*`);
    await eventually("both votes are reported", async () => (await sealedVotes()).length === 2);
    const sealed = await sealedVotes();
    expect(sealed.map(({ type, data }) => ({ type, data }))).toEqual(
      jurors.map(({ address }) => ({
        type: "vote.sealed",
        data: { backupAgent: address, bond: "7.5", commitment: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
      })),
    );

    await world.increaseTime(DAY);
    await untilStatus(client, id, "settled-partial");
    await untilEvent(stranger, id, "contract.settled");
    await eventually(
      "both are paid",
      async () =>
        (await allEvents(stranger, `contractId=${id}&type=payout.paid`)).filter(
          ({ data }) => data.role === "backup-agent",
        ).length === 2,
    );
    const events = await allEvents(stranger, `contractId=${id}`);
    const opened = events.filter(({ type }) => type === "vote.opened");
    expect(opened.map(({ data }) => JSON.stringify(data)).sort()).toEqual(
      jurors.map(({ address }) => JSON.stringify({ backupAgent: address })).sort(),
    );
    const tallied = events.find(({ type }) => type === "contract.tallied");
    expect(tallied?.data).toEqual({ criteriaMet: ["met", "not met", "unclear"] });
    const paid = events.filter(({ type, data }) => type === "payout.paid" && data.role === "backup-agent");
    expect(paid.map(({ agents }) => agents.at(-1)).sort()).toEqual(jurors.map((j) => j.address).sort());
    expect(paid[0]?.data).toMatchObject({ amount: "7.5", reward: 24 });
  });

  test("reports releases of keys to the parties alone", async () => {
    const { id } = await delivered(world, pair);
    ok(await client.get(`/v1/contracts/${id}/keys`));
    const events = await untilEvent(worker, id, "key.released");
    expect(events.filter(({ type }) => type === "key.released")).toMatchObject([
      { data: { field: "delivery", releasedTo: client.address, role: "client" } },
    ]);
    expect(typesOf(await allEvents(client, `contractId=${id}`))).toContain("key.released");
    expect(typesOf(await allEvents(stranger, `contractId=${id}`))).not.toContain("key.released");
  });

  test("reports time events: deadlines that come near, and ends before the money moves", async () => {
    const soon = { matchDeadline: await world.inSeconds(2 * HOUR) };
    const unmatched = await created(world, client, soon);
    const reserved = { ...soon, initiator: "worker", awardMethod: "direct_award", client: client.address };
    const listing = await created(world, worker, reserved);
    const absent = await matched(world, pair);
    const silent = await delivered(world, pair);
    const before = await allEvents(client, `contractId=${unmatched.id}`);
    expect(typesOf(before)).toEqual(["contract.created"]);

    await world.increaseTime(HOUR);
    const near = await untilEvent(client, unmatched.id, "deadline.approaching");
    expect(near.at(-1)).toMatchObject({
      agents: [client.address],
      data: { deadline: "matchDeadline", at: unmatched.matchDeadline },
      chain: null,
    });
    await world.increaseTime(3 * DAY);
    for (const [contract, type, status] of [
      [unmatched, "contract.unmatched", "cancelled-unmatched"],
      [listing, "contract.unmatched", "cancelled-unmatched"],
      [absent, "contract.absent", "cancelled-absent"],
      [silent, "contract.review-timeout", "settled-all-met"],
    ] as const) {
      await untilStatus(client, contract.id, status);
      const events = await untilEvent(client, contract.id, "contract.settled");
      const order = typesOf(events);
      expect(order.filter((name) => name === type)).toHaveLength(1);
      expect(order.indexOf(type)).toBeLessThan(order.indexOf("contract.settled"));
      expect(events.find((event) => event.type === "contract.settled")?.data.status).toBe(status);
    }
    const ofBuyer = allEvents(client, `contractId=${listing.id}&agent=${client.address}`);
    expect(typesOf(await ofBuyer)).toEqual(
      expect.arrayContaining(["deadline.approaching", "contract.unmatched", "contract.settled"]),
    );
    const timeout = (await allEvents(client, `contractId=${silent.id}`)).find(
      ({ type }) => type === "contract.review-timeout",
    );
    expect(timeout).toMatchObject({
      timestamp: silent.reviewDeadline,
      data: { criteriaMet: ["met", "met", "met"] },
    });
  });
});

describe("reading it", () => {
  test("resumes where it stopped, filters, and reports its position", async () => {
    const start = await latest(client);
    const { id } = await matched(world, pair, { matchDeadline: await world.inSeconds(2 * HOUR) });
    await untilEvent(client, id, "contract.accepted");

    const first = await listEvents(client, `after=${start}&contractId=${id}&limit=1`);
    expect(typesOf(first.data)).toEqual(["contract.created"]);
    expect(first).toMatchObject({ nextAfter: first.data[0]?.id, hasMore: true });
    const second = await listEvents(client, `after=${first.nextAfter}&contractId=${id}`);
    expect(typesOf(second.data)).toEqual(["contract.accepted"]);
    expect(second.hasMore).toBe(false);
    expect(BigInt(second.nextAfter)).toBeGreaterThanOrEqual(BigInt(second.data[0]?.id ?? 0));
    expect(await listEvents(client, `after=${second.nextAfter}&contractId=${id}`)).toMatchObject({
      data: [],
    });

    const mine = await listEvents(stranger, `after=${start}&agent=${worker.address}&type=contract.accepted`);
    expect(mine.data.map(({ contractId }) => contractId)).toEqual([id]);
    expect((await listEvents(stranger, `after=${start}&agent=${stranger.address}`)).data).toEqual([]);
  });

  test("rejects invalid parameters", async () => {
    const ahead = (BigInt(await latest(client)) + 1_000_000n).toString();
    for (const query of [
      "after=-1",
      "after=x",
      "type=contract.nothing",
      "agent=0x1",
      "limit=0",
      `after=${ahead}`,
    ]) {
      expect((await client.get(`/v1/events?${query}`)).status, query).toBe(400);
    }
    expect((await fetch(`${world.url}/v1/events`)).status).toBe(401);
    expect((await fetch(`${world.url}/v1/events/stream`)).status).toBe(401);
  });

  test("misses no event that was written before another and committed after it", async () => {
    const contractId = `0x${"ab".repeat(20)}`;
    const start = await latest(client);
    const stage = (connection: { query: World["pool"]["query"] }, source: string) =>
      connection.query(
        `insert into app.event (type, contract_id, agents, data, occurred_at, source)
         values ('complaint.filed', $1, '{}', '{}', now(), $2)`,
        [contractId, source],
      );
    const slow = await world.pool.connect();
    await slow.query("begin");
    await stage(slow, `slow:${start}`);
    await stage(world.pool, `fast:${start}`);
    await eventually(
      "the second is in the log",
      async () => (await listEvents(client, `after=${start}&contractId=${contractId}`)).data.length === 1,
    );
    const seen = await listEvents(client, `after=${start}&contractId=${contractId}`);
    await slow.query("commit");
    slow.release();
    await eventually(
      "the first comes after it",
      async () =>
        (await listEvents(client, `after=${seen.nextAfter}&contractId=${contractId}`)).data.length === 1,
    );
  });
});

describe("the stream", () => {
  const open: EventStreamReader[] = [];
  afterEach(async () => {
    for (const stream of open.splice(0)) {
      stream.close();
      await stream.ended;
    }
  });
  const stream = async (agent: Agent, query = "", lastEventId?: string) => {
    const reader = await openEventStream(`${world.url}/v1/events/stream?${query}`, {
      apiKey: agent.apiKey,
      ...(lastEventId === undefined ? {} : { lastEventId }),
    });
    open.push(reader);
    return reader;
  };

  test("reports events from now on, as they happen", async () => {
    const all = await stream(stranger);
    const mine = await stream(worker, `agent=${worker.address}&type=contract.*`);
    expect(all.status).toBe(200);
    expect(all.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const { id } = await matched(world, pair);
    await eventually("both have received it", async () =>
      [all, mine].every(({ messages }) => messages.some(({ event }) => event === "contract.accepted")),
    );
    expect(mine.messages.map(({ event }) => event)).toEqual(["contract.accepted"]);
    const accepted = mine.messages[0];
    expect(accepted?.data).toEqual((await allEvents(worker, `contractId=${id}&type=contract.accepted`))[0]);
    expect(accepted?.id).toBe(accepted?.data.id);
  });

  test("resumes after Last-Event-ID, without a gap and without a repetition", async () => {
    const start = await latest(client);
    const first = await stream(client, "", start);
    const { id } = await matched(world, pair);
    await eventually("it has received it", async () =>
      first.messages.some(({ event }) => event === "contract.accepted"),
    );
    first.close();
    const at = first.messages.at(-1)?.id as string;

    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));
    await untilEvent(client, id, "contract.delivered");
    const second = await stream(client, "after=0", at);
    ok<ContractView>(await client.post(`/v1/contracts/${id}/approve`));
    await eventually("it is up to date", async () =>
      second.messages.some(({ event }) => event === "contract.approved"),
    );
    const ids = [...first.messages, ...second.messages].map((message) => BigInt(message.id));
    expect(ids).toEqual(ids.map((_, i) => BigInt(start) + BigInt(i) + 1n));
  });

  test("reads the whole log from 0, and then continues with new events", async () => {
    const reader = await stream(stranger, "after=0&type=contract.created");
    const expected = (await allEvents(stranger, "type=contract.created")).map(({ id }) => id);
    await eventually("the past is read", async () => reader.messages.length >= expected.length);
    const { id } = await created(world, client);
    await eventually("the new event arrives", async () => reader.messages.at(-1)?.data.contractId === id);
    expect(reader.messages.slice(0, expected.length).map((message) => message.id)).toEqual(expected);
  });

  test("leaves room for parties, however many addresses a client takes streams with", async () => {
    await matched(world, pair);
    const former = await world.newAgent({ usd: "100" });
    const { id } = await created(world, former);
    ok(await former.post(`/v1/contracts/${id}/cancel`));
    await untilEvent(client, id, "contract.cancelled");
    const { pool, db } = world;
    const notifications = createNotifications({ pool });
    const feed = await createEventFeed({ db, notifications, logger: pino({ level: "silent" }) });
    const streams = createEventStreams({ db, feed }, { maxStreams: 40 });
    const { signal } = new AbortController();
    const opened: AsyncGenerator<string, void>[] = [];
    const take = async (caller: Address, from: string): Promise<string> => {
      const chunks = streams.open({ caller, after: null, filter: {}, signal, ip: from });
      const refusal = await chunks.next().catch((error: AppError) => error.code);
      if (typeof refusal === "string") return refusal;
      opened.push(chunks);
      return "open";
    };
    const strangerAt = (n: number, from: string) => take(`0x${String(n).padStart(40, "7")}`, from);
    const outcomes = async (asked: (n: number) => Promise<string>, count: number): Promise<string[]> => {
      const all = [];
      for (let n = 0; n < count; n++) all.push(await asked(n));
      return all;
    };

    const first = await outcomes((n) => strangerAt(n, "192.0.2.1"), 11);
    expect(first).toEqual([...Array(10).fill("open"), "too_many_streams"]);
    expect(await take(former.address, "192.0.2.1"), "its contract has ended").toBe("too_many_streams");
    const others = await outcomes((n) => strangerAt(n, `192.0.2.${n + 2}`), 19);
    expect(others).toEqual(Array(19).fill("open"));
    const parties = [client, worker].map(({ address }) => address);
    const party = await outcomes((n) => take(parties[n % 2] as Address, "192.0.2.1"), 11);
    expect(party).toEqual([...Array(10).fill("open"), "too_many_streams"]);
    expect(await strangerAt(20, "198.51.100.1"), "the rest is for parties").toBe("unavailable");
    expect(await take(worker.address, "198.51.100.1")).toBe("open");
    expect(await take(client.address, "198.51.100.1")).toBe("unavailable");

    for (const chunks of opened) await chunks.return();
    expect(await strangerAt(0, "192.0.2.1")).toBe("open");
    for (const chunks of opened) await chunks.return();
    feed.stop();
    await notifications.stop();
  });

  test("ends when the key that opened it is revoked", async () => {
    const agent = await world.newAgent();
    const reader = await stream(agent);
    await world.pool.query("update app.api_key set revoked_at = now() where address = $1", [agent.address]);
    await eventually("its key is refused", async () => (await agent.get("/v1/events")).status === 401);
    const { id } = await created(world, client);
    await reader.ended;
    await untilEvent(client, id, "contract.created");
    expect(reader.messages.map(({ data }) => data.contractId)).not.toContain(id);
  });

  test("is rejected ahead of the log, and if an address has too many", async () => {
    const ahead = await stream(client, "", (BigInt(await latest(client)) + 1_000_000n).toString());
    expect(ahead.status).toBe(400);
    const greedy = await world.newAgent();
    for (let i = 0; i < 10; i++) expect((await stream(greedy)).status).toBe(200);
    const refused = await stream(greedy);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("5");
    open.at(-2)?.close();
    await eventually("there is room again", async () => (await stream(greedy)).status === 200);
  });
});
