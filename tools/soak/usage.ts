/** Resident memory and disk space of a cluster, sampled every few seconds. Linux only; empty elsewhere. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "../../test/faults/support/cluster.js";

const INTERVAL_MS = 5000;
const BYTES_PER_MIB = 2 ** 20;
/** Caches and pools are full by then: later memory must not grow, disk only with the number of contracts. */
const WARM_UP_MS = 30 * 60_000;
/** More than a warm process's highest memory may later grow, as garbage is collected at other moments. */
const TOLERANCE = { share: 0.25, mib: 32 };

export interface Growth {
  first: number;
  /** Highest in the first half hour, and after it. */
  early: number;
  late: number;
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
      const { first = now, early = 0, late = 0 } = seen.get(name) ?? {};
      const highest = isEarly ? { early: Math.max(early, now), late } : { early, late: Math.max(late, now) };
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

/** The service's own processes whose memory grew after the first half hour, in words. */
export function growing(usage: Usage): string[] {
  return [...usage]
    .filter(([name]) => /^(api|relayer|indexer)/.test(name))
    .filter(([, { early, late }]) => late > early * (1 + TOLERANCE.share) + TOLERANCE.mib)
    .map(
      ([name, { early, late }]) => `${name} took ${early} MiB in the first half hour, ${late} MiB after it`,
    );
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

function folderMib(folder: string): number {
  // Postgres removes files while they are listed.
  const sizes = readdirSync(folder, { recursive: true }).map(
    (name) => statSync(join(folder, String(name)), { throwIfNoEntry: false })?.size ?? 0,
  );
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / BYTES_PER_MIB);
}
