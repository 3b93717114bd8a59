import { expect, it } from "vitest";
import { agentOf } from "./fake-service.js";

const ID = `0x${"11".repeat(20)}`;
const CHECKPOINT = {
  ...{ fromSequence: 1, toSequence: 1, merkleRoot: "0x01", lastReceiptHash: "0x02" },
  ...{ teeMeasurement: "none", teeSignature: "none", data: { tokens: 1 } },
  checkpointedAt: "2030-01-01T00:00:00.000Z",
};

/** Stores each request once for its key and bytes, as the service does, and loses the first response. */
function storing(open: (body: object) => object) {
  const stored = new Map<string, object>();
  let requests = 0;
  return {
    stored,
    answer(request: string, { headers, body }: RequestInit): Response | undefined {
      if (!request.startsWith("POST")) return undefined;
      const key = `${new Headers(headers).get("idempotency-key")} ${body}`;
      const isNew = !stored.has(key);
      if (isNew && stored.size > 0)
        return Response.json({ error: { code: "conflict", message: "out of order" } }, { status: 409 });
      if (isNew) stored.set(key, open(JSON.parse(String(body))));
      if (++requests === 1) throw new TypeError("fetch failed");
      return Response.json({ data: stored.get(key) });
    },
  };
}

it("a checkpoint whose response was lost is stored and remembered once, however often it is repeated", async () => {
  const submitted: string[] = [];
  const { answer, stored } = storing((body) => ({ ...body, contractId: ID, id: "one", createdAt: "now" }));
  const agent = await agentOf(answer, {
    submitted: { read: () => submitted as never, add: (_, leaf) => void submitted.push(leaf) },
  });
  await expect(agent.checkpoint(ID, CHECKPOINT)).rejects.toMatchObject({ name: "ConnectionError" });
  expect(submitted).toEqual([]);
  for (let i = 0; i < 2; i++) expect(await agent.checkpoint(ID, CHECKPOINT)).toMatchObject({ id: "one" });
  expect(stored.size).toBe(1);
  expect(submitted).toHaveLength(1);
});

it("a complaint whose response was lost is filed once if it is repeated", async () => {
  const { answer, stored } = storing(() => ({ id: "one" }));
  const agent = await agentOf(answer);
  await expect(agent.complain(ID, { late: true })).rejects.toMatchObject({ name: "ConnectionError" });
  expect(await agent.complain(ID, { late: true })).toEqual({ id: "one" });
  expect(stored.size).toBe(1);
});
