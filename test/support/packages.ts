/** The documented programs of the packages and of the stock x402 clients. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ROOT } from "../../src/root.js";
import { codeBlocks } from "./text-blocks.js";

/** The address of `npm start`, which the documents' programs use. */
export const DEFAULT_URL = "http://127.0.0.1:3000";
/** Clients of x402 that docs/x402.md has a program for. */
export const STOCK_CLIENTS = ["@x402/fetch", "@x402/axios", "x402-fetch"];

/** The programs of a document, at their default address. */
export function documentedPrograms(path: string): string[] {
  return codeBlocks(readFileSync(resolve(ROOT, path), "utf8"), "js");
}

/** The programs of the installed client's README, as one. */
export function clientProgram(dir: string, baseUrl: string): string {
  const readme = join(dir, "node_modules/@working-contracts/client/README.md");
  return documentedPrograms(readme).join("\n").replaceAll(DEFAULT_URL, baseUrl);
}

export function stockProgram(client: string, baseUrl: string): string {
  const [common, ...programs] = documentedPrograms("docs/x402.md");
  const program = programs.find((one) => one.includes(`from "${client}"`)) as string;
  return `${common}\n${program}`.replaceAll(DEFAULT_URL, baseUrl);
}

/** The client's program with a price above its default limit, and the setting that docs/x402.md names for that. */
export function stockProgramAboveLimit(client: string, baseUrl: string): string {
  const table = readFileSync(join(ROOT, "docs/x402.md"), "utf8");
  const row = table.split("\n").find((line) => line.startsWith(`| \`${client}\``));
  const [, setting] = /\| `([^`]+)`(?:, in units of 0\.000001)? \|$/.exec(row ?? "") ?? [];
  const program = stockProgram(client, baseUrl)
    .replace(/budgetOrPrice: "[^"]+"/, 'budgetOrPrice: "50"')
    .replace('usd: "10"', 'usd: "100"');
  if (setting === undefined) return program;
  if (setting.startsWith("client.")) return program.replace(/^const paying/m, `${setting};\n$&`);
  return program.replace(/wrapFetchWithPayment\(fetch, account\)/, setting);
}
