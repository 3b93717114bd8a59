/** Memory of a cluster's processes over a soak: random lives under random faults, with the soak's own audit at its end. */
import { soak } from "../soak/run.js";

export interface Endurance {
  minutes: number;
  agents: number;
  /** Findings of the audit. */
  wrong: number;
  /** MiB resident, by process: at the soak's start and end, and at most. */
  memory: Record<string, { first: number; last: number; peak: number }>;
}

const [MINUTES, AGENTS, SEED] = [3, 12, 1];

/** Runs a soak of three minutes; prints its report. */
export async function measureEndurance(): Promise<Endurance> {
  const { checks, memory } = await soak({ minutes: MINUTES, agents: AGENTS, seed: SEED });
  const wrong = checks.reduce((sum, check) => sum + check.wrong.length, 0);
  return { minutes: MINUTES, agents: AGENTS, wrong, memory: Object.fromEntries(memory) };
}
