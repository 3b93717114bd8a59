import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ComplaintView } from "../../src/features/complaints/complaints.js";
import type { Agent, Answer } from "../support/agent.js";
import { DAY } from "../support/contracts.js";
import { runOperator } from "../support/programs.js";
import { openWorld, type World } from "../support/world.js";
import { createdBy, matchedBetween, untilStatus } from "./contract-actors.js";

let world: World;
let client: Agent;
let worker: Agent;

beforeAll(async () => {
  world = await openWorld();
  client = await world.newAgent({ usd: "10000" });
  worker = await world.newAgent({ usd: "10000" });
});
afterAll(() => world.close());

const file = (
  id: string,
  agent: Agent,
  evidence: unknown = { what: "late" },
): Promise<Answer<ComplaintView>> =>
  agent.post<ComplaintView>(`/v1/contracts/${id}/complaints`, { evidence });

async function list(id: string, query = ""): Promise<{ data: ComplaintView[]; nextCursor?: string | null }> {
  const response = await fetch(`${world.url}/v1/contracts/${id}/complaints${query}`);
  expect(response.status).toBe(200);
  return (await response.json()) as { data: ComplaintView[] };
}

const operator = (...args: string[]) => runOperator(args, { DATABASE_URL: world.info.databaseUrl });

describe("filing", () => {
  test("either party of a matched contract can file, and everyone can read, oldest first", async () => {
    const { id } = await matchedBetween(world, client, worker);
    expect(await list(id)).toEqual({ data: [] });
    const evidence = { log: ["a", 1, null], nested: { ü: 1.5 } };
    const first = await file(id, worker, evidence);
    expect(first.status).toBe(201);
    expect(first.data).toEqual({
      id: expect.any(String),
      contractId: id,
      filedByRole: "worker",
      evidence,
      status: "pending",
      filedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/),
      resolvedAt: null,
      resolutionNote: null,
    });
    const second = await file(id, client, {});
    expect(second.data).toMatchObject({ filedByRole: "client", evidence: {} });
    const third = await file(id, worker);

    expect(await list(id)).toEqual({ data: [first.data, second.data, third.data] });
    const page = await list(id, "?limit=2");
    expect(page).toEqual({ data: [first.data, second.data], nextCursor: second.data.id });
    expect(await list(id, `?limit=2&cursor=${page.nextCursor}`)).toEqual({
      data: [third.data],
      nextCursor: null,
    });
    expect((await fetch(`${world.url}/v1/contracts/${id}/complaints?cursor=nonsense`)).status).toBe(400);
    expect((await client.get<{ status: string }>(`/v1/contracts/${id}`)).data.status).toBe("matched");
  });

  test("strangers, unknown contracts, missing keys and malformed bodies are rejected", async () => {
    const { id } = await matchedBetween(world, client, worker);
    expect((await file(id, await world.newAgent())).error?.code).toBe("forbidden");
    const unknown = "0x00000000000000000000000000000000000000ff";
    expect((await file(unknown, client)).error?.code).toBe("not_found");
    expect((await fetch(`${world.url}/v1/contracts/${unknown}/complaints`)).status).toBe(404);
    const path = `/v1/contracts/${id}/complaints`;
    expect((await fetch(world.url + path, { method: "POST", body: "x" })).status).toBe(401);
    for (const evidence of [undefined, null, [], "text", 7, { text: "a".repeat(64 * 1024) }]) {
      const { status, error } = await client.post(path, { evidence });
      expect([evidence, status, error?.code]).toEqual([evidence, 400, "invalid_request"]);
    }
    expect((await file(id, client, { t: "a".repeat(64 * 1024 - 8) })).status).toBe(201);
  });

  test("there is no one to complain about before a match, or after a decline", async () => {
    const { id } = await createdBy(world, client, { awardMethod: "direct_award", worker: worker.address });
    for (const party of [client, worker]) {
      expect((await file(id, party)).error?.code).toBe("conflict");
    }
    expect((await worker.post(`/v1/contracts/${id}/accept`, { accept: false })).status).toBe(200);
    expect((await file(id, client)).error?.code).toBe("conflict");
    const tender = await createdBy(world, client);
    expect((await file(tender.id, worker)).error?.code).toBe("forbidden");
    expect((await file(tender.id, client)).error?.code).toBe("conflict");
  });

  test("each role can file exactly 10, however many arrive at once", async () => {
    const { id } = await matchedBetween(world, client, worker);
    const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => file(id, client, { i })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.map(({ error }) => error?.code)).toEqual(new Array(6).fill("too_many_complaints"));
    expect((await file(id, worker)).status).toBe(201);
    const times = (await list(id)).data.map(({ filedAt }) => filedAt);
    expect(new Set(times).size).toBe(11);
    expect(times).toEqual([...times].sort());
  });

  test("the window stays open for 7 days after the review deadline, whatever the status, and then closes", async () => {
    const { id, reviewDeadline } = await matchedBetween(world, client, worker);
    expect((await worker.post(`/v1/contracts/${id}/withdraw`)).status).toBe(200);
    const closesAt = Date.parse(reviewDeadline) / 1000 + 7 * DAY;
    await world.increaseTime(closesAt - (await world.chainNow()) - 60);
    await untilStatus(client, id, "cancelled-withdrawn");
    expect((await file(id, client)).status).toBe(201);
    await world.increaseTime(60);
    await expect.poll(async () => (await file(id, client)).status).toBe(409);
    expect((await file(id, worker)).error?.code).toBe("conflict");
  });
});

describe("the operator", () => {
  test("lists complaints, and resolves each once, for everyone to read", async () => {
    const { id } = await matchedBetween(world, client, worker);
    const [upheld, dismissed] = [(await file(id, client)).data, (await file(id, worker)).data];

    const listed = await operator("complaint", "list", "--status", "pending", "--contract", id);
    expect(
      listed.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { ...upheld, filedBy: client.address },
      { ...dismissed, filedBy: worker.address },
    ]);

    const resolved = await operator(
      "complaint",
      "resolve",
      upheld.id,
      "upheld",
      "--note",
      "The log shows it.",
    );
    expect(resolved.code).toBe(0);
    expect((await operator("complaint", "resolve", dismissed.id, "dismissed")).code).toBe(0);
    const again = await operator("complaint", "resolve", upheld.id, "dismissed", "--note", "no");
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("never replaced")]);

    const { data } = await list(id);
    expect(data).toEqual([
      { ...upheld, status: "upheld", resolutionNote: "The log shows it.", resolvedAt: expect.any(String) },
      { ...dismissed, status: "dismissed", resolutionNote: null, resolvedAt: expect.any(String) },
    ]);
    expect(Date.parse(data[0]?.resolvedAt ?? "")).toBeGreaterThanOrEqual(Date.parse(upheld.filedAt));
    expect((await operator("complaint", "list", "--status", "pending", "--contract", id)).stdout).toBe("");
  });

  test("gets an error that says what is wrong with a command", async () => {
    const unknown = await operator("complaint", "resolve", "nonsense", "upheld");
    expect([unknown.code, unknown.stderr]).toEqual([1, "Complaint not found: nonsense\n"]);
    const wrongWord = await operator("complaint", "resolve", "nonsense", "granted");
    expect([wrongWord.code, wrongWord.stderr]).toEqual([
      1,
      expect.stringContaining("Usage: complaint resolve"),
    ]);
    const wrongOption = await operator("complaint", "list", "--state", "pending");
    expect([wrongOption.code, wrongOption.stderr]).toEqual([1, expect.stringContaining("--state")]);
    const nothing = await operator();
    expect([nothing.code, nothing.stderr]).toEqual([1, expect.stringContaining("Usage: npm run operator")]);
  });
});
