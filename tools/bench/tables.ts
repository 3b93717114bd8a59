/** Results as Markdown tables, the same on the terminal and on the page. */
import { SEEDED } from "./read-path.js";
import type { Results } from "./results.js";
import { CONCURRENCIES, WAVE_PAYMENTS, type WriteResult } from "./write-path.js";

const SYSTEMS = ["working-contracts", "facilitator", "facilitator + nonce manager"] as const;

/** One table for each part, in the order of the page. */
export const TABLES: { [P in keyof Results]: (results: Results[P]) => string } = {
  write: writeTable,
  waves: waveTable,
  read: readTables,
  start: startTable,
  soak: soakTable,
};

function writeTable(writes: WriteResult[]): string {
  const lines = [
    "| Chain | Payers | This service | Official facilitator | with nonce manager |",
    "| --- | ---: | --- | --- | --- |",
  ];
  for (const mining of new Set(writes.map((write) => write.mining))) {
    for (const concurrency of CONCURRENCIES) {
      const cells = cellsOf(
        writes.filter((write) => write.mining === mining && write.concurrency === concurrency),
        ({ perSecond, failed, latency: { p50, p95, p99 } }) =>
          `${perSecond}/s, ${failed} failed, ${p50} / ${p95} / ${p99}`,
      );
      lines.push(`| ${mining} | ${concurrency} | ${cells} |`);
    }
  }
  return lines.join("\n");
}

function waveTable(waves: WriteResult[]): string {
  const rows = CONCURRENCIES.slice(1).map((concurrency) => {
    const cells = cellsOf(
      waves.filter((wave) => wave.concurrency === concurrency),
      ({ succeeded, perSecond }) => `${succeeded} of ${WAVE_PAYMENTS}, ${perSecond}/s`,
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

function readTables({
  reads,
  freshness: { row, answer },
  memory: { idle, loaded },
}: Results["read"]): string {
  const concurrency = reads[0]?.concurrency ?? 0;
  return [
    `| Read (${concurrency} concurrent, ${SEEDED.toLocaleString("en")} contracts) | per second | failed | p50 / p95 / p99 ms |`,
    "| --- | ---: | ---: | --- |",
    ...reads.map(
      ({ call, perSecond, failed, latency: { p50, p95, p99 } }) =>
        `| ${call} | ${perSecond} | ${failed} | ${p50} / ${p95} / ${p99} |`,
    ),
    "",
    "| | |",
    "| --- | ---: |",
    `| From a block to the visible row, p50 / p95 | ${row.p50} / ${row.p95} ms |`,
    `| From a block to the response of the paid call, p50 / p95 | ${answer.p50} / ${answer.p95} ms |`,
    ...Object.entries(idle).map(
      ([name, before]) => `| Memory of the ${name}: idle / after load | ${before} / ${loaded[name]} MiB |`,
    ),
  ].join("\n");
}

function startTable({ first, again }: Results["start"]): string {
  return [
    "| Data folder | Seconds |",
    "| --- | ---: |",
    `| new | ${first} |`,
    `| existing | ${again} |`,
  ].join("\n");
}

function soakTable({ minutes, agents, wrong, memory }: Results["soak"]): string {
  return [
    `| Memory over ${minutes} minutes, ${agents} agents, ${wrong} findings (MiB) | first | last | maximum |`,
    "| --- | ---: | ---: | ---: |",
    ...Object.entries(memory).map(
      ([name, { first, last, peak }]) => `| ${name} | ${first} | ${last} | ${peak} |`,
    ),
  ].join("\n");
}
