import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { createMcpServer } from "@working-contracts/cli/mcp/server";
import { createUnfinishedCalls } from "@working-contracts/cli/mcp/unfinished-calls";
import { expect, it } from "vitest";
import { z } from "zod";
import { agentOf } from "./fake-service.js";

const HOUR_MS = 3_600_000;
const AFTER = { match: "1h", withdrawal: "2h", delivery: "3h", review: "4h" } as const;

it.each([
  ["ahead", HOUR_MS],
  ["behind", -HOUR_MS],
])(
  "are not counted from a service's clock that is an hour %s, unless the caller trusts it",
  async (_, by) => {
    const now = () => Date.now() + by;
    const refusal = { name: "RefusedToSign", field: "clock" };
    const agent = await agentOf(() => undefined, { now });
    await expect(agent.deadlines(AFTER)).rejects.toMatchObject(refusal);

    const server = createMcpServer({
      agent,
      outputs: () => z.looseObject({}),
      access: "write",
      unfinished: createUnfinishedCalls(),
    });
    const [near, far] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: "a-model", version: "1.0.0" });
    await Promise.all([server.connect(far), client.connect(near)]);
    const work = { title: "x", taskDescription: "x", acceptanceCriteria: ["x"], price: "1" };
    const result = await client.callTool({ name: "post_contract", arguments: work });
    expect(JSON.stringify(result.content)).toContain("RefusedToSign");
    await client.close();

    const trusting = await agentOf(() => undefined, { now, clock: "service" });
    const { matchDeadline } = await trusting.deadlines(AFTER);
    expect(Math.abs(Date.parse(matchDeadline) - now() - HOUR_MS)).toBeLessThan(10_000);
  },
);

it("can be times", async () => {
  const agent = await agentOf(() => undefined);
  const review = new Date("2030-01-01T00:00:00Z");
  expect(await agent.deadlines({ ...AFTER, review })).toMatchObject({ reviewDeadline: review.toISOString() });
});
