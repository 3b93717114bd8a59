/** Results as Markdown tables, for the terminal and the README. */
import { SEEDED } from "./read-path.js";
import type { Results } from "./results.js";
import { CONCURRENCIES, WAVE_PAYMENTS, type WriteResult } from "./write-path.js";

const SYSTEMS = ["working-contracts", "facilitator", "facilitator + nonce manager"] as const;

export function tablesOf(results: Results): string {
  return [
    writeTable(results),
    waveTable(results),
    readTable(results),
    otherTable(results),
    soakTable(results),
  ]
    .filter(Boolean)
    .join("\n\n");
}

function writeTable({ writes = [] }: Results): string {
  if (writes.length === 0) return "";
  const lines = [
    "Payments settled per second, failed payments, and p50 / p95 / p99 in ms of settled payments. Each payer signs its next payment as soon as it has a response. The facilitator is the official one, with its example's settings and with viem's nonce manager, on the same chain in the same run:",
    "",
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

function waveTable({ waves = [] }: Results): string {
  if (waves.length === 0) return "";
  const rows = CONCURRENCIES.slice(1).map((concurrency) => {
    const cells = cellsOf(
      waves.filter((wave) => wave.concurrency === concurrency),
      ({ succeeded, perSecond }) => `${succeeded} of ${WAVE_PAYMENTS}, ${perSecond}/s`,
    );
    return `| ${concurrency} | ${cells} |`;
  });
  return [
    `${WAVE_PAYMENTS} payments on 1 s blocks, each tried once, in waves of simultaneous payments. A wave starts once the previous one has all its responses:`,
    "",
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

function readTable({ reads }: Results): string {
  if (reads === undefined) return "";
  const rows = reads.map(
    ({ call, perSecond, failed, latency }) =>
      `| ${call} | ${perSecond} | ${failed} | ${latency.p50} / ${latency.p95} / ${latency.p99} |`,
  );
  const concurrency = reads[0]?.concurrency ?? 0;
  return [
    `| Read (${concurrency} concurrent, ${SEEDED.toLocaleString("en")} contracts) | per second | failed | p50 / p95 / p99 ms |`,
    "| --- | ---: | ---: | --- |",
    ...rows,
  ].join("\n");
}

function otherTable({ freshness, memory, startUp }: Results): string {
  const rows: string[] = [];
  if (freshness !== undefined) {
    const { row, answer } = freshness;
    rows.push(`| From a block to the visible row, p50 / p95 | ${row.p50} / ${row.p95} ms |`);
    rows.push(`| From a block to the paid call's response, p50 / p95 | ${answer.p50} / ${answer.p95} ms |`);
  }
  if (startUp !== undefined) {
    rows.push(`| From \`npm start\` to ready: new folder / again | ${startUp.first} / ${startUp.again} s |`);
  }
  for (const [name, idle] of Object.entries(memory?.idle ?? {})) {
    rows.push(`| Memory of the ${name}: idle / after load | ${idle} / ${memory?.loaded[name]} MiB |`);
  }
  return rows.length === 0 ? "" : ["| | |", "| --- | ---: |", ...rows].join("\n");
}

function soakTable({ endurance }: Results): string {
  if (endurance === undefined) return "";
  const { minutes, agents, wrong, memory } = endurance;
  const rows = Object.entries(memory).map(
    ([name, { first, last, peak }]) => `| ${name} | ${first} | ${last} | ${peak} |`,
  );
  return [
    `| Memory during a soak of ${minutes} minutes, ${agents} agents, ${wrong} findings (MiB) | first | last | peak |`,
    "| --- | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}
