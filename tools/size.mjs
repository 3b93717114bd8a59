/**
 * `npm run size`: the repository's weight next to the goals that were set for it. Blank lines and comments count; files
 * that git ignores do not. `npm run size:payment` counts the files of one paid create (goal: 35).
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packagesOfStart } from "./install.mjs";
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
const TEST = /^test\/.*\.(?:ts|tsx|mjs|sol|tree|diff)$/;

const paths = trackedFiles();
const generated = paths.filter((path) => GENERATED.some((pattern) => pattern.test(path)));
const handwritten = paths.filter((path) => !generated.includes(path));
const source = handwritten.filter((path) => SOURCE.test(path));

const rows = [
  ["Handwritten lines in src, packages and tools", linesOf(source), 26_000],
  ["Handwritten lines in test", linesOf(handwritten.filter((path) => TEST.test(path))), 28_000],
  ["Generated lines that are committed", linesOf(generated), 4000],
  ["Handwritten source files in src, packages and tools", source.length, 240],
  ["Marked phrases per 1,000 words of comments", rateOfComments(), 1.5],
  ["Packages that npm start installs", packagesOfStart().length, 350],
];
for (const [name, ...values] of [["", "now", "goal"], ...rows]) {
  const texts = values.map((value) => value.toLocaleString("en", { maximumFractionDigits: 1 }).padStart(8));
  console.log(`${name.padEnd(52)}${texts.join("")}`);
}

function linesOf(files) {
  const countIn = (path) => readFileSync(join(ROOT, path), "utf8").match(/.*\n|.+$/g)?.length ?? 0;
  return files.reduce((sum, path) => sum + countIn(path), 0);
}
