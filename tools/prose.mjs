/** Counts phrases that read like a translation; limits are rates. See docs/build.md, "A script checks the prose". */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isMain, ROOT } from "./run.mjs";

/** Phrases per 1,000 words, over all patterns. */
const TOTAL_LIMIT = 1.5;
/** Limits are phrases per 1,000 words; a pattern without one counts towards the total alone. */
const PATTERNS = [
  {
    pattern:
      /\bwhere (?:it|there|that|they|one|the|a|an|its|he|nothing|this|none|you|both|all|another|no|even|neither|who|what|those|each|we|these)\b/g,
    limit: 0.5,
    suggestion: 'use "if" or "when" for conditions; keep "where" for places',
  },
  {
    pattern: /(?:^\W*|[.;:] )(?:What|Whom?|Whose) (?!if\b)[a-z]\w*(?![^.!?]*\?)/gm,
    limit: 0.05,
    suggestion: "begin with the subject, then the verb",
  },
  {
    pattern: /\b(?:some|any|no|every)body\b/gi,
    limit: 0,
    suggestion: "someone, anyone, no one, everyone",
  },
  {
    pattern: /\b(?:anew|by and by|all the same|ever after)\b/gi,
    limit: 0,
    suggestion: "from scratch, again, nevertheless, from then on; or leave it out",
  },
  {
    pattern: /\b(?:of (?:its|their) own|by (?:itself|themselves)|once more)\b/gi,
    limit: 0.04,
    suggestion: "own, separate, automatically, again; or leave it out",
  },
  { pattern: /\bmay\b/g, limit: 1.1, suggestion: '"can" for ability; "may" only for permission' },
  {
    pattern: /\b(?:(?:is|are|was|were|to be) told|told by|tells (?:of|no one))\b/gi,
    limit: 0,
    suggestion: "is notified, is reported, reports",
  },
  {
    pattern: /\b(?:go|goes|going|went) on\b(?! chain)/gi,
    limit: 0,
    suggestion: "continues, resumes, happens",
  },
  { pattern: /\bon (?:its|their) way\b/gi, limit: 0, suggestion: "pending" },
  { pattern: /\b(?:no more\b(?! than)|any more\b)/gi, suggestion: "no longer, any longer" },
  { pattern: /(?:[;,] else\b|\belse it\b|\b(?:could|would) else\b)/gi, suggestion: "otherwise" },
  { pattern: /(?:\bwith it\b,|\bof it that\b|\band with it\b)/gi, suggestion: "name the thing" },
  {
    pattern: /\b(?:is|are|was|were) of (?:the|these|this|another|an|what|a)\b/gi,
    suggestion: "belongs to, matches, comes from",
  },
  {
    pattern: /\bg(?:ives?|iven|ave) (?:up|back)\b/gi,
    suggestion: "returns, refunds, releases, stops, abandons",
  },
  { pattern: /\b(?:as ever|for ever)\b/gi, suggestion: "as before, forever" },
  { pattern: /, too\b/gi, suggestion: 'put "also" before the verb, or leave it out' },
];
const GENERATED =
  /^(?:packages\/protocol\/src\/abi|packages\/client\/src\/api|src\/indexer\/ponder-env\.d)\.ts$/;
/** The tokens of a source file that contain quotes or slashes. Regular expressions match so that they are skipped. */
const TOKENS = new RegExp(
  [
    /(?<comment>\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*)/,
    /(?<=(?:[(=:,[!&|?{;]|=>|return)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//,
    /(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);
const JSX_TEXT = /(?<=>)[^<>{}=;]+(?=[<{])/g;
const SQL = /^\s*(?:select|insert|update|delete|with|create|alter|drop|truncate|begin|exists|case|and|or)\b/;

/** The sum of marked phrases in all comments, per 1,000 words. */
export function rateOfComments() {
  return totalRate(count(texts().filter(({ kind }) => kind === "comment")));
}

/** The faults, one for each line and with a suggestion; null if all rates are within their limits. */
export function checkProse() {
  const counted = count(texts());
  const isOverTotal = totalRate(counted) > TOTAL_LIMIT;
  const lines = PATTERNS.flatMap(({ limit = Infinity, suggestion }, index) => {
    const hits = counted.hits[index];
    const isFaulty = isOverTotal || rateOf(hits.length, counted.words) > limit;
    return isFaulty ? hits.map((hit) => `${hit}: ${suggestion}`) : [];
  });
  return lines.length === 0 ? null : lines.join("\n");
}

function count(segments) {
  const hits = PATTERNS.map(() => []);
  let words = 0;
  for (const { path, line, text } of segments) {
    words += text.split(/\s+/).filter(Boolean).length;
    // A phrase can continue on the next line. Positions stay, as a space replaces the line feed.
    const flat = text.replaceAll(/\n(?!\s*(?:\n|[-*|#]|\d+\. ))/g, " ");
    PATTERNS.forEach(({ pattern }, index) => {
      for (const match of flat.matchAll(pattern)) {
        const start = match.index + match[0].search(/\w/);
        const at = line + (text.slice(0, start).match(/\n/g)?.length ?? 0);
        hits[index].push(`${path}:${at}: "${match[0].slice(match[0].search(/\w/))}"`);
      }
    });
  }
  return { hits, words };
}

const rateOf = (times, words) => (1000 * times) / Math.max(words, 1);
const totalRate = ({ hits, words }) => rateOf(hits.flat().length, words);

/** Paths of all files that git tracks, but for those that have been deleted since. */
export function trackedFiles() {
  const paths = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trimEnd().split("\n");
  return paths.filter((path) => existsSync(join(ROOT, path)));
}

/** Every text that people read, with its file and first line. */
function texts() {
  return trackedFiles()
    .filter((path) => /\.(?:ts|tsx|mjs|js|sol|md|tree|ya?ml)$/.test(path) && !GENERATED.test(path))
    .flatMap((path) => {
      const source = readFileSync(join(ROOT, path), "utf8");
      return /\.(?:md|tree|ya?ml)$/.test(path) ? [markdown(path, source)] : sourceTexts(path, source);
    });
}

function markdown(path, source) {
  const withoutBlocks = source.replaceAll(/^( *)```[\s\S]*?^\1```/gm, (block) =>
    block.replaceAll(/[^\n]/g, ""),
  );
  return { path, kind: "markdown", line: 1, text: withoutCode(withoutBlocks) };
}

function sourceTexts(path, source) {
  const found = [];
  const hasMessages = /^(?:src|packages|tools)\//.test(path);
  for (const { index, 0: token, groups } of source.matchAll(TOKENS)) {
    const line = lineAt(source, index);
    if (groups.comment !== undefined) {
      const text = token.replaceAll(/^\/\*+|\*+\/$|^[ \t]*(?:\/\/+|\*(?!\/))/gm, "");
      found.push({ path, kind: "comment", line, text: withoutCode(text) });
    } else if (groups.string !== undefined && hasMessages && !source.slice(0, index).endsWith("sql")) {
      const text = token.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, "…");
      if (isMessage(text)) found.push({ path, kind: "message", line, text });
    }
  }
  if (!path.endsWith(".tsx") || !hasMessages) return found;
  const jsx = [...source.matchAll(JSX_TEXT)].filter(({ 0: text }) => isMessage(text));
  return [
    ...found,
    ...jsx.map(({ index, 0: text }) => ({ path, kind: "message", line: lineAt(source, index), text })),
  ];
}

const isMessage = (text) => text.trim().split(/\s+/).length >= 4 && !SQL.test(text);
const withoutCode = (text) => text.replaceAll(/`[^`\n]*`/g, "``");
const lineAt = (source, index) => source.slice(0, index).split("\n").length;

if (isMain(import.meta)) {
  const faults = checkProse();
  if (faults !== null) {
    console.error(faults);
    process.exitCode = 1;
  }
}
