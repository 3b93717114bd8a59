/** Results as files, one per day, and as the tables of docs/benchmarks.md. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join, relative } from "node:path";
import { ROOT } from "../../src/root.js";
import type { Endurance } from "./endurance.js";
import type { Freshness } from "./freshness.js";
import { round } from "./load.js";
import type { ReadResult } from "./read-path.js";
import type { StartUp } from "./start-up.js";
import { tablesOf } from "./tables.js";
import type { WriteResult } from "./write-path.js";

export interface Results {
  writes?: WriteResult[];
  /** A fixed number of payments, each tried once, many at the same moment. */
  waves?: WriteResult[];
  reads?: ReadResult[];
  freshness?: Freshness;
  /** MiB resident, by process: before any load, and after all of it. */
  memory?: Record<"idle" | "loaded", Record<string, number>>;
  startUp?: StartUp;
  endurance?: Endurance;
}

/** What the numbers were measured on. */
interface About {
  measuredAt: string;
  node: string;
  machine: { cpu: string; cores: number; memoryGiB: number };
  /** Of the machine, over a minute, before anything was started: beyond 0.5 it had other work. */
  loadBefore: number;
}

const FOLDER = join(ROOT, "tools/bench/results");
const PAGE = join(ROOT, "docs/benchmarks.md");
const START = "<!-- bench:start -->";
const END = "<!-- bench:end -->";

const [loadBefore = 0] = loadavg();

/** Writes what was measured to the day's file; parts that were measured earlier that day stay. Answers its path. */
export function saveResults(measured: Results): string {
  const about: About = {
    measuredAt: new Date().toISOString(),
    node: process.version,
    machine: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
    },
    loadBefore: round(loadBefore, 1),
  };
  const file = join(FOLDER, `${about.measuredAt.slice(0, 10)}.json`);
  const earlier = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(file, `${JSON.stringify({ ...earlier, ...about, ...measured }, null, 2)}\n`);
  return relative(ROOT, file);
}

/** Replaces the text between the two marks of docs/benchmarks.md with the newest results of each part. */
export function writePage(): void {
  const days = readdirSync(FOLDER)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Results & About);
  if (days.length === 0) throw new Error("There are no results yet: npm run bench");
  const newest: Results = Object.assign({}, ...days);
  const about = days.flatMap((day) => {
    const shown = PARTS.filter(({ key }) => newest[key] !== undefined && day[key] === newest[key]);
    return shown.length === 0 ? [] : [describe(day, shown.map(({ name }) => name).join(", "))];
  });
  const page = readFileSync(PAGE, "utf8");
  const [start, end] = [page.indexOf(START), page.indexOf(END)];
  if (start === -1 || end < start) throw new Error(`docs/benchmarks.md lacks the marks ${START} and ${END}`);
  const tables = `${START}\n\n${about.join("\n")}\n\n${tablesOf(newest)}\n\n${END}`;
  writeFileSync(PAGE, page.slice(0, start) + tables + page.slice(end + END.length));
}

const PARTS: readonly { key: keyof Results; name: string }[] = [
  { key: "writes", name: "payments one after another" },
  { key: "waves", name: "payments at once" },
  { key: "reads", name: "reads" },
  { key: "freshness", name: "from block to row" },
  { key: "memory", name: "memory" },
  { key: "startUp", name: "start" },
  { key: "endurance", name: "soak" },
];

function describe({ machine, measuredAt, node, loadBefore: otherWork }: About, parts: string): string {
  const busy = otherWork < 0.5 ? "" : `; the machine had other work at the same time: load ${otherWork}`;
  return `- ${measuredAt.slice(0, 10)}, ${parts}: everything on one machine, ${machine.cores} cores (${machine.cpu}), ${machine.memoryGiB} GiB, Node.js ${node.slice(1)}${busy}.`;
}
