/** The page docs/benchmarks.md: one section for each part that was measured, with tables as on the terminal. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";
import type { SoakResult } from "../soak/run.js";
import { FLOOD_RATE, type FloodResult } from "./flood.js";
import type { FormerResult } from "./former.js";
import { type Load, percentiles, round } from "./load.js";
import { type Freshness, type ReadResult, SEEDED } from "./read-path.js";
import {
  CONCURRENCIES,
  type ProcessesResult,
  SYSTEMS,
  WAVE_PAYMENTS,
  type WriteResult,
} from "./write-path.js";

/** The measurements of each part. */
export interface Results {
  write: WriteResult[];
  /** A fixed number of payments, each tried once, many at the same moment. */
  waves: WriteResult[];
  former: FormerResult[];
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
    /** Seconds in a new clone, its install included. */
    clone: number;
    /** Seconds with a new data folder, with dependencies installed. */
    first: number;
    again: number;
  };
  soak: SoakResult;
}

/** One table for each part, in the order of the page. */
const TABLES: { [P in keyof Results]: (results: Results[P]) => string } = {
  write: writeTable,
  waves: waveTable,
  former: formerTable,
  processes: processesTable,
  read: readTables,
  start: startTable,
  soak: soakTable,
};

export const PARTS = Object.keys(TABLES) as (keyof Results)[];
export const PAGE = "docs/benchmarks.md";

const [loadBefore = 0] = loadavg();

/** The tables of the measured parts, as Markdown. */
export function tablesOf(results: Partial<Results>): Map<keyof Results, string> {
  const measured = PARTS.filter((part) => results[part] !== undefined);
  return new Map(measured.map((part) => [part, TABLES[part](results[part] as never)]));
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

function writeTable(writes: WriteResult[]): string {
  const lines = [
    "| Chain | Payers | This service | Official facilitator | with nonce manager | Quotes of this service, p50 / p95 / p99 |",
    "| --- | ---: | --- | --- | --- | --- |",
  ];
  for (const mining of new Set(writes.map((write) => write.mining))) {
    const measured = writes.filter((write) => write.mining === mining);
    for (const concurrency of new Set(measured.map((write) => write.concurrency))) {
      const same = measured.filter((write) => write.concurrency === concurrency);
      const cells = cellsOf(
        same,
        ({ perSecond, failed, latency: { p50, p95, p99 } }) =>
          `${perSecond}/s, ${failed} failed, ${p50} / ${p95} / ${p99}`,
      );
      const { p50, p95, p99 } =
        same.find(({ system }) => system === SYSTEMS[0])?.quoteLatency ?? percentiles([]);
      lines.push(`| ${mining} | ${concurrency} | ${cells} | ${p50} / ${p95} / ${p99} |`);
    }
  }
  return [...lines, "", cpuTable(writes)].join("\n");
}

function cpuTable(results: WriteResult[]): string {
  return [
    "| Processor time a payment, ms | This service | Official facilitator | with nonce manager | SQL statements, RPC requests of this service |",
    "| --- | --- | --- | --- | --- |",
    ...results
      .filter(({ system }) => system === SYSTEMS[0])
      .map(({ mining, concurrency, sent }) => {
        const same = results.filter((one) => one.mining === mining && one.concurrency === concurrency);
        const cells = cellsOf(same, ({ cpu }) =>
          Object.entries(cpu)
            .map(([name, ms]) => `${name} ${ms}`)
            .join(", "),
        );
        const payers = concurrency === 1 ? "1 payer" : `${concurrency} payers`;
        return `| ${mining}, ${payers} | ${cells} | ${sent?.sql}, ${sent?.rpc} |`;
      }),
  ].join("\n");
}

function waveTable(waves: WriteResult[]): string {
  const rows = CONCURRENCIES.slice(1).map((concurrency) => {
    const cells = cellsOf(
      waves.filter((wave) => wave.concurrency === concurrency),
      ({ succeeded, perSecond }) => `${succeeded} of ${Math.max(WAVE_PAYMENTS, concurrency)}, ${perSecond}/s`,
    );
    return `| ${concurrency} | ${cells} |`;
  });
  return [
    "| At once | This service | Official facilitator | with nonce manager |",
    "| ---: | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

function cellsOf(results: readonly WriteResult[], describe: (result: WriteResult) => string): string {
  const cells = SYSTEMS.map((system) => {
    const found = results.find((result) => result.system === system);
    return found === undefined ? "" : describe(found);
  });
  return cells.join(" | ");
}

function formerTable(results: FormerResult[]): string {
  return [
    "| Code | Settled a second, p50 / p95 / p99 | Processor time a payment, ms | Service and Postgres |",
    "| --- | --- | --- | ---: |",
    ...results.map(({ code, load, cpu }) => {
      const { perSecond, failed, latency } = load;
      const each = Object.entries(cpu).map(([name, ms]) => `${name} ${ms}`);
      const both = round((cpu.service ?? 0) + (cpu.postgres ?? 0), 1);
      return `| ${code} | ${perSecond}/s, ${failed} failed, ${latency.p50} / ${latency.p95} / ${latency.p99} | ${each.join(", ")} | ${both} |`;
    }),
  ].join("\n");
}

function processesTable(results: Results["processes"]): string {
  const cell = ({ perSecond, failed, latency: { p50, p95 } }: Load) =>
    `${perSecond}/s, ${failed} failed, ${p50} / ${p95}`;
  return [
    `| API processes | Payments, 1 s blocks, ${results[0]?.payments.concurrency} payers | Get, ${results[0]?.gets.concurrency} concurrent |`,
    "| ---: | --- | --- |",
    ...results.map(({ processes, payments, gets }) => `| ${processes} | ${cell(payments)} | ${cell(gets)} |`),
  ].join("\n");
}

function readTables({
  reads,
  floods,
  freshness: { row, answer },
  idleCpu,
  memory: { idle, loaded },
}: Results["read"]): string {
  const concurrency = reads[0]?.concurrency ?? 0;
  return [
    `| Read (${concurrency} concurrent, ${SEEDED.toLocaleString("en")} contracts) | per second | failed | p50 / p95 / p99 ms | Bare Hono and pg, per second | Ratio |`,
    "| --- | ---: | ---: | --- | ---: | ---: |",
    ...reads.map(({ call, perSecond, failed, latency: { p50, p95, p99 }, bare }) => {
      const compared = bare ? `${bare.perSecond} | ${round(perSecond / bare.perSecond, 2)}` : " | ";
      return `| ${call} | ${perSecond} | ${failed} | ${p50} / ${p95} / ${p99} | ${compared} |`;
    }),
    "",
    `| List, newest 50, while one IP address sends ${FLOOD_RATE.toLocaleString("en")} requests a second | responses a second to it | p50 / p95 / p99 ms | failed |`,
    "| --- | ---: | --- | ---: |",
    ...floods.map(
      ({ flood, perSecond, victim: { latency, failed } }) =>
        `| ${flood} | ${perSecond ?? ""} | ${latency.p50} / ${latency.p95} / ${latency.p99} | ${failed} |`,
    ),
    "",
    "| | |",
    "| --- | ---: |",
    `| From a block to the visible row, p50 / p95 | ${row.p50} / ${row.p95} ms |`,
    `| From a block to the response of the paid call, p50 / p95 | ${answer.p50} / ${answer.p95} ms |`,
    `| Processor time while idle, 1 s blocks | ${Object.entries(idleCpu)
      .map(([name, share]) => `${name} ${share}`)
      .join(", ")} % of a core |`,
    ...Object.entries(idle).map(
      ([name, before]) =>
        `| Memory of ${name === "postgres" ? "Postgres" : `the ${name}`}: idle / after load | ${before} / ${loaded[name]} MiB |`,
    ),
  ].join("\n");
}

function startTable({ clone, first, again }: Results["start"]): string {
  return [
    "| From `npm start` to ready | Seconds |",
    "| --- | ---: |",
    `| new clone, install included | ${clone} |`,
    `| new data folder | ${first} |`,
    `| existing data | ${again} |`,
  ].join("\n");
}

function soakTable({ minutes, agents, contracts, payments, checks, usage }: Results["soak"]): string {
  return [
    `${minutes} minutes, ${agents} agents, ${contracts} contracts, ${payments} payments signed.`,
    "",
    "| Check | Checked | Wrong |",
    "| --- | ---: | ---: |",
    ...checks.map(({ name, looked, wrong }) => `| ${name} | ${looked} | ${wrong.length} |`),
    "",
    "| MiB | first | highest in the first half hour | highest later | last |",
    "| --- | ---: | ---: | ---: | ---: |",
    ...[...usage].map(
      ([name, { first, early, late, last }]) => `| ${name} | ${first} | ${early} | ${late ?? ""} | ${last} |`,
    ),
  ].join("\n");
}
