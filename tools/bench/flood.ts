/** Lists that others read during a flood of requests from one IP address. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ROOT } from "../../src/root.js";
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import type { FloodCounts, FloodOrder } from "./flood-source.js";
import { describeLoad, type Load, runLoad, send } from "./load.js";

export interface FloodResult {
  /** The kind of requests in the flood. */
  flood: string;
  /** Responses per second that the flood got; null without one. */
  perSecond: number | null;
  victim: Load;
}

const VICTIMS = 16;
/** Below each victim's own limit. */
const PAUSE_MS = 20;
const LIST = "/v1/contracts?limit=50";

/** Measures a list under each kind of flood, against a process with the default limits. */
export async function measureFloods(
  bed: Bed,
  { seconds, report }: { seconds: number; report(line: string): void },
): Promise<FloodResult[]> {
  const [flooder, ...victims] = (await bed.newAgents(VICTIMS + 1)) as [Agent, ...Agent[]];
  const api = await bed.startApi({
    LOG_LEVEL: undefined,
    RATE_LIMIT_READS: undefined,
    RATE_LIMIT_ANONYMOUS: undefined,
    RATE_LIMIT_PAGES: undefined,
  });
  let turn = 0;
  const read = async () => {
    const { apiKey } = victims[turn++ % victims.length] as Agent;
    await delay(PAUSE_MS);
    const startedAt = performance.now();
    const { status } = await send(`${api.url}${LIST}`, { headers: { authorization: `Bearer ${apiKey}` } });
    return { ms: performance.now() - startedAt, failure: status === 200 ? null : String(status) };
  };
  const floods: Record<string, Omit<FloodOrder, "url"> | null> = {
    none: null,
    "without a key": { path: LIST },
    "with made-up keys": { path: LIST, key: "made-up" },
    "with an agent's key": { path: LIST, key: flooder.apiKey },
    "of a page": { path: "/" },
  };
  const results: FloodResult[] = [];
  await runLoad({ concurrency: 1, seconds: seconds / 4 }, read);
  for (const [flood, order] of Object.entries(floods)) {
    const stop = order === null ? undefined : await startFlood({ ...order, url: api.url });
    const victim = await runLoad({ concurrency: 1, seconds }, read);
    const got = (await stop?.()) ?? null;
    report(`List, flood ${flood}${got === null ? "" : ` (${JSON.stringify(got)})`}: ${describeLoad(victim)}`);
    results.push({ flood, perSecond: got?.perSecond ?? null, victim });
  }
  await api.end();
  return results;
}

/** Resolves once the flood flows; it ends with this process. The returned function ends it, and resolves to its counts. */
async function startFlood(order: FloodOrder): Promise<() => Promise<FloodCounts>> {
  const source = fork(join(ROOT, "tools/bench/flood-source.ts"), [JSON.stringify(order)], {
    execArgv: ["--import", "tsx"],
  });
  const exited = once(source, "exit");
  const next = async (): Promise<FloodCounts> => {
    const ended = exited.then(() => Promise.reject(new Error("The flood ended by itself.")));
    const [message] = await Promise.race([once(source, "message"), ended]);
    return message;
  };
  await next();
  return async () => {
    const counts = next();
    source.send("stop");
    const got = await counts;
    source.disconnect();
    await exited;
    return got;
  };
}
