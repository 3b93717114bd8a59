import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { serveHttp } from "@working-contracts/cli/mcp/http";
import { createMcpServer, publicAgent, type ServerOptions } from "@working-contracts/cli/mcp/server";
import { createUnfinishedCalls } from "@working-contracts/cli/mcp/unfinished-calls";
import type { Agent } from "@working-contracts/client/index";
import { expect, it } from "vitest";
import { z } from "zod";
import { mcpRequest } from "../../support/mcp-request.js";
import { account, agentOf, NETWORK } from "../client/fake-service.js";

const KEY = "a key that only this test knows";
const ID = `0x${"11".repeat(20)}`;

const serverOf = (agent: Agent, access: ServerOptions["access"]) =>
  createMcpServer({ agent, access, outputs: () => z.looseObject({}), unfinished: createUnfinishedCalls() });

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

  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "a-model", version: "1.0.0" });
  await Promise.all([serverOf(others, "public").connect(far), client.connect(near)]);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).not.toContain("list_events");
  const terms = await client.callTool({ name: "get_terms", arguments: { id: ID } });
  expect(JSON.stringify(terms.content)).toContain("not_found");
  await expect(client.readResource({ uri: `working-contracts://contracts/${ID}/terms` })).rejects.toThrow();
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
