/** Random faults: processes killed or frozen, database and node cut off, reorgs, and jumps in time. */
import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, FATES } from "../../test/faults/support/cluster.js";
import { BROKEN, RESET } from "../../test/faults/support/rpc-proxy.js";
import type { Chance } from "../../test/support/random.js";
import { until } from "../local/processes.js";

type Fault = (cluster: Cluster, chance: Chance) => Promise<void>;

const HOUR = 3600;
const CLOCK_SKEW = 60;
const TIMEOUT_MS = 60_000;

/** No fault ends these processes: only in a process that lives as long as the soak does a leak show. */
export const SPARED: readonly string[] = ["api-1", "relayer-1"];
const mortal = (processes: Cluster["processes"]) => processes.filter(({ name }) => !SPARED.includes(name));

const FAULTS = {
  "kill -9 of an API": async ({ apis }, chance) =>
    killFor(chance.pick(mortal(apis)), chance.between(0, 4000)),
  "kill -9 of a relayer": async ({ relayers }, chance) => {
    await killFor(chance.pick(mortal(relayers)), chance.between(0, 4000));
    // No process gives a signer back: the spared one has to compete again.
    for (const { name, database } of relayers) if (SPARED.includes(name)) database.cut();
  },
  "frozen process": async ({ processes }, chance) => {
    const one = chance.pick(processes);
    one.freeze();
    await delay(chance.between(1000, 8000));
    one.thaw();
  },
  "node stalls": async ({ processes }, chance) => {
    const ms = chance.between(1000, 8000);
    await underRule(chance.pick(processes), ms, async (_, forward) => {
      await delay(ms);
      return forward();
    });
  },
  "node responds with 500": async ({ processes }, chance) =>
    underRule(chance.pick(processes), chance.between(1000, 5000), async () => BROKEN),
  "node's responses are lost": async ({ relayers }, chance) =>
    underRule(chance.pick(relayers), chance.between(1000, 5000), async (call, forward) => {
      await forward();
      return call.method === "eth_sendRawTransaction" ? RESET : forward();
    }),
  "node refuses connections": async ({ processes }, chance) => {
    const one = chance.pick(processes);
    await one.rpc.refuse(true);
    await delay(chance.between(1000, 5000));
    await one.rpc.refuse(false);
  },
  "one process's database connections cut": async ({ processes }, chance) =>
    chance.pick(processes).database.cut(),
  "all database connections ended": async ({ pool }) => {
    await pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'fault-test'",
    );
  },
  "database black hole": async ({ processes }, chance) => {
    const one = chance.pick(processes);
    await one.database.setMode("black-hole");
    await delay(chance.between(1000, 6000));
    await one.database.setMode("pass");
  },
  "kill -9 of Postgres": async ({ postgres, pool }) => {
    const pid = postgres.pid();
    if (pid !== undefined) process.kill(pid, "SIGKILL");
    const isBack = async (): Promise<boolean> =>
      postgres.pid() !== pid && (await pool.query("select 1")).rowCount === 1;
    await until("Postgres is back", isBack, { timeoutMs: TIMEOUT_MS });
  },
  "transactions dropped": async ({ testClient }) => {
    const { pending } = await testClient.getTxpoolContent();
    const waiting = Object.values(pending).flatMap((byNonce) => Object.values(byNonce));
    for (const { hash } of waiting) await testClient.dropTransaction({ hash });
  },
  "ten times the fee": async ({ testClient, publicClient }) => {
    const { baseFeePerGas } = await publicClient.getBlock();
    await testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: (baseFeePerGas ?? 1n) * 10n });
  },
  "wrong clock": async ({ processes }, chance) => {
    const one = chance.pick(mortal(processes));
    await one.kill();
    await one.start({ CLOCK_OFFSET_SECONDS: String(chance.between(-CLOCK_SKEW, CLOCK_SKEW)) });
  },
  "indexer ended": async (cluster) => cluster.indexer.restart(),
  reorg: async (cluster, chance) => {
    // Mining and reorgs must not overlap: anvil would lose its state.
    await cluster.blocks.pause();
    try {
      await cluster.reorganize(chance.between(1, 2), chance.pick(FATES));
    } finally {
      cluster.blocks.resume();
    }
    // Undone transactions must be mined again before time jumps past their deadlines.
    await outboxAtRest(cluster);
  },
  "time jumps": async (cluster, chance) => cluster.moveTime(chance.between(HOUR / 4, 4 * HOUR)),
} satisfies Record<string, Fault>;
type FaultName = keyof typeof FAULTS;

/** How often a fault is injected, compared with those that are not named here. */
const WEIGHTS: Partial<Record<FaultName, number>> = {
  "kill -9 of an API": 3,
  "kill -9 of a relayer": 4,
  "frozen process": 2,
  "node stalls": 3,
  "node's responses are lost": 2,
  "one process's database connections cut": 3,
  "all database connections ended": 2,
  "transactions dropped": 2,
  reorg: 3,
  "time jumps": 6,
};

/** Injects one fault after another until `signal` aborts. Returns how often each kind was injected, which can be 0. */
export async function injectFaults(
  cluster: Cluster,
  { chance, signal }: { chance: Chance; signal: AbortSignal },
): Promise<Map<string, number>> {
  const names = Object.keys(FAULTS) as FaultName[];
  const counts = new Map<string, number>(names.map((name) => [name, 0]));
  const weights = Object.fromEntries(names.map((name) => [name, WEIGHTS[name] ?? 1]));
  while (!signal.aborted) {
    await delay(chance.between(1000, 8000), undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    const name = chance.weighted<FaultName>(weights);
    await FAULTS[name](cluster, chance);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

async function killFor(one: Cluster["processes"][number], ms: number): Promise<void> {
  await one.kill();
  await delay(ms);
  await one.start();
}

async function underRule(
  { rpc }: Cluster["processes"][number],
  ms: number,
  rule: NonNullable<Parameters<Cluster["processes"][number]["rpc"]["setRule"]>[0]>,
): Promise<void> {
  rpc.setRule(rule);
  await delay(ms);
  rpc.setRule(null);
}

/** Resolves once the operations that are now in flight are final, or after the time-out. */
async function outboxAtRest({ pool }: Cluster): Promise<void> {
  const { rows } = await pool.query(
    "select max(id) as newest from app.operation where state in ('sent', 'mined')",
  );
  const isAtRest = async (): Promise<boolean> => {
    const open = await pool.query(
      "select 1 from app.operation where state in ('sent', 'mined') and id <= $1 limit 1",
      [rows[0]?.newest ?? 0],
    );
    return open.rowCount === 0;
  };
  await until("the outbox comes to rest", isAtRest, { timeoutMs: TIMEOUT_MS, intervalMs: 200 }).catch(
    () => {},
  );
}
