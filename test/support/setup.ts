/**
 * Setup of every suite that uses HTTP or moves time: each file starts with the machine's own clock, and `fetch` checks
 * each response of the service against the OpenAPI document that the same service publishes, so no test and no payment
 * client can receive an unpublished response unnoticed.
 */
import { afterAll } from "vitest";
import { leaveChainTime } from "./chain-time.js";
import { type Judge, judgeOf, type OpenApiDocument } from "./published-document.js";

const plainFetch = globalThis.fetch;
const judges = new Map<string, Promise<Judge>>();
const deviations: string[] = [];

globalThis.fetch = async (input, init) => {
  // A server in this process might have replaced the global Request, so `instanceof` does not work.
  const request = typeof input === "object" && "url" in input ? input : null;
  const { origin, pathname } = new URL(request?.url ?? (input as string | URL));
  const method = init?.method ?? request?.method ?? "GET";
  const response = await plainFetch(input, init);
  // Other servers of the stack (node, indexer) have no such paths.
  if (!pathname.startsWith("/v1/")) return response;

  // A stream never ends.
  if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) return response;

  const judge = await judgeAt(origin);
  const { status, headers } = response;
  const body = await response.clone().text();
  const faults = judge.faultsOf({ method, path: pathname, status, headers, body });
  if (faults.length === 0) return response;
  const deviation = `${method} ${pathname} returned ${status}, which differs from the OpenAPI document: ${faults.join("; ")}\n${body.slice(0, 2000)}`;
  deviations.push(deviation);
  throw new Error(deviation);
};

/**
 * A test might have caught or expected the error, so it is repeated here. The next file's setup starts from the plain
 * fetch.
 */
afterAll(() => {
  leaveChainTime();
  globalThis.fetch = plainFetch;
  if (deviations.length > 0) throw new Error([...new Set(deviations)].join("\n"));
});

function judgeAt(origin: string): Promise<Judge> {
  let judge = judges.get(origin);
  if (judge === undefined) {
    judge = plainFetch(`${origin}/openapi.json`).then(async (response) =>
      judgeOf((await response.json()) as OpenApiDocument),
    );
    judges.set(origin, judge);
    judge.catch(() => judges.delete(origin));
  }
  return judge;
}
