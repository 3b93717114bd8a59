/** Lists that others read during a flood of requests from one IP address. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent as Connections, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createKey } from "../../src/http/key-owners.js";
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import { describeLoad, get, type Load, report, runLoad } from "./load.js";

export interface FloodResult {
  flood: string;
  /** Responses per second that the flood got; null without one. */
  perSecond: number | null;
  victim: Load;
}

/** The flood is a separate process. */
const SELF = fileURLToPath(import.meta.url);
const VICTIMS = 16;
/** Below each victim's own limit. */
const PAUSE_MS = 20;
const LIST = "/v1/contracts?limit=50";

/** Measures a list under each kind of flood, against a process with the default limits. */
export async function measureFloods(bed: Bed, seconds: number): Promise<FloodResult[]> {
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
    return get(`${api.url}${LIST}`, apiKey);
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
  const source = fork(SELF, [JSON.stringify(order)], { execArgv: ["--import", "tsx"] });
  const exited = once(source, "exit");
  const next = async (): Promise<FloodCounts> => {
    const ended = exited.then(() => Promise.reject(new Error("The flood ended early.")));
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

interface FloodOrder {
  url: string;
  path: string;
  /** An API key, or `made-up` for another one of a valid form each time. */
  key?: string;
}

interface FloodCounts {
  /** Responses per second. */
  perSecond: number;
  /** Responses by status, and requests without one. */
  responses: Record<string, number>;
}

/** Requests per second. */
export const FLOOD_RATE = 1000;
/** Every address of 127.0.0.0/8 is this machine's: others come from 127.0.0.1. Linux only. */
const SOURCE = "127.0.0.2";
const TICK_MS = 10;
const MAX_OPEN = 500;

/** Sends requests at a fixed rate until its parent sends a message; then it reports the responses. */
function flood({ url, path, key }: FloodOrder): void {
  const agent = new Connections({ keepAlive: true, maxSockets: MAX_OPEN });
  const responses: Record<string, number> = {};
  const count = (result: number | string): void => {
    responses[result] = (responses[result] ?? 0) + 1;
  };
  const startedAt = performance.now();
  let sent = 0;
  let open = 0;
  const sendOne = (): void => {
    const given = key === "made-up" ? createKey("test").apiKey : key;
    const headers = given === undefined ? {} : { authorization: `Bearer ${given}` };
    const one = request(`${url}${path}`, { agent, localAddress: SOURCE, headers });
    one.on("response", (response) => count(response.resume().statusCode ?? 0));
    one.on("error", () => count("none"));
    one.on("close", () => open--);
    open++;
    one.end();
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * FLOOD_RATE;
    // A request that finds no socket is not sent later.
    for (; sent < due; sent++) if (open < MAX_OPEN) sendOne();
  }, TICK_MS);
  process.once("disconnect", () => process.exit(0));
  process.send?.("flowing");
  process.once("message", () => {
    clearInterval(timer);
    const answered = Object.entries(responses).reduce(
      (sum, [status, n]) => sum + (status === "none" ? 0 : n),
      0,
    );
    const perSecond = Math.round(answered / ((performance.now() - startedAt) / 1000));
    process.send?.({ perSecond, responses } satisfies FloodCounts);
  });
}

if (process.argv[1] === SELF) flood(JSON.parse(process.argv[2] ?? "") as FloodOrder);
