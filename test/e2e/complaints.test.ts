import { describe, expect, test } from "vitest";
import type { ComplaintView } from "../../src/features/complaints/routes.js";
import type { Agent } from "../support/agent.js";
import { matched, newPair } from "../support/contracts.js";
import { runOperator } from "../support/programs.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

const file = (id: string, agent: Agent) =>
  agent.post<ComplaintView>(`/v1/contracts/${id}/complaints`, { evidence: { what: "late" } });

const operator = (...args: string[]) => runOperator(args, { DATABASE_URL: world.info.databaseUrl });

describe("the operator", () => {
  test("lists complaints, and resolves each once, for everyone to read", async () => {
    const { id } = await matched(world, { client, worker });
    const filed = [await file(id, client), await file(id, worker)] as const;
    for (const { body } of filed) expect(body).toHaveProperty("signed", null);
    const [{ data: upheld }, { data: dismissed }] = filed;

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

    const { data, body } = await client.get<ComplaintView[]>(`/v1/contracts/${id}/complaints`);
    expect(body).toHaveProperty("signed", {});
    expect(data).toEqual([
      { ...upheld, status: "upheld", resolutionNote: "The log shows it.", resolvedAt: expect.any(String) },
      { ...dismissed, status: "dismissed", resolutionNote: null, resolvedAt: expect.any(String) },
    ]);
    expect(Date.parse(data[0]?.resolvedAt ?? "")).toBeGreaterThanOrEqual(Date.parse(upheld.filedAt));
    expect((await operator("complaint", "list", "--status", "pending", "--contract", id)).stdout).toBe("");
  });

  test("gets an error that says what is wrong with a command", async () => {
    const faults: [args: string[], line: string][] = [
      [["complaint", "resolve", "nonsense", "upheld"], "Complaint not found: nonsense\n"],
      [["complaint", "resolve", "nonsense", "granted"], "Usage: complaint resolve"],
      [["complaint", "list", "--state", "pending"], "--state"],
      [[], "Usage: npm run operator"],
    ];
    const ends = await Promise.all(faults.map(([args]) => operator(...args)));
    const lines = faults.map(([, line]) => ({ code: 1, stderr: expect.stringContaining(line) }));
    expect(ends).toMatchObject(lines);
  });
});
