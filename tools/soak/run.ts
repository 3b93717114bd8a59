/** `npm run soak -- --minutes N --agents M [--seed S]`: random lives and faults; then heals, waits and checks the books. */
import { setMaxListeners } from "node:events";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { type Cluster, startCluster } from "../../test/faults/support/cluster.js";
import { createCustomers } from "../../test/faults/support/customers.js";
import { createChance } from "../../test/support/random.js";
import { until } from "../local/processes.js";
import { LOCAL_DEFAULTS } from "../local/settings.js";
import { ELIGIBILITY_STAKE, type Life, live, stakeSome } from "./agents.js";
import { injectFaults } from "./faults.js";
import {
  type Check,
  checkAll,
  checkLongRun,
  printReport,
  requireProof,
  type Usage,
  WARM_UP_MINUTES,
  watchUsage,
} from "./report.js";

interface SoakOptions {
  minutes: number;
  /** Number of agents; 3 or more. */
  agents: number;
  seed: number;
}

const HOUR = 3600;
/** Shorter than the day in which votes can be opened, so that work due in one step is done before the next. */
const STEP = 20 * HOUR;
/** From the last creation to the last claim: at most 24 hours of deadlines, one of voting, 24 of opening. */
const STEPS = 3;
/** How long the end may take, and each step in time: fifty agents leave thousands of contracts, all due at one moment. */
const STEP_TIMEOUT_MS = 600_000;

/** The default limits, but for two: all agents start in one minute, from one IP address (docs/decisions.md). */
const LIMITS = {
  RATE_LIMIT_READS: "",
  RATE_LIMIT_WRITES: "",
  RATE_LIMIT_CHALLENGES: "",
  RATE_LIMIT_ANONYMOUS: LOCAL_DEFAULTS.RATE_LIMIT_ANONYMOUS,
  GAS_BUDGET: LOCAL_DEFAULTS.GAS_BUDGET,
};
/** As long as most responses with 503 ask for. */
const PAUSE_MS = 1000;

export interface SoakResult extends Pick<SoakOptions, "minutes" | "agents"> {
  contracts: number;
  payments: number;
  faults: Map<string, number>;
  checks: Check[];
  usage: Usage;
}

/** Runs a soak and prints its report; the process's exit code is 1 if a check found something. */
export async function soak({ minutes, agents: count, seed }: SoakOptions): Promise<SoakResult> {
  const cluster = await startCluster({
    parameters: { baVotingWindow: HOUR, baEligibilityStake: Number(ELIGIBILITY_STAKE) },
    env: LIMITS,
  });
  try {
    const customers = createCustomers(cluster, `soak ${seed}`, { pauseMs: PAUSE_MS });
    const agents = await customers.join(count);
    const life: Life = { cluster, customers, agents, board: new Map(), answers: new Map(), surprises: [] };
    await stakeSome(life);

    console.log(`${count} agents for ${minutes} minutes; --seed ${seed} makes the same choices again.`);
    const watch = watchUsage(life);
    const signal = AbortSignal.timeout(minutes * 60_000);
    // Every agent listens to it, and so does the fault injector.
    setMaxListeners(count + 1, signal);
    const faulting = injectFaults(cluster, { chance: createChance(seed), signal });
    const lives = agents.map((agent, index) =>
      live(life, { agent, chance: createChance(seed + index + 1) }, signal),
    );
    await Promise.all(lives);
    const faults = await faulting;
    await cluster.heal();
    await endAll(cluster);
    const usage = watch.stop();
    const long = minutes > WARM_UP_MINUTES ? checkLongRun(usage, faults) : [];
    const checks = requireProof([...(await checkAll(life)), ...long], faults);
    printReport(life, { checks, faults, minutes, seed, usage });
    if (checks.some(({ wrong }) => wrong.length > 0)) process.exitCode = 1;
    const [contracts, payments] = [life.board.size, customers.payments.length];
    return { minutes, agents: count, contracts, payments, faults, checks, usage };
  } finally {
    await cluster.stop();
  }
}

/** Advances time until every contract has ended and paid out. */
async function endAll(cluster: Cluster): Promise<void> {
  await awaitQuiet(cluster);
  for (let step = 0; step < STEPS; step++) {
    await cluster.moveTime(STEP);
    await awaitQuiet(cluster);
  }
}

/** In a row without a pending operation: longer than the keeper takes to find due work. */
const QUIET_SECONDS = 5;

/** The checks report what is still pending afterwards. */
async function awaitQuiet({ pool }: Cluster): Promise<void> {
  const pending = "select 1 from app.operation where state not in ('final', 'rejected') limit 1";
  let quiet = 0;
  const isQuiet = async (): Promise<boolean> => {
    const before = quiet;
    quiet = 0;
    if ((await pool.query(pending)).rowCount === 0) quiet = before + 1;
    return quiet > QUIET_SECONDS;
  };
  const waiting = { timeoutMs: STEP_TIMEOUT_MS, intervalMs: 1000 };
  await until("no operation is pending", isQuiet, waiting).catch(console.error);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "5" },
      agents: { type: "string", default: "12" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const [minutes, agents, seed] = [Number(values.minutes), Number(values.agents), Number(values.seed)];
  if (!(minutes > 0) || !(agents >= 3) || !Number.isInteger(seed)) {
    console.error("Usage: npm run soak -- --minutes <number> --agents <3 or more> [--seed <whole number>]");
    process.exit(2);
  }
  await soak({ minutes, agents, seed });
  process.exit();
}
