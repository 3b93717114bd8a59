import { serveHttp } from "@working-contracts/cli/mcp/http";
import { publicAgent } from "@working-contracts/cli/mcp/server";
import { expect, it } from "vitest";
import manifest from "../../../packages/cli/package.json" with { type: "json" };
import { mcpRequest } from "../../support/mcp-request.js";
import { account, agentOf, NETWORK } from "../client/fake-service.js";
import { connectInMemory, serverOf } from "./in-memory.js";

const KEY = "a key that only this test knows";
const HOUR_MS = 3_600_000;
const ID = `0x${"11".repeat(20)}`;

it("others read neither the owner's events nor its unpaid terms", async () => {
  const answer = (request: string, { headers }: RequestInit) =>
    request === `GET /v1/contracts/${ID}/terms` && new Headers(headers).get("authorization") !== null
      ? Response.json({ data: { title: "an unpaid draft" } })
      : undefined;
  const owner = await agentOf(answer);
  expect(await owner.terms(ID)).toEqual({ title: "an unpaid draft" });
  const fetch = ((input: URL, init: RequestInit) =>
    Promise.resolve(
      answer(`${init.method} ${new URL(input).pathname}`, init) ??
        Response.json({ error: { code: "not_found", message: "Not found" } }, { status: 404 }),
    )) as typeof globalThis.fetch;
  const others = await publicAgent(owner, { baseUrl: NETWORK.baseUrl, account, fetch });

  const client = await connectInMemory(others, "public");
  expect(client.getServerVersion()?.version).toBe(manifest.version);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).not.toContain("list_events");
  const terms = await client.callTool({ name: "get_terms", arguments: { id: ID } });
  expect(JSON.stringify(terms.content)).toContain("not_found");
  await expect(client.readResource({ uri: `working-contracts://contracts/${ID}/terms` })).rejects.toThrow();
  await client.close();
});

it.each([
  ["ahead", HOUR_MS],
  ["behind", -HOUR_MS],
])("no deadline is counted from a service's clock that is an hour %s", async (_, by) => {
  const agent = await agentOf(() => undefined, { now: () => Date.now() + by });
  const client = await connectInMemory(agent, "write");
  const work = { title: "x", taskDescription: "x", acceptanceCriteria: ["x"], price: "1" };
  const result = await client.callTool({ name: "post_contract", arguments: work });
  expect(JSON.stringify(result.content)).toContain("RefusedToSign");
  await client.close();
});

it("others close no session of the owner, however many they open", async () => {
  const agent = await agentOf(() => undefined);
  const { url, close } = await serveHttp({
    port: 0,
    key: KEY,
    createServer: (isOwner) => serverOf(agent, isOwner ? "private" : "public"),
  });
  const hello = {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "a-model", version: "1.0.0" },
  };
  const open = async (headers: Record<string, string> = {}): Promise<string> => {
    const response = await mcpRequest(url, "initialize", { headers, params: hello });
    await response.text();
    return String(response.headers.get("mcp-session-id"));
  };
  const list = (headers: Record<string, string>) => mcpRequest(url, "tools/list", { headers });
  const authorization = `Bearer ${KEY}`;
  const own = await open({ authorization });
  const first = await open();
  for (let i = 0; i < 65; i++) await open();
  expect((await list({ "mcp-session-id": first })).status).toBe(404);
  expect((await list({ "mcp-session-id": own, authorization })).status).toBe(200);
  await close();
});
