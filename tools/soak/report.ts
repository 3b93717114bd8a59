/** The report of a soak: the checks with what was wrong, and its use of memory (Linux only) and disk space. */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import type { LedgerView } from "../../src/features/contracts/ledger.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { audit, readAs } from "../../test/faults/support/audit.js";
import type { Cluster } from "../../test/faults/support/cluster.js";
import type { Agent } from "../../test/support/agent.js";
import { textOf, until } from "../local/processes.js";
import type { Life } from "./agents.js";
import { SPARED } from "./faults.js";

export interface Check {
  name: string;
  looked: number;
  wrong: string[];
}

/** Adds a finding to each check that looked at nothing, and a check that faults were injected: such a run shows nothing. */
export function requireProof(checks: Check[], faults: ReadonlyMap<string, number>): Check[] {
  const injected = [...faults.values()].reduce((sum, count) => sum + count, 0);
  return [...checks, { name: "faults were injected", looked: injected, wrong: [] }].map((check) =>
    check.looked > 0 ? check : { ...check, wrong: [...check.wrong, `Nothing to check: ${check.name}`] },
  );
}

const BOOKS_TIMEOUT_MS = 90_000;

/** Findings of each check that are printed. */
const SHOWN = 20;

/** Assigns the audit's findings to checks, by their text. */
const AUDITED: [string, RegExp][] = [
  ["nothing is stuck in the outbox", /^(operation|batch) \d+/],
  ["escrows hold, or paid, what the ledger says", /^escrow /],
  ["chain, outbox, index and API agree", /^(contract|block of batch) /],
  ["account nonces are all accounted for", /nonces/],
];

/** Checks everything that must hold once all agents and faults have finished. */
export async function checkAll(life: Life): Promise<Check[]> {
  const { cluster, customers, board, surprises } = life;
  const faults = await audit(cluster, customers);
  const { rows } = await cluster.pool.query<{ operations: string; batches: string }>(
    "select (select count(*) from app.operation) as operations, (select count(*) from app.batch) as batches",
  );
  const operations = Number(rows[0]?.operations ?? 0);
  const looked = [operations, board.size, board.size, Number(rows[0]?.batches ?? 0)];
  const isAudited = (fault: string) => AUDITED.some(([, words]) => words.test(fault));
  const calls = [...life.answers.values()].reduce((sum, count) => sum + count, 0);
  return [
    {
      name: "every signature was applied once or never, as reported to its signer",
      looked: customers.payments.length,
      wrong: faults.filter((fault) => !isAudited(fault)),
    },
    ...AUDITED.map(([name, words], index) => ({
      name,
      looked: looked[index] ?? 0,
      wrong: faults.filter((fault) => words.test(fault)),
    })),
    {
      name: "every contract has ended and its books are empty",
      looked: board.size,
      wrong: await openBooks(life),
    },
    { name: "no unexpected response", looked: calls, wrong: surprises },
    { name: "no agent met a limit", looked: customers.sent(), wrong: customers.limits },
  ];
}

/**
 * Contracts that have not ended or still hold money, booked or not, after {@link BOOKS_TIMEOUT_MS}: the keeper repeats a
 * rejected settlement only after half a minute, during which no operation is pending.
 */
async function openBooks({ cluster, board, agents }: Life): Promise<string[]> {
  let turn = 0;
  const look = async (id: string): Promise<string[]> => {
    const agent = agents[turn++ % agents.length] as Agent;
    const url = `${cluster.apis[0]?.url}/v1/contracts/${id}`;
    const [{ data: contract }, { data: ledger }] = await Promise.all([
      readAs<ContractView>(agent, url),
      readAs<LedgerView>(agent, `${url}/ledger`),
    ]);
    const { held, unbooked } = ledger;
    board.set(id, contract);
    const hasEnded = /^(settled|cancelled)-/.test(contract.status);
    return [
      ...(hasEnded ? [] : [`${id} is ${contract.status}`]),
      ...(isMoney(held) || isMoney(unbooked)
        ? [`${id} holds ${held}, and ${unbooked} outside its books`]
        : []),
    ];
  };
  let open = new Map([...board.keys()].map((id) => [id, [`${id} was not read`]]));
  const areEmpty = async (): Promise<boolean> => {
    const left: typeof open = new Map();
    for (const id of open.keys()) {
      const wrong = await look(id);
      if (wrong.length > 0) left.set(id, wrong);
    }
    open = left;
    return open.size === 0;
  };
  await until("all books are empty", areEmpty, { timeoutMs: BOOKS_TIMEOUT_MS, intervalMs: 1000 }).catch(
    () => {},
  );
  return [...open.values()].flat();
}

function isMoney(amount: string | null): boolean {
  return amount === null || (parseDecimal(amount) ?? 1n) !== 0n;
}

/** Prints counts, the table and what was wrong. */
export function printReport(
  { customers, answers, board, cluster }: Life,
  run: { checks: Check[]; faults: Map<string, number>; minutes: number; seed: number; usage: Usage },
): void {
  const { checks, faults, minutes, seed, usage } = run;
  const paid = customers.payments.filter(({ truth }) => truth?.status === 200);
  const volume = paid.reduce((sum, { authorization }) => sum + authorization.value, 0n);
  const ends = new Map<string, number>();
  for (const { status } of board.values()) ends.set(status, (ends.get(status) ?? 0) + 1);
  const restarts = cluster.reports.filter((line) => line.includes("Restarting in")).length;
  console.log(`\nSoak of ${minutes} minutes, seed ${seed}`);
  console.log(`\nContracts: ${board.size} (${listOf(ends)})`);
  console.log(
    `Payments:  ${customers.payments.length} signed, ${paid.length} used, ${formatDecimal(volume)} USD`,
  );
  console.log(`Responses: ${listOf(answers)}`);
  console.log(`Faults:    ${listOf(faults)}; parts restarted by their supervisor: ${restarts}`);
  const sizes = [...usage].map(
    ([name, { first, early, late, last }]) => `${name} ${first}, ${early}, ${late ?? "-"}, ${last}`,
  );
  console.log(`MiB first, highest in the first half hour and later, last: ${sizes.join("; ")}`);
  console.table(
    checks.map(({ name, looked, wrong }) => ({ check: name, checked: looked, wrong: wrong.length })),
  );
  for (const { wrong } of checks)
    for (const text of wrong.slice(0, SHOWN)) console.log(`  ${text.split("\n", 1)[0]}`);
  const found = checks.reduce((sum, { wrong }) => sum + wrong.length, 0);
  console.log(found === 0 ? "Nothing was wrong." : `${found} findings.`);
}

function listOf(counts: ReadonlyMap<string, number>): string {
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return sorted.map(([name, count]) => `${name} ${count}`).join(", ") || "none";
}

const INTERVAL_MS = 5000;
const BYTES_PER_MIB = 2 ** 20;
/** Caches and pools are full by then: later memory must not grow, disk only with the number of contracts. */
export const WARM_UP_MINUTES = 30;
/** How far memory may later exceed the highest of the first half hour: garbage is collected at other moments. */
const TOLERANCE = { share: 0.25, mib: 32 };
/** The same for the disk of later contracts: those of the first half hour end later, and blocks are stored by time. */
const DISK_TOLERANCE = { share: 0.5, mib: 32 };
const CONTRACTS = "number of contracts";

interface Growth {
  first: number;
  /** Highest in the first half hour. */
  early: number;
  /** Highest after it; null in a shorter run. */
  late: number | null;
  last: number;
  /** More than one if the process was restarted. */
  pids: Set<number | undefined>;
}

/** MiB by process, or by part of the disk, and the number of contracts. */
export type Usage = ReadonlyMap<string, Growth>;

export function watchUsage({ cluster, board }: Pick<Life, "cluster" | "board">): { stop(): Usage } {
  const seen = new Map<string, Growth>();
  const startedAt = performance.now();
  const look = (): void => {
    const isEarly = performance.now() - startedAt < WARM_UP_MINUTES * 60_000;
    for (const [name, now, pid] of [...usageOf(cluster), [CONTRACTS, board.size] as const]) {
      if (now === undefined) continue;
      const {
        first = now,
        early = 0,
        late = null,
        pids = new Set<number | undefined>(),
      } = seen.get(name) ?? {};
      const highest = isEarly
        ? { early: Math.max(early, now), late }
        : { early, late: Math.max(late ?? 0, now) };
      seen.set(name, { first, ...highest, last: now, pids: pids.add(pid) });
    }
  };
  look();
  const timer = setInterval(look, INTERVAL_MS);
  return {
    stop() {
      clearInterval(timer);
      look();
      return seen;
    },
  };
}

/** The checks of a run longer than half an hour. */
export function checkLongRun(usage: Usage, faults: ReadonlyMap<string, number>): Check[] {
  const missing = [...faults].filter(([, count]) => count === 0).map(([name]) => `Never injected: ${name}`);
  const every = { name: "every kind of fault was injected", looked: faults.size, wrong: missing };
  return [every, checkMemory(usage), checkDisk(usage)];
}

/** Whether the memory of the processes that no fault ends stayed flat after the first half hour. */
function checkMemory(usage: Usage): Check {
  const compared = [...usage].filter(([name]) => SPARED.includes(name));
  const wrong = compared.flatMap(([name, { early, late, pids }]) => {
    if (pids.size > 1) return [`${name} was restarted, so its memory shows nothing`];
    return (late ?? 0) > early * (1 + TOLERANCE.share) + TOLERANCE.mib
      ? [`${name} took ${early} MiB in the first half hour, ${late} MiB after it`]
      : [];
  });
  return { name: "memory stays flat after half an hour", looked: compared.length, wrong };
}

/** Whether later contracts took at most as much of the disk as those of the first half hour. */
function checkDisk(usage: Usage): Check {
  const contracts = usage.get(CONTRACTS);
  const before = contracts?.early ?? 0;
  const after = (contracts?.late ?? 0) - before;
  const wrong = [...usage].flatMap(([name, { first, early, late }]) => {
    if (!name.startsWith("disk")) return [];
    const grown = (late ?? 0) - early;
    const expected = Math.round(((early - first) / before) * after);
    return grown > expected * (1 + DISK_TOLERANCE.share) + DISK_TOLERANCE.mib
      ? [`${name} grew by ${grown} MiB after the first half hour; its contracts would have taken ${expected}`]
      : [];
  });
  return { name: "disk per contract stays flat after half an hour", looked: after, wrong };
}

type Figure = [name: string, mib: number | undefined, pid?: number | undefined];

function usageOf(cluster: Cluster): Figure[] {
  const { processes, indexer, node } = cluster;
  const named = [...processes, { name: "indexer", pid: indexer.pid }, { name: "anvil", pid: node.pid }];
  return [
    ...named.map(({ name, pid }): Figure => [name, memoryOf(pid()), pid()]),
    ["disk: database", folderMib(join(cluster.dir, "postgres"))],
    ["disk: logs", folderMib(join(cluster.dir, "logs"))],
  ];
}

/** Memory of a process in MiB, by a field of /proc; undefined if there is no such process. */
export function memoryOf(pid: number | undefined, field = "VmRSS"): number | undefined {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(textOf(`/proc/${pid}/status`) ?? "") ?? [];
  return kib === undefined ? undefined : Math.round((Number(kib) * 1024) / BYTES_PER_MIB);
}

/** Leaves out Postgres's write-ahead log, which is reused. Undefined if a folder was removed while it was listed. */
function folderMib(folder: string): number | undefined {
  try {
    const names = readdirSync(folder, { recursive: true }).map(String);
    const sizes = names
      .filter((name) => !/\bpg_wal\b/.test(name))
      .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0);
    return Math.round(sizes.reduce((sum, size) => sum + size, 0) / BYTES_PER_MIB);
  } catch {
    return undefined;
  }
}
