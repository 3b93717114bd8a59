/** `wcontract mcp`: the MCP server, on stdin and stdout or by HTTP. */
import { once } from "node:events";
import { join } from "node:path";
import { pause } from "@working-contracts/client/http";
import { type Agent, RefusedToSign } from "@working-contracts/client/index";
import { parseDecimal } from "@working-contracts/protocol/amounts";
import type { Command } from "commander";
import { type Context, signedIn } from "../context.js";
import { UsageError } from "../errors.js";
import { appendPrivateLine, createSpendingLedger } from "../files.js";
import { readOutputSchemas } from "../mcp/results.js";
import type { Output } from "../terminal.js";

interface McpOptions {
  allowWrites?: boolean;
  maxPerCall: string;
  maxPerDay: string;
  maxStake?: string;
  http?: string;
}

/** Guessing a shorter key could succeed. */
const MIN_KEY_LENGTH = 16;

/** Adds `mcp`. It pays nothing unless `--allow-writes` and the caps are given. */
export function addMcpCommand(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("mcp")
    .description("serve the Model Context Protocol for language models, on stdin and stdout")
    .option("--allow-writes", "also offer tools that sign, pay or change something")
    .option("--max-per-call <amount>", "maximum payment of one call, in the stablecoin", "0")
    .option("--max-per-day <amount>", "maximum payment of all calls in a UTC day", "0")
    .option("--max-stake <amount>", "maximum stake of one call, in protocol tokens (default: no staking)")
    .option(
      "--http <port>",
      "serve it by HTTP on 127.0.0.1 instead; writing and private tools need WC_MCP_KEY",
    )
    .action(async (options: McpOptions, command: Command) => {
      const context = contextOf(command);
      const { settings, out } = context;
      const { mcpKey } = settings;
      if (mcpKey !== undefined && mcpKey.length < MIN_KEY_LENGTH)
        throw new UsageError(`WC_MCP_KEY must have at least ${MIN_KEY_LENGTH} characters.`);
      if (options.http !== undefined && options.allowWrites === true && mcpKey === undefined)
        throw new UsageError("--http with --allow-writes needs a key. Set WC_MCP_KEY to a long random text.");
      const ledger = createSpendingLedger(join(settings.configDir, "mcp-spending.json"), {
        perCall: amountOf("--max-per-call", options.maxPerCall),
        perDay: amountOf("--max-per-day", options.maxPerDay),
      });
      const { agent, account } = await signedIn(context, {
        spendingLimit: {
          perCall: options.maxPerCall,
          ...(options.maxStake === undefined ? {} : { stake: options.maxStake }),
        },
        beforePayment: (payment) => ledger.count(payment),
        patienceMs: settings.patienceMs,
      });
      // Imported here because the imports are slow and no other command needs them.
      const { createMcpServer, publicAgent } = await import("../mcp/server.js");
      const { createUnfinishedCalls } = await import("../mcp/write-tools.js");
      const outputs = await readOutputSchemas(settings.url);
      const common = {
        agent: keepingSalts(agent, settings.configDir),
        outputs,
        unfinished: createUnfinishedCalls(),
      };
      const full = options.allowWrites === true ? ("write" as const) : ("private" as const);
      const stop = options.allowWrites === true ? attend(agent, out) : () => {};
      const serving = `serving ${agent.address} of ${settings.url}`;
      if (options.http !== undefined) {
        const { serveHttp } = await import("../mcp/http.js");
        const { patienceMs } = settings;
        const others = await publicAgent(agent, { baseUrl: settings.url, account, patienceMs });
        const { url, close } = await serveHttp({
          port: portOf(options.http),
          key: mcpKey,
          createServer: (isOwner) =>
            createMcpServer(
              isOwner ? { ...common, access: full } : { ...common, agent: others, access: "public" },
            ),
        });
        out.progress(`${serving} at ${url}`);
        await Promise.race(["SIGINT", "SIGTERM"].map((signal) => once(process, signal)));
        stop();
        return close();
      }
      const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
      const server = createMcpServer({ ...common, access: full });
      const closed = new Promise<void>((resolve) => {
        server.server.onclose = resolve;
        process.stdin.once("end", () => void server.close());
      });
      await server.connect(new StdioServerTransport());
      out.progress(serving);
      await closed;
      stop();
    });
}

/** Keeps the salt of each entrusted vote before it is cast: a server that is killed returns none. */
export const keepingSalts = (agent: Agent, dir: string): Agent => ({
  ...agent,
  async vote(id, outcomes, options) {
    if (options?.salt !== undefined) appendPrivateLine(join(dir, "vote-salts.txt"), `${id} ${options.salt}`);
    return agent.vote(id, outcomes, options);
  },
});

const INTERVAL_MS = 60_000;

/** Opens the agent's sealed votes and shares its sealed deliveries, until the returned function is called. */
export function attend(
  agent: Pick<Agent, "openVotes" | "shareDeliveries">,
  out: Pick<Output, "progress">,
): () => void {
  const stopped = new AbortController();
  const { signal } = stopped;
  const forever = async (task: () => Promise<unknown>): Promise<never> => {
    for (;;) {
      await task();
      await pause(INTERVAL_MS, signal);
    }
  };
  const onOpened = (id: string) => out.progress(`opened the vote on ${id}`);
  const open = () =>
    agent
      .openVotes({ wait: false, onOpened })
      .catch((error: Error) => out.progress(`votes not opened: ${error.message}`));
  const onFailure = (error: Error) => {
    if (!signal.aborted) out.progress(`delivery not shared: ${error.message}`);
  };
  const share = () =>
    agent.shareDeliveries({ signal, onFailure }).catch((error) => {
      onFailure(error);
      // Without a node it never can; any other failure can be the service's.
      if (error instanceof RefusedToSign && error.field === "delivery") throw error;
    });
  // Both end when they are stopped.
  for (const task of [open, share]) forever(task).catch(() => {});
  return () => stopped.abort();
}

function amountOf(option: string, text: string): bigint {
  const amount = parseDecimal(text);
  if (amount === null)
    throw new UsageError(`${option}: ${text} is not a decimal amount with at most 6 fractional digits.`);
  return amount;
}

function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new UsageError(`--http: ${text} is not a port.`);
  return port;
}
