/** Prompts on stderr, because stdout is for results. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { UsageError } from "./exit-codes.js";

export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Reads a line without echoing it. Throws UsageError with the message `otherwise` if there is no terminal. */
export async function askSecret(question: string, otherwise: string): Promise<string> {
  if (!isInteractive()) throw new UsageError(otherwise);
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return await lines.question("");
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}

export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
