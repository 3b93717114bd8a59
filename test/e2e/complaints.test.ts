import { describe, expect, test } from "vitest";
import type { ComplaintView } from "../../src/features/complaints/routes.js";
import type { Agent, Answer } from "../support/agent.js";
import { created, matched, newPair } from "../support/contracts.js";
import { runOperator } from "../support/programs.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

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
    const { id } = await matched(world, { client, worker });
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
      signed: null,
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

  test("there is no one to complain about before a match, or after a decline", async () => {
    const { id } = await created(world, client, { awardMethod: "direct_award", worker: worker.address });
    for (const party of [client, worker]) {
      expect((await file(id, party)).error?.code).toBe("conflict");
    }
    expect((await worker.post(`/v1/contracts/${id}/accept`, { accept: false })).status).toBe(200);
    expect((await file(id, client)).error?.code).toBe("conflict");
    const tender = await created(world, client);
    expect((await file(tender.id, worker)).error?.code).toBe("forbidden");
    expect((await file(tender.id, client)).error?.code).toBe("conflict");
  });
});

describe("the operator", () => {
  test("lists complaints, and resolves each once, for everyone to read", async () => {
    const { id } = await matched(world, { client, worker });
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
