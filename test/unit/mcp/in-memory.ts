/** A language model's client of an MCP server in this process. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { createMcpServer, type ServerOptions } from "@working-contracts/cli/mcp/server";
import { createUnfinishedCalls } from "@working-contracts/cli/mcp/write-tools";
import type { Agent } from "@working-contracts/client/index";
import { z } from "zod";

/** A server whose tools can return anything. */
export const serverOf = (agent: Agent, access: ServerOptions["access"]) =>
  createMcpServer({ agent, access, outputs: () => z.looseObject({}), unfinished: createUnfinishedCalls() });

export async function connectInMemory(agent: Agent, access: ServerOptions["access"]): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "a-model", version: "1.0.0" });
  await Promise.all([serverOf(agent, access).connect(far), client.connect(near)]);
  return client;
}
