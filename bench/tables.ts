/** Results as Markdown tables, the same on the terminal and in the README. */
import { SEEDED } from "./read-path.js";
import type { Results } from "./results.js";
import { CONCURRENCIES } from "./write-path.js";

const SYSTEMS = ["working-contracts", "facilitator", "facilitator + nonce manager"] as const;

export function tablesOf(results: Results): string {
  return [writeTable(results), readTable(results), otherTable(results)].filter(Boolean).join("\n\n");
}

function writeTable({ writes }: Results): string {
  if (writes === undefined) return "";
  const lines = [
    "Payments settled a second, payments that failed, p50 / p95 / p99 in ms of those settled. Each payer signs the next one as soon as it is answered. The facilitator is the official one with its example's settings, and with viem's nonce manager, on the same chain in the same run:",
    "",
    "| Chain | Payers | This service | Official facilitator | with nonce manager |",
    "| --- | ---: | --- | --- | --- |",
  ];
  for (const mining of [...new Set(writes.map((write) => write.mining))]) {
    for (const concurrency of CONCURRENCIES) {
      const cells = SYSTEMS.map((system) => {
        const found = writes.find(
          (write) => write.mining === mining && write.concurrency === concurrency && write.system === system,
        );
        if (found === undefined) return "";
        const { perSecond, failed, latency } = found;
        return `${perSecond}/s, ${failed} failed, ${latency.p50} / ${latency.p95} / ${latency.p99}`;
      });
      lines.push(`| ${mining} | ${concurrency} | ${cells.join(" | ")} |`);
    }
  }
  return lines.join("\n");
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
    rows.push(`| From a block to the paid call's answer, p50 / p95 | ${answer.p50} / ${answer.p95} ms |`);
  }
  if (startUp !== undefined) {
    rows.push(`| From \`npm start\` to ready: new folder / again | ${startUp.first} / ${startUp.again} s |`);
  }
  for (const [name, idle] of Object.entries(memory?.idle ?? {})) {
    rows.push(`| Memory of the ${name}: idle / after load | ${idle} / ${memory?.loaded[name]} MiB |`);
  }
  return rows.length === 0 ? "" : ["| | |", "| --- | ---: |", ...rows].join("\n");
}
