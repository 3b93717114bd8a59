/** `wcontract verify` checks the service's responses against the chain, `wcontract receipts` what services signed. */
import { join } from "node:path";
import type { Verification } from "@working-contracts/client/index";
import { factsOf } from "@working-contracts/client/receipts";
import { isoTime } from "@working-contracts/protocol/time";
import type { Command } from "commander";
import { type Context, deploymentOf } from "../context.js";
import { UsageError } from "../errors.js";
import { readNamed } from "../files.js";
import { plain, table } from "../terminal.js";

/** Adds `verify`, which fails if a field differs from the chain. It also runs without the service. */
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
      if (!equal) throw new Error(`${differences} of ${fields.length} fields differ from the chain`);
    });
}

function textOf({ fields, steps }: Verification): string {
  const cell = (value: unknown): string => {
    // A field that one side leaves out has no JSON.
    const text = plain(typeof value === "string" ? value : `${JSON.stringify(value)}`).replaceAll("\n", " ");
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

/** Adds `receipts`, whose `check` works offline and fails if any receipt proves nothing. */
export function addReceiptCommands(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("receipts")
    .description("the offers and receipts that services signed")
    .command("check [file]")
    .description("check kept receipts offline, by default this machine's, with the keys kept beside them")
    .action(async (given: string | undefined, _: unknown, command: Command) => {
      const { settings, out } = contextOf(command);
      const file = given ?? join(settings.configDir, "receipts.jsonl");
      const results = await Promise.all(readNamed(file).trim().split("\n").map(check));
      out.result(results, () =>
        table(
          ["paid", "to", "base units", "of token", "transaction", "signed by", ""],
          results.map(({ at, payTo, amount, asset, transaction, keys, fault }) =>
            [at, payTo, amount, asset, transaction, keys.join(" "), fault ?? "valid"].map((text) =>
              plain(String(text ?? "")),
            ),
          ),
        ),
      );
      const invalid = results.filter(({ fault }) => fault !== null).length;
      if (invalid > 0) throw new Error(`${invalid} of ${results.length} receipts prove nothing`);
    });
}

/** Both must be of the same call. A fault that was noticed at the payment stays one, and so is a line that a crash cut off. */
async function check(line: string) {
  let keys: string[] = [];
  try {
    const kept = JSON.parse(line);
    const proof = { offer: null, receipt: null, fault: null, ...kept, keys: kept?.keys ?? {} };
    keys = Object.keys(proof.keys);
    const [offer = {}, receipt = {}] = await factsOf(proof);
    const { payTo, amount, asset } = offer;
    const { transaction, issuedAt } = receipt;
    const isSame = ["network", "resourceUrl"].every((field) => offer[field] === receipt[field]);
    const fault = proof.fault ?? (isSame ? null : "the offer and the receipt are of different calls");
    return { at: isoTime(Number(issuedAt)), payTo, amount, asset, transaction, keys, fault };
  } catch (error) {
    return { keys, fault: (error as Error).message };
  }
}
