/** Lists that others read during a flood of requests from one IP address. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ROOT } from "../../src/root.js";
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import type { FloodOrder } from "./flood-source.js";
import { describeLoad, type Load, runLoad, send } from "./load.js";

export interface FloodResult {
  /** The kind of requests in the flood. */
  flood: string;
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
    "with made-up keys": { path: LIST, key: `${flooder.apiKey.slice(0, -8)}{random}` },
    "with an agent's key": { path: LIST, key: flooder.apiKey },
    "of a page": { path: "/" },
  };
  const results: FloodResult[] = [];
  await runLoad({ concurrency: 1, seconds: seconds / 4 }, read);
  for (const [flood, order] of Object.entries(floods)) {
    const stop = order === null ? undefined : await startFlood({ ...order, url: api.url });
    const victim = await runLoad({ concurrency: 1, seconds }, read);
    const sent = await stop?.();
    report(`List, flood ${flood}${sent === undefined ? "" : ` (${sent})`}: ${describeLoad(victim)}`);
    results.push({ flood, victim });
  }
  await api.end();
  return results;
}

/** Resolves once the flood flows. The returned function ends it, and tells what it sent and received. */
async function startFlood(order: FloodOrder): Promise<() => Promise<string>> {
  const source = fork(join(ROOT, "tools/bench/flood-source.ts"), [JSON.stringify(order)], {
    execArgv: ["--import", "tsx"],
  });
  await once(source, "message");
  return async () => {
    source.send("stop");
    const [sent] = await once(source, "message");
    source.disconnect();
    return sent;
  };
}
