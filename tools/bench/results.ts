/** The page docs/benchmarks.md: one section for each part that was measured. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";
import type { SoakResult } from "../soak/run.js";
import type { FloodResult } from "./flood.js";
import type { Freshness } from "./freshness.js";
import { round } from "./load.js";
import type { ProcessesResult } from "./processes.js";
import type { ReadResult } from "./read-path.js";
import type { StartUp } from "./start-up.js";
import { TABLES } from "./tables.js";
import type { WriteResult } from "./write-path.js";

/** The measurements of each part. */
export interface Results {
  write: WriteResult[];
  /** A fixed number of payments, each tried once, many at the same moment. */
  waves: WriteResult[];
  processes: ProcessesResult[];
  read: {
    reads: ReadResult[];
    floods: FloodResult[];
    freshness: Freshness;
    /** MiB resident, by process: before any load, and after all of it. */
    memory: Record<"idle" | "loaded", Record<string, number>>;
  };
  start: StartUp;
  soak: SoakResult;
}

export const PARTS = Object.keys(TABLES) as (keyof Results)[];
export const PAGE = "docs/benchmarks.md";

const [loadBefore = 0] = loadavg();

/** The tables of the measured parts, as Markdown. */
export function tablesOf(results: Partial<Results>): Map<keyof Results, string> {
  const measured = PARTS.filter((part) => results[part] !== undefined);
  return new Map(measured.map((part) => [part, tableOf(part, results)]));
}

function tableOf<P extends keyof Results>(part: P, results: Partial<Results>): string {
  return TABLES[part](results[part] as Results[P]);
}

/** Replaces the sections of the measured parts; the others keep their earlier results. */
export function writePage(results: Partial<Results>): void {
  const path = join(ROOT, PAGE);
  let page = readFileSync(path, "utf8");
  for (const [part, table] of tablesOf(results)) {
    const [start, end] = [`<!-- bench:${part}:start -->`, `<!-- bench:${part}:end -->`];
    const [from, to] = [page.indexOf(start), page.indexOf(end)];
    if (from === -1 || to < from) throw new Error(`${PAGE} lacks the marks ${start} and ${end}`);
    page = `${page.slice(0, from)}${start}\n\n${table}\n\n${describeRun()}\n\n${page.slice(to)}`;
  }
  writeFileSync(path, page);
}

function describeRun(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  // Load is the machine's, over a minute, before anything was started.
  const busy =
    loadBefore < 0.5 ? "" : `; the machine had other work at the same time (load ${round(loadBefore, 1)})`;
  return `Measured on ${new Date().toISOString().slice(0, 10)}, everything on one machine: ${cpus().length} cores (${cpu?.model ?? "unknown"}), ${memory} GiB, Node.js ${process.versions.node}${busy}.`;
}
