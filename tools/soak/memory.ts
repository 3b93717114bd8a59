/** Resident memory of a cluster's processes, sampled every few seconds. Linux only; empty elsewhere. */
import { readFileSync } from "node:fs";
import type { Cluster } from "../../test/faults/support/cluster.js";

const INTERVAL_MS = 2000;
const KIB_PER_MIB = 1024;

/** MiB by process: first sample, last sample and peak. Restarts count as one process. */
export type Memory = ReadonlyMap<string, { first: number; last: number; peak: number }>;

export function watchMemory(cluster: Cluster): { stop(): Memory } {
  const seen = new Map<string, { first: number; last: number; peak: number }>();
  const look = (): void => {
    const pids: [string, number | undefined][] = [
      ...cluster.processes.map((one): [string, number | undefined] => [one.name, one.pid()]),
      ["indexer", cluster.indexer.pid()],
      ["anvil", cluster.node.pid()],
    ];
    for (const [name, pid] of pids) {
      const now = pid === undefined ? undefined : residentMib(pid);
      if (now === undefined) continue;
      const { first = now, peak = now } = seen.get(name) ?? {};
      seen.set(name, { first, last: now, peak: Math.max(peak, now) });
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

function residentMib(pid: number): number | undefined {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kib === undefined ? undefined : Math.round(Number(kib) / KIB_PER_MIB);
  } catch {
    return undefined;
  }
}
