/** The page docs/benchmarks.md: one section for each part that was measured, with tables as on the terminal. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";
import { markdownTable } from "../generated.js";
import type { SoakResult } from "../soak/run.js";
import { FLOOD_RATE, type FloodResult } from "./flood.js";
import { type Load, round } from "./load.js";
import { type Freshness, type ReadResult, SEEDED } from "./read-path.js";
import { type ProcessesResult, SYSTEMS, type WriteResult } from "./write-path.js";

export interface Results {
  write: WriteResult[];
  /** A fixed number of payments, each tried once, many at the same moment. */
  waves: WriteResult[];
  processes: ProcessesResult[];
  read: {
    reads: ReadResult[];
    floods: FloodResult[];
    freshness: Freshness;
    /** Percent of a core, by process, while no one calls. */
    idleCpu: Record<string, number>;
    /** MiB resident, by process: before any load, and after all of it. */
    memory: Record<"idle" | "loaded", Record<string, number>>;
  };
  start: {
    /** Contents of the new clone's install. */
    packages: number;
    mib: number;
    /** Seconds in a new clone, its install with an empty npm cache included. */
    clone: number;
    /** Seconds with a new data folder, with dependencies installed. */
    first: number;
    again: number;
  };
  soak: SoakResult;
}

const TABLES: { [P in keyof Results]: (results: Results[P]) => string } = {
  write: writeTable,
  waves: waveTable,
  processes: processesTable,
  read: readTables,
  start: startTable,
  soak: soakTable,
};

export const PARTS = Object.keys(TABLES) as (keyof Results)[];
export const PAGE = "docs/benchmarks.md";

const [loadBefore = 0] = loadavg();

/** Replaces the section of a part; the others keep their earlier results. Returns its tables as Markdown. */
export function writePage<P extends keyof Results>(part: P, result: Results[P]): string {
  const path = join(ROOT, PAGE);
  const page = readFileSync(path, "utf8");
  const tables = TABLES[part](result);
  const [start, end] = [`<!-- bench:${part}:start -->`, `<!-- bench:${part}:end -->`];
  const [from, to] = [page.indexOf(start), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${PAGE} lacks the marks ${start} and ${end}`);
  const section = `${start}\n\n${tables}\n\n${describeRun()}\n\n`;
  writeFileSync(path, `${page.slice(0, from)}${section}${page.slice(to)}`);
  return tables;
}

function describeRun(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  // Load is the machine's, over a minute, before anything was started.
  const busy =
    loadBefore < 0.5 ? "" : `; the machine had other work at the same time (load ${round(loadBefore, 1)})`;
  return `Measured on ${new Date().toISOString().slice(0, 10)}, everything on one machine: ${cpus().length} cores (${cpu?.model ?? "unknown"}), ${memory} GiB, Node.js ${process.versions.node}${busy}.`;
}

const percentilesOf = ({ p50, p95, p99 }: Load["latency"]): string => `${p50} / ${p95} / ${p99}`;
const rateOf = ({ perSecond, failed, latency }: Load): string =>
  `${perSecond}/s, ${failed} failed, ${percentilesOf(latency)}`;
const listOf = (figures: Record<string, number>): string =>
  Object.entries(figures)
    .map(([name, figure]) => `${name} ${figure}`)
    .join(", ");

const SYSTEM_COLUMNS = ["This service", "Official facilitator", "with nonce manager"];

/** The results of all systems under each load, this service's first. */
function byLoad(results: readonly WriteResult[]): [WriteResult, ...WriteResult[]][] {
  const ours = results.filter(({ system }) => system === SYSTEMS[0]);
  return ours.map((own) => {
    const isSame = (one: WriteResult) => one.mining === own.mining && one.concurrency === own.concurrency;
    return [own, ...results.filter((one) => one !== own && isSame(one))];
  });
}

function writeTable(writes: WriteResult[]): string {
  const payments = byLoad(writes).map(([own, ...others]) => [
    own.mining,
    own.concurrency,
    ...[own, ...others].map(rateOf),
    percentilesOf(own.quoteLatency),
  ]);
  const times = byLoad(writes).map(([own, ...others]) => [
    `${own.mining}, ${own.concurrency} ${own.concurrency === 1 ? "payer" : "payers"}`,
    ...[own, ...others].map(({ cpu }) => listOf(cpu)),
    `${own.sent?.sql}, ${own.sent?.rpc}`,
  ]);
  const sent = "SQL statements, RPC requests of this service";
  return [
    markdownTable(
      ["Chain", "Payers", ...SYSTEM_COLUMNS, "Quotes of this service, p50 / p95 / p99"],
      payments,
    ),
    markdownTable(["Processor time a payment, ms", ...SYSTEM_COLUMNS, sent], times),
  ].join("\n\n");
}

function waveTable(waves: WriteResult[]): string {
  const rows = byLoad(waves).map((results) => [
    results[0].concurrency,
    ...results.map(
      ({ succeeded, failed, perSecond }) => `${succeeded} of ${succeeded + failed}, ${perSecond}/s`,
    ),
  ]);
  return markdownTable(["At once", ...SYSTEM_COLUMNS], rows);
}

function processesTable(results: Results["processes"]): string {
  const cell = ({ perSecond, failed, latency: { p50, p95 } }: Load) =>
    `${perSecond}/s, ${failed} failed, ${p50} / ${p95}`;
  const [first] = results;
  return markdownTable(
    [
      "API processes",
      `Payments, 1 s blocks, ${first?.payments.concurrency} payers`,
      `Get, ${first?.gets.concurrency} concurrent`,
    ],
    results.map(({ processes, payments, gets }) => [processes, cell(payments), cell(gets)]),
  );
}

function readTables({ reads, floods, freshness, idleCpu, memory }: Results["read"]): string {
  const { row, answer } = freshness;
  const contracts = SEEDED.toLocaleString("en");
  return [
    markdownTable(
      [
        `Read (${reads[0]?.concurrency} concurrent, ${contracts} contracts)`,
        ...["per second", "failed", "p50 / p95 / p99 ms", "Bare Hono and pg, per second", "Ratio"],
      ],
      reads.map(({ call, perSecond, failed, latency, bare }) => {
        const ratio = bare && round(perSecond / bare.perSecond, 2);
        return [call, perSecond, failed, percentilesOf(latency), bare?.perSecond, ratio];
      }),
    ),
    markdownTable(
      [
        `List, newest 50, while one IP address sends ${FLOOD_RATE.toLocaleString("en")} requests a second`,
        ...["responses a second to it", "p50 / p95 / p99 ms", "failed"],
      ],
      floods.map(({ flood, perSecond, victim }) => [
        flood,
        perSecond,
        percentilesOf(victim.latency),
        victim.failed,
      ]),
    ),
    markdownTable(
      ["", ""],
      [
        ["From a block to the visible row, p50 / p95", `${row.p50} / ${row.p95} ms`],
        ["From a block to the response of the paid call, p50 / p95", `${answer.p50} / ${answer.p95} ms`],
        ["Processor time while idle, 1 s blocks", `${listOf(idleCpu)} % of a core`],
        ...Object.entries(memory.idle).map(([name, before]) => [
          `Memory of ${name === "postgres" ? "Postgres" : `the ${name}`}: idle / after load`,
          `${before} / ${memory.loaded[name]} MiB`,
        ]),
      ],
    ),
  ].join("\n\n");
}

function startTable({ packages, mib, clone, first, again }: Results["start"]): string {
  const table = markdownTable(
    ["From `npm start` to ready", "Seconds"],
    [
      ["new clone, install included", clone],
      ["new data folder", first],
      ["existing data", again],
    ],
  );
  return `${table}\n\nThe install of the new clone: ${packages} packages, ${mib} MiB.`;
}

function soakTable({ minutes, agents, contracts, payments, checks, usage }: Results["soak"]): string {
  return [
    `${minutes} minutes, ${agents} agents, ${contracts} contracts, ${payments} payments signed.`,
    markdownTable(
      ["Check", "Checked", "Wrong"],
      checks.map(({ name, looked, wrong }) => [name, looked, wrong.length]),
    ),
    markdownTable(
      ["MiB", "first", "highest in the first half hour", "highest later", "last"],
      [...usage].map(([name, { first, early, late, last }]) => [name, first, early, late, last]),
    ),
  ].join("\n\n");
}
