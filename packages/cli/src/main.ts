/** Entry point of `wcontract`. */

import { shortOf } from "@working-contracts/client/rpc";
import { visibleJson } from "@working-contracts/protocol/json";
import { Command, CommanderError } from "commander";
import manifest from "../package.json" with { type: "json" };
import { addContractCommands } from "./commands/contracts.js";
import { addKeyCommands } from "./commands/key.js";
import { addMcpCommand } from "./commands/mcp.js";
import { addOnChainCommands } from "./commands/on-chain.js";
import { addReceiptCommands, addVerifyCommand } from "./commands/verify.js";
import { type Context, createContext } from "./context.js";
import { EXIT_HELP, exitCodeOf, refusalOf } from "./errors.js";
import { type CommonOptions, PATIENCE, type World } from "./settings.js";
import { indented } from "./terminal.js";

/** Runs one command and returns its exit code. Prints errors to stderr. */
export async function run(args: readonly string[], world: World): Promise<number> {
  const program = createProgram(world);
  try {
    await program.parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    const code = exitCodeOf(error);
    // commander has already printed its own message.
    if (error instanceof CommanderError) return code;
    const { json } = program.opts<CommonOptions>();
    const text = json ? visibleJson({ error: refusalOf(error as Error) }) : `wcontract: ${describe(error)}`;
    world.stderr(`${text}\n`);
    return code;
  }
}

function createProgram(world: World): Command {
  const program = new Command("wcontract")
    .description("Post, perform, judge and verify Working Contracts.")
    .version(manifest.version)
    .option("--url <url>", "URL of the service (WC_URL)")
    .option("--json", "print machine-readable results to stdout")
    .option(
      "--keystore <file>",
      "encrypted key (WC_KEYSTORE); set its password in WC_PASSWORD or WC_PASSWORD_FILE",
    )
    .option("--max-pay <amount>", "pay up to this much of the stablecoin without asking")
    .option("--yes", "pay whatever the contract's terms require without asking")
    .option(
      "--patience <duration>",
      `how long to retry while the service does not respond; a first attempt gets 30s (default: ${PATIENCE})`,
    )
    .option("--domain <name>", "the service's name in sign-in challenges, if it is not its host (WC_DOMAIN)")
    .option("--clock <clock>", "`service` trusts the clock of a sandbox that was moved (WC_CLOCK)")
    .option(
      "--operator <operator>",
      "`all` lets the service act without a signature for each action (WC_OPERATOR)",
    )
    .option("--rpc-url <url>", "URL of a node of the chain (RPC_URL)")
    .option("--max-gas <ether>", "the most that the gas of your own transaction may cost (default: 0.01)")
    .option("--deployment <file>", "deployment file of the protocol (DEPLOYMENT)")
    .addHelpText("after", EXIT_HELP)
    .showHelpAfterError("(see wcontract --help)")
    .exitOverride()
    .configureOutput({ writeOut: world.stdout, writeErr: world.stderr });
  const contextOf = (command: Command): Context =>
    createContext(command.optsWithGlobals<CommonOptions>(), world);
  const commands = [addKeyCommands, addContractCommands, addOnChainCommands, addReceiptCommands];
  for (const add of [...commands, addVerifyCommand, addMcpCommand]) add(program, contextOf);
  return program;
}

/** Formats an error for the terminal, with the service's code and hint if it has them. */
function describe(error: unknown): string {
  const { code, hint } = error as { code?: string; hint?: string };
  const message = shortOf(error as Error);
  const text = code === undefined ? message : `${code}: ${message}`;
  return indented(hint === undefined ? text : `${text} ${hint}`);
}
