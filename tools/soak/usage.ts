/** Resident memory (Linux only) and disk space of a cluster, sampled every few seconds. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "../../test/faults/support/cluster.js";
import type { Check } from "./report.js";

const INTERVAL_MS = 5000;
const BYTES_PER_MIB = 2 ** 20;
/** Caches and pools are full by then: later memory must not grow, disk only with the number of contracts. */
const WARM_UP_MS = 30 * 60_000;
/** How far memory may later exceed the highest of the first half hour: garbage is collected at other moments. */
const TOLERANCE = { share: 0.25, mib: 32 };

export interface Growth {
  first: number;
  /** Highest in the first half hour. */
  early: number;
  /** Highest after it; null in a shorter run. */
  late: number | null;
  last: number;
}

/** MiB by process, or by part of the disk. Restarts of a process count as one. */
export type Usage = ReadonlyMap<string, Growth>;

export function watchUsage(cluster: Cluster): { stop(): Usage } {
  const seen = new Map<string, Growth>();
  const startedAt = performance.now();
  const look = (): void => {
    const isEarly = performance.now() - startedAt < WARM_UP_MS;
    for (const [name, now] of usageOf(cluster)) {
      if (now === undefined) continue;
      const { first = now, early = 0, late = null } = seen.get(name) ?? {};
      const highest = isEarly
        ? { early: Math.max(early, now), late }
        : { early, late: Math.max(late ?? 0, now) };
      seen.set(name, { first, ...highest, last: now });
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

/** Whether the memory of the service's own processes stayed flat after the first half hour; null in a shorter run. */
export function checkGrowth(usage: Usage): Check | null {
  const compared = [...usage].flatMap(([name, { early, late }]) =>
    late !== null && /^(api|relayer|indexer)/.test(name) ? [{ name, early, late }] : [],
  );
  if (compared.length === 0) return null;
  const wrong = compared
    .filter(({ early, late }) => late > early * (1 + TOLERANCE.share) + TOLERANCE.mib)
    .map(({ name, early, late }) => `${name} took ${early} MiB in the first half hour, ${late} MiB after it`);
  return { name: "memory stays flat after half an hour", looked: compared.length, wrong };
}

function usageOf(cluster: Cluster): [name: string, mib: number | undefined][] {
  const pids = [...cluster.processes, cluster.indexer, cluster.node].map(
    (one): [string, number | undefined] => [
      "name" in one ? one.name : one === cluster.node ? "anvil" : "indexer",
      one.pid(),
    ],
  );
  return [
    ...pids.map(([name, pid]): [string, number | undefined] => [name, memoryOf(pid)]),
    ["disk: database", folderMib(join(cluster.dir, "postgres"))],
    ["disk: logs", folderMib(join(cluster.dir, "logs"))],
  ];
}

/** Memory of a process in MiB, by a field of /proc; undefined if there is no such process. */
export function memoryOf(pid: number | undefined, field = "VmRSS"): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status) ?? [];
    return kib === undefined ? undefined : Math.round((Number(kib) * 1024) / BYTES_PER_MIB);
  } catch {
    return undefined;
  }
}

/** Undefined if Postgres removed a folder while it was listed. */
function folderMib(folder: string): number | undefined {
  try {
    const sizes = readdirSync(folder, { recursive: true }).map(
      (name) => statSync(join(folder, String(name)), { throwIfNoEntry: false })?.size ?? 0,
    );
    return Math.round(sizes.reduce((sum, size) => sum + size, 0) / BYTES_PER_MIB);
  } catch {
    return undefined;
  }
}
