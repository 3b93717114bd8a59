/** `npm run size`: how much text the repository holds. Blank lines and comments count; files that git ignores do not. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { rateOfComments, trackedFiles } from "./prose.mjs";
import { ROOT } from "./run.mjs";

const GENERATED = [
  /^packages\/protocol\/src\/abi\.ts$/,
  /^packages\/client\/src\/(?:abi|api|deployed-code)\.ts$/,
  /^src\/db\/migrations\//,
  /^src\/indexer\/ponder-env\.d\.ts$/,
  /^test\/contracts\/snapshots\//,
];
const SOURCE = /^(?:src|packages|tools)\/.*\.(?:ts|tsx|mjs|css|js|md)$/;
const TEST = /^test\/.*\.(?:ts|tsx|mjs|sol|tree)$/;

const paths = trackedFiles();
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
  const countIn = (path) => readFileSync(join(ROOT, path), "utf8").match(/.*\n|.+$/g)?.length ?? 0;
  return files.reduce((sum, path) => sum + countIn(path), 0);
}
