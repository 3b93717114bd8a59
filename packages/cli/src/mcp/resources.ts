/** Contracts, their terms, and agents as resources, which a host can attach to a conversation. */
import { type McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { Agent } from "@working-contracts/client/index";

const LISTED = 20;
const JSON_TYPE = "application/json";

export function addResources(server: McpServer, agent: Agent): void {
  const add = (
    name: string,
    template: ResourceTemplate,
    { title, read }: { title: string; read: (key: string) => Promise<object> },
  ): void => {
    server.registerResource(name, template, { title, mimeType: JSON_TYPE }, async (uri, { key = "" }) => {
      const text = JSON.stringify(await read(String(key)), null, 2);
      return { contents: [{ uri: uri.href, mimeType: JSON_TYPE, text }] };
    });
  };
  const list = async () => {
    const { items } = await agent.list({ status: "open", limit: LISTED });
    const resources = items.map(({ id, title }) => ({
      uri: `working-contracts://contracts/${id}`,
      name: title,
      mimeType: JSON_TYPE,
    }));
    return { resources };
  };

  add("contract", new ResourceTemplate("working-contracts://contracts/{key}", { list }), {
    title: "A contract; the open ones are listed",
    read: agent.get,
  });
  add("terms", new ResourceTemplate("working-contracts://contracts/{key}/terms", { list: undefined }), {
    title: "The terms that a contract's address commits to",
    read: agent.terms,
  });
  add("agent", new ResourceTemplate("working-contracts://agents/{key}", { list: undefined }), {
    title: "An agent: profile, record, stake and workload",
    async read(address) {
      const [profile, record, stake, workload] = await Promise.all([
        agent.profile(address),
        agent.record(address),
        agent.stakeOf(address),
        agent.workload(address),
      ]);
      return { address, profile, record, stake, workload };
    },
  });
}
