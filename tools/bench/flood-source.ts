/**
 * A program that sends requests at a fixed rate, whether or not responses come. It ends with its parent, or tells it what
 * came back when it sends a message.
 */
import { Agent, request } from "node:http";
import { createKey } from "../../src/features/agents/key-owners.js";

export interface FloodOrder {
  /** Of the service. */
  url: string;
  path: string;
  /** An API key, or `made-up` for another one of a valid form each time. */
  key?: string;
}

export interface FloodCounts {
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

if (process.send !== undefined) flood(JSON.parse(process.argv[2] ?? "") as FloodOrder);

function flood({ url, path, key }: FloodOrder): void {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_OPEN });
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
    // What finds no socket is not sent later.
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
