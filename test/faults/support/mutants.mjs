/**
 * The mechanisms to switch off, one at a time. Each mutant must make its tests fail; otherwise the tests prove nothing.
 * `npm run test:mutants [-- name…]` applies each mutant to a copy of the sources and runs its tests there. They are in
 * mutants.diff, whose head says how to write one.
 */
import { readFileSync } from "node:fs";

/**
 * @typedef {object} Mutant
 * @property {string} file
 * @property {[from: string, to: string, file?: string][]} edits each `from` occurs exactly once in its file
 * @property {string} tests file of the tests
 * @property {string} only pattern of the tests that must fail
 */

const EDIT = /(?:@@(?: (.+))?\n)?((?:-.*\n)+)((?:\+.*\n)*)(?![-+])/g;
const MUTANT = new RegExp(`(?:(?:# (.+)\n)?## (.+)\n)?([a-z-]+): (.+)\n((?:${EDIT.source})+)`, "y");
const text = `${readFileSync(new URL("mutants.diff", import.meta.url), "utf8").trimEnd()}\n`;

/** @type {[name: string, Mutant][]} */
const mutants = [];
for (let at = text.indexOf("\n# ") + 1; at < text.length; at = MUTANT.lastIndex) {
  MUTANT.lastIndex = at;
  const above = mutants.at(-1)?.[1];
  const [, tests = above?.tests, file = above?.file, name, only, edits] = MUTANT.exec(text) ?? refuse(at);
  mutants.push([name, { file, edits: [...edits.matchAll(EDIT)].map(editOf), only, tests }]);
}

export const MUTANT_NAMES = mutants.map(([name]) => name);
export const MUTANTS = Object.fromEntries(mutants);

function editOf([, file, ...sides]) {
  const [from, to] = sides.map((lines) => lines.replaceAll(/^[-+]/gm, ""));
  return to === "" ? [from, to, file] : [from.slice(0, -1), to.slice(0, -1), file];
}

function refuse(at) {
  const line = text.slice(0, at).split("\n").length;
  throw new Error(`test/faults/support/mutants.diff:${line}: not a mutant as the head describes it`);
}
