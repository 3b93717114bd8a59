/** The terminal: results on stdout, as tables or as JSON; progress, questions and errors on stderr. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Contract } from "@working-contracts/client/index";
import { visibleJson, visibleText } from "@working-contracts/protocol/json";
import { UsageError } from "./errors.js";

/** Both write the text as it is, without a line break after it. */
export interface Streams {
  stdout: (text: string) => void;
  stderr: (text: string) => void;
}

/** Escapes everything that could control the terminal, also in texts of other parties. */
export type Output = ReturnType<typeof createOutput>;

/** With `json`, results are printed as JSON, otherwise as text for people. */
export function createOutput({ json = false }: { json?: boolean | undefined }, { stdout, stderr }: Streams) {
  return {
    result: (value: unknown, human: () => string): void =>
      stdout(`${json ? visibleJson(value, 2) : plain(human())}\n`),
    progress: (line: string): void => stderr(`${oneLine(line)}\n`),
  };
}

/** Pads each column to its widest cell. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows].map((row) => row.map(oneLine));
  const widths = header.map((_, i) => Math.max(...all.map((row) => (row[i] ?? "").length)));
  return all
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Two columns, `name  value`. */
export function fields(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(value)}`).join("\n");
}

const LINE_BREAKS = /[\n\u2028\u2029]/g;

/** A line break in a title could fake a table row or a prompt. */
export function oneLine(text: string): string {
  return plain(text).replaceAll(LINE_BREAKS, " ").replaceAll("\t", " ");
}

/** Keeps line breaks, but no line after the first begins like one of ours. */
export function indented(text: string): string {
  return plain(text).replaceAll(LINE_BREAKS, "\n  ");
}

/** Makes text from others safe for a terminal: an escape sequence in a title could rewrite the output. */
export const plain = visibleText;

/** The service's word, which will be pasted into a shell; undefined if it could be more than a name there. */
export const pasted = (word: string | null): string | undefined => word?.match(/^\w[\w-]*$/)?.[0];

/** Several lines. No text of another party can look like one of ours. */
export function describeContract(contract: Contract): string {
  const { criteriaMet } = contract;
  return [
    fields([
      ["id", contract.id],
      ["status", contract.status],
      ["title", contract.title],
      ["price", contract.budgetOrPrice],
      ["award", contract.awardMethod],
      ["client", contract.client ?? "none yet"],
      ["worker", contract.worker ?? "none yet"],
      ["match by", contract.matchDeadline],
      ["withdraw by", contract.withdrawalDeadline],
      ["deliver by", contract.deliveryDeadline],
      ["review by", contract.reviewDeadline],
      ["in escrow", contract.escrowedFunds ?? "none"],
      ["stake", contract.workerStake ?? "none"],
      ["dispute bond", contract.disputeBond ?? "none"],
      ["voters", String(contract.backupAgents.length)],
    ]),
    "",
    `  ${indented(contract.taskDescription)}`,
    "",
    ...contract.acceptanceCriteria.map(
      (text, i) => `${i}. [${criteriaMet?.[i] ?? "undecided"}] ${oneLine(text)}`,
    ),
  ].join("\n");
}

/** Whether a person can be asked. Standard output can be a pipe. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Reads a line without echoing it. Throws UsageError with the message `otherwise` without a terminal or an answer. */
export async function askSecret(question: string, otherwise: string): Promise<string> {
  if (!isInteractive()) throw new UsageError(otherwise);
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return await lines.question("").catch(() => Promise.reject(new UsageError(otherwise)));
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}

/** Asks on stderr. Only `y` and `yes` confirm; Ctrl-C does not. */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await lines.question(`${oneLine(question)} [y/N] `).catch(() => "");
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
