/** Sends requests at a fixed rate, whether or not responses come, until its parent sends a message. */
import { Agent, request } from "node:http";

export interface FloodOrder {
  /** Of the service. */
  url: string;
  path: string;
  /** An API key; `{random}` becomes another text each time. */
  key?: string;
}

/** Requests per second. */
export const FLOOD_RATE = 1000;
/** Every address of 127.0.0.0/8 is this machine's: others come from 127.0.0.1. Linux only. */
const SOURCE = "127.0.0.2";
const TICK_MS = 10;
const MAX_OPEN = 500;

if (process.send !== undefined) flood(JSON.parse(process.argv[2] ?? "") as FloodOrder);

function flood({ url, path, key }: FloodOrder): void {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_OPEN });
  const statuses: Record<string, number> = {};
  const startedAt = performance.now();
  let sent = 0;
  const sendOne = (): void => {
    const random = Math.random().toString(36).slice(2, 10).padEnd(8, "0");
    const headers = key === undefined ? {} : { authorization: `Bearer ${key.replace("{random}", random)}` };
    const one = request(`${url}${path}`, { agent, localAddress: SOURCE, headers });
    one.on("response", (response) => {
      const { statusCode = 0 } = response.resume();
      statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
    });
    one.on("error", () => {});
    one.end();
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * FLOOD_RATE;
    for (; sent < due; sent++) sendOne();
  }, TICK_MS);
  process.send?.("flowing");
  process.once("message", () => {
    clearInterval(timer);
    const rate = Math.round(sent / ((performance.now() - startedAt) / 1000));
    process.send?.(`${rate}/s, responses ${JSON.stringify(statuses)}`);
    process.once("disconnect", () => process.exit(0));
  });
}
