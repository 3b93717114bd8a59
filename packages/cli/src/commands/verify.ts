/** `wcontract verify`: rebuilds a contract from the chain, and checks every response of the service against it. */
import type { Verification } from "@working-contracts/client/index";
import type { Command } from "commander";
import { type Context, deploymentOf } from "../context.js";
import { UsageError } from "../errors.js";
import { plain, table } from "../terminal.js";

class DifferenceError extends Error {}

export function addVerifyCommand(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("verify <id>")
    .description(
      "rebuild a contract from the chain alone, compare it with the API if that answers (exits with 1 on a difference), and name whose signature allowed each step",
    )
    .option("--also-rpc <url...>", "other nodes, which have to report the same as the first")
    .action(async (id: string, { alsoRpc = [] }: { alsoRpc?: string[] }, command: Command) => {
      const { settings, reader, out } = contextOf(command);
      const { rpcUrl } = settings;
      if (rpcUrl === undefined) throw new UsageError("verify needs --rpc-url or RPC_URL.");
      const network = deploymentOf(settings);
      if (network === undefined) throw new UsageError("verify needs --deployment or DEPLOYMENT.");
      const { verifyContract } = await import("@working-contracts/client/verify/verify");
      const agent = await reader().catch((error: Error) => error);
      const result = await verifyContract(agent, id, {
        network,
        nodes: [rpcUrl, ...alsoRpc],
        onRetry: () => out.progress("differences found: reading both sides again"),
      });
      for (const one of result.notCompared) out.progress(`not compared: ${one}`);
      out.result(result, () => textOf(result));
      const { equal, fields } = result;
      const differences = fields.filter((one) => one.equal === false).length;
      if (!equal)
        throw new DifferenceError(`${differences} of ${fields.length} fields differ from the chain`);
    });
}

function textOf({ fields, steps }: Verification): string {
  const cell = (value: unknown): string => {
    const text = plain(typeof value === "string" ? value : JSON.stringify(value)).replaceAll("\n", " ");
    return text.length > 44 ? `${text.slice(0, 41)}...` : text;
  };
  const compared = table(
    ["", "field", "chain", "api"],
    fields.map(({ field, chain, api, equal }) =>
      equal === null
        ? ["not compared", field, cell(chain), ""]
        : [equal ? "=" : "DIFFERS", field, cell(chain), cell(api)],
    ),
  );
  const allowed = table(
    ["step", "party", "allowed by"],
    steps.map(({ step, party, allowedBy }) => [step, party, allowedBy]),
  );
  return `${compared}\n\n${allowed}`;
}
