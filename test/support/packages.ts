/**
 * The published packages as users get them, packed and then installed outside this repository, and the documented
 * programs of the packages and of the stock x402 clients.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { writePackages } from "../../tools/build.mjs";
import { codeBlocks } from "./text-blocks.js";

/** The address of `npm start`, which the documents' programs use. */
export const DEFAULT_URL = "http://127.0.0.1:3000";
/** Clients of x402 that docs/x402.md has a program for. */
export const STOCK_CLIENTS = ["@x402/fetch", "@x402/axios", "x402-fetch"];

export interface Project {
  dir: string;
  remove(): void;
}

/** An empty project in a temporary folder, into which these packages are installed. */
export async function newProject(...specifiers: readonly string[]): Promise<Project> {
  const dir = mkdtempSync(join(tmpdir(), "project-"));
  writeFileSync(join(dir, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await npm(dir, "install", ...specifiers);
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Tarballs of the client and the command line, as `npm publish` would send them. */
export async function packPackages(): Promise<{ client: string; cli: string; remove(): void }> {
  const dir = mkdtempSync(join(tmpdir(), "packages-"));
  await writePackages(dir);
  const pack = async (name: string): Promise<string> => {
    const output = await npm(dir, "pack", "--silent", join(dir, name));
    return join(dir, output.trim());
  };
  const [client, cli] = [await pack("client"), await pack("cli")];
  return { client, cli, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

async function npm(cwd: string, ...args: string[]): Promise<string> {
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
  const { stdout } = await promisify(execFile)("npm", [...args, ...quiet], { cwd });
  return stdout;
}

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

/** Each stock client and what it needs, in the tested version. */
export function stockClients(): string[] {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "test/clients/package.json"), "utf8"));
  return Object.entries(dependencies).map(([name, version]) => `${name}@${version}`);
}
