/** `wcontract receipts`: what services signed when they quoted and received payments. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PaymentProof } from "@working-contracts/client/index";
import { factsOf } from "@working-contracts/client/receipts";
import { isoTime } from "@working-contracts/protocol/time";
import type { Command } from "commander";
import type { Context } from "../context.js";
import { UsageError } from "../errors.js";
import { plain, table } from "../terminal.js";

class InvalidReceiptError extends Error {}

export function addReceiptCommands(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("receipts")
    .description("the offers and receipts that services signed")
    .command("check [file]")
    .description("check kept receipts offline, by default this machine's, with the keys kept beside them")
    .action(async (given: string | undefined, _: unknown, command: Command) => {
      const { settings, out } = contextOf(command);
      const file = given ?? join(settings.configDir, "receipts.jsonl");
      const results = await Promise.all(linesOf(file).map(check));
      out.result(results, () =>
        table(
          ["paid", "to", "amount", "transaction", "signed by", ""],
          results.map(({ at, payTo, amount, transaction, keys, fault }) =>
            [at, payTo, amount, transaction, keys.join(" "), fault ?? "valid"].map((text) =>
              plain(String(text ?? "")),
            ),
          ),
        ),
      );
      const invalid = results.filter(({ fault }) => fault !== null).length;
      if (invalid > 0)
        throw new InvalidReceiptError(`${invalid} of ${results.length} receipts prove nothing`);
    });
}

function linesOf(file: string): (PaymentProof | null)[] {
  try {
    const lines = readFileSync(file, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line));
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${(error as Error).message}`);
  }
}

/**
 * Both must be of the same call: one of them can belong to another payment. A fault that was noticed at the payment stays
 * one.
 */
async function check(line: PaymentProof | null) {
  const proof = { offer: null, receipt: null, fault: null, ...line, keys: line?.keys ?? {} };
  const keys = Object.keys(proof.keys);
  try {
    const [offer = {}, receipt = {}] = await factsOf(proof);
    const { payTo, amount } = offer;
    const { transaction, issuedAt } = receipt;
    const isSame = ["network", "resourceUrl"].every((field) => offer[field] === receipt[field]);
    const fault = proof.fault ?? (isSame ? null : "the offer and the receipt are of different calls");
    return { at: isoTime(Number(issuedAt)), payTo, amount, transaction, keys, fault };
  } catch (error) {
    return { keys, fault: (error as Error).message };
  }
}
