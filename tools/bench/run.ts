/**
 * `npm run bench`: measures on this machine, prints tables and writes them to docs/benchmarks.md. `-- waves`, `write`,
 * `processes`, `read`, `start` and `soak` each measure one part; `read` covers Get and List, floods, freshness
 * and idle use.
 * `-- --seconds 3` shortens every load, for a first look. `soak` runs only if named: `-- soak --minutes 180 --agents 50`.
 */

import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { ROOT } from "../../src/root.js";
import { newFolder } from "../../test/support/network.js";
import { launchNetwork } from "../demo/network.js";
import { soak } from "../soak/run.js";
import { type Bed, startBed } from "./bed.js";
import { round } from "./load.js";
import { measureReading } from "./read-path.js";
import { PAGE, PARTS, type Results, writePage } from "./results.js";
import { LOADS, measureProcesses, measureWaves, measureWrites } from "./write-path.js";

const { values, positionals: asked } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "12" },
    minutes: { type: "string", default: "3" },
    agents: { type: "string", default: "12" },
  },
});
const [seconds, minutes, agents] = [Number(values.seconds), Number(values.minutes), Number(values.agents)];
const parts = PARTS.filter((part) => (asked.length === 0 ? part !== "soak" : asked.includes(part)));
if (parts.length === 0 || !(seconds > 0 && minutes > 0 && agents >= 3)) {
  console.error(
    `Usage: npm run bench [-- ${PARTS.join(" | ")} | --seconds <number> | --minutes <number> | --agents <number>]`,
  );
  process.exit(2);
}
const IDLE_MS = 30_000;
const MEASURES: { [P in keyof Results]: () => Promise<Results[P]> } = {
  async write() {
    const results = [];
    for (const load of LOADS)
      results.push(...(await onBed((bed) => measureWrites(bed, { ...load, seconds }))));
    return results;
  },
  waves: () => onBed(measureWaves),
  processes: () => onBed((bed) => measureProcesses(bed, seconds)),
  read: () =>
    onBed(async (bed) => {
      const idle = bed.memory();
      const idleCpu = await measureIdleCpu(bed);
      const read = await measureReading(bed, seconds);
      return { ...read, idleCpu, memory: { idle, loaded: bed.memory() } };
    }),
  start: measureStartUp,
  soak: () => soak({ minutes, agents, seed: 1 }),
};
for (const part of parts) await measure(part);

/** Each part is written as soon as it is measured: if a later one fails, it stays. */
async function measure<P extends keyof Results>(part: P): Promise<void> {
  console.log(`\n${writePage(part, await MEASURES[part]())}\n\nWritten to ${PAGE}.`);
}

/** Measures one part on a new bed: the contracts and blocks of one would slow down another. */
async function onBed<T>(measure: (bed: Bed) => Promise<T>): Promise<T> {
  const bed = await startBed();
  try {
    return await measure(bed);
  } finally {
    await bed.stop();
  }
}

/** Percent of a core that each process takes while no one calls, on 1 s blocks. */
async function measureIdleCpu(bed: Bed): Promise<Record<string, number>> {
  await bed.mine("1 s blocks");
  const before = bed.cpu();
  await delay(IDLE_MS);
  const used = Object.entries(bed.cpu()).map(([name, ms]) => [name, ms - (before[name] ?? 0)] as const);
  return Object.fromEntries(used.map(([name, ms]) => [name, round((100 * ms) / IDLE_MS, 1)]));
}

/** Time from `npm start` to ready: in a new clone with an empty npm cache, in a new data folder, and when it resumes. */
async function measureStartUp(): Promise<Results["start"]> {
  const dir = newFolder("bench-start-");
  try {
    const clone = join(dir, "clone");
    execFileSync("git", ["clone", "--quiet", ROOT, clone]);
    const env = { npm_config_cache: join(dir, "npm-cache") };
    const cloneSeconds = await start(join(dir, "data of the clone"), clone, env);
    return {
      clone: cloneSeconds,
      ...installedIn(join(clone, "node_modules")),
      first: await start(join(dir, "data")),
      again: await start(join(dir, "data")),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function installedIn(modules: string): { packages: number; mib: number } {
  const lockfile = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8"));
  const packages = Object.entries<{ link?: boolean }>(lockfile.packages).filter(
    ([path, { link }]) => path.includes("node_modules/") && link !== true,
  );
  const [mib] = execFileSync("du", ["-sm", modules], { encoding: "utf8" }).split("\t");
  return { packages: packages.length, mib: Number(mib) };
}

async function start(...where: Parameters<typeof launchNetwork>): Promise<number> {
  const startedAt = performance.now();
  const network = await launchNetwork(...where);
  const seconds = round((performance.now() - startedAt) / 1000, 1);
  await network.stop();
  return seconds;
}
