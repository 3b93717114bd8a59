/** `wcontract mcp`: the MCP server on stdin and stdout. */
import { join } from "node:path";
import type { Agent } from "@working-contracts/client/index";
import { parseDecimal } from "@working-contracts/protocol/amounts";
import type { Command } from "commander";
import type { Context } from "../context.js";
import { signedIn } from "../context.js";
import { UsageError } from "../errors.js";
import { createSpendingLedger } from "../mcp/spending-ledger.js";
import type { Output } from "../terminal.js";

interface McpOptions {
  allowWrites?: boolean;
  maxPerCall: string;
  maxPerDay: string;
  maxStake?: string;
}

export function addMcpCommand(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("mcp")
    .description("serve the Model Context Protocol on stdin and stdout for language models")
    .option("--allow-writes", "also offer tools that sign, pay or change something")
    .option("--max-per-call <amount>", "maximum payment of one call, in the stablecoin", "0")
    .option("--max-per-day <amount>", "maximum payment of all calls in a UTC day", "0")
    .option("--max-stake <amount>", "maximum stake of one call, in protocol tokens")
    .action(async (options: McpOptions, command: Command) => {
      const { settings, out } = contextOf(command);
      const ledger = createSpendingLedger(join(settings.configDir, "mcp-spending.json"), {
        perCall: amountOf("--max-per-call", options.maxPerCall),
        perDay: amountOf("--max-per-day", options.maxPerDay),
      });
      const { agent } = await signedIn(settings, {
        spendingLimit: {
          perCall: options.maxPerCall,
          ...(options.maxStake === undefined ? {} : { stake: options.maxStake }),
        },
        beforePayment: (payment) => ledger.count(payment),
        patienceMs: settings.patienceMs,
      });
      // Imported here because the import is slow and no other command needs it.
      const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
      const { createMcpServer } = await import("../mcp/server.js");
      const server = createMcpServer({ agent, allowWrites: options.allowWrites === true });
      const closed = new Promise<void>((resolve) => {
        server.server.onclose = resolve;
        process.stdin.once("end", () => void server.close());
      });
      await server.connect(new StdioServerTransport());
      out.progress(`serving ${agent.address} at ${settings.url}`);
      const opening = options.allowWrites === true ? openVotesWhenDue(agent, out) : undefined;
      await closed;
      clearInterval(opening);
    });
}

const OPENING_INTERVAL_MS = 60_000;

/** Opens the agent's sealed votes while the server runs: one that is never opened loses its bond. */
function openVotesWhenDue(agent: Agent, out: Output): NodeJS.Timeout {
  const open = (): void => {
    const onOpened = (id: string) => out.progress(`opened the vote on ${id}`);
    agent
      .openVotes({ wait: false, onOpened })
      .catch((error: Error) => out.progress(`votes not opened: ${error.message}`));
  };
  open();
  return setInterval(open, OPENING_INTERVAL_MS);
}

function amountOf(option: string, text: string): bigint {
  const amount = parseDecimal(text);
  if (amount === null)
    throw new UsageError(`${option}: ${text} is not a decimal amount with at most 6 fractional digits.`);
  return amount;
}
