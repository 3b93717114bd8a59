/** `npm run size`: how much text the repository holds. Blank lines and comments count; files that git ignores do not. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rateOfComments } from "./prose.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const GENERATED = [
  /^packages\/protocol\/src\/abi\.ts$/,
  /^packages\/client\/src\/api\.ts$/,
  /^src\/db\/migrations\//,
  /^src\/indexer\/ponder-env\.d\.ts$/,
  /^test\/contracts\/snapshots\//,
];
const SOURCE = /^(?:src|packages|tools)\/.*\.(?:ts|tsx|mjs|css|js|md)$/;
const TEST = /^test\/.*\.(?:ts|tsx|mjs|sol|tree)$/;

const paths = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trimEnd().split("\n");
const generated = paths.filter((path) => GENERATED.some((pattern) => pattern.test(path)));
const handwritten = paths.filter((path) => !generated.includes(path));
const source = handwritten.filter((path) => SOURCE.test(path));

const rows = {
  "Handwritten lines in src, packages and tools": linesOf(source),
  "Handwritten lines in test": linesOf(handwritten.filter((path) => TEST.test(path))),
  "Generated lines that are committed": linesOf(generated),
  "Handwritten source files in src, packages and tools": source.length,
  "Marked phrases per 1,000 words of comments": rateOfComments(),
};
for (const [name, value] of Object.entries(rows)) {
  const text = value.toLocaleString("en", { maximumFractionDigits: 1 });
  console.log(`${name.padEnd(52)}${text.padStart(8)}`);
}

function linesOf(files) {
  return files.reduce((sum, path) => sum + lineCount(readFileSync(join(ROOT, path), "utf8")), 0);
}

function lineCount(text) {
  return text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
}
