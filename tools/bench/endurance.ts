/** Memory of a cluster's processes during a soak: random lives under random faults, audited at the end. */
import { soak } from "../soak/run.js";

export interface Endurance {
  minutes: number;
  agents: number;
  /** Findings of the audit. */
  wrong: number;
  /** Resident MiB by process: at the soak's start, at its end, and at its peak. */
  memory: Record<string, { first: number; last: number; peak: number }>;
}

const [MINUTES, AGENTS, SEED] = [3, 12, 1];

/** Runs a soak of three minutes and prints its report. */
export async function measureEndurance(): Promise<Endurance> {
  const { checks, memory } = await soak({ minutes: MINUTES, agents: AGENTS, seed: SEED });
  const wrong = checks.reduce((sum, check) => sum + check.wrong.length, 0);
  return { minutes: MINUTES, agents: AGENTS, wrong, memory: Object.fromEntries(memory) };
}
