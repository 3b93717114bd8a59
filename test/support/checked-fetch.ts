/**
 * Setup of every suite that speaks HTTP: `fetch` itself checks each answer of the service against the document that the
 * same service publishes, so that no test, and no payment client in one, can meet an answer that is not published.
 */
import { afterAll } from "vitest";
import { createJudge, type Judge, type OpenApiDocument } from "./published-document.js";

const plainFetch = globalThis.fetch;
const judges = new Map<string, Promise<Judge>>();
const deviations: string[] = [];

globalThis.fetch = async (input, init) => {
  // A server in this process may have replaced the global Request: told by what it has.
  const request = typeof input === "object" && "url" in input ? input : null;
  const { origin, pathname } = new URL(request?.url ?? (input as string | URL));
  const method = init?.method ?? request?.method ?? "GET";
  const response = await plainFetch(input, init);
  // Other servers of the stack (node, indexer) have no such paths.
  if (!pathname.startsWith("/v1/")) return response;

  // A stream has no end to wait for.
  if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) return response;

  const judge = await judgeOf(origin);
  const { status, headers } = response;
  const body = await response.clone().text();
  const faults = judge.faultsOf({ method, path: pathname, status, headers, body });
  if (faults.length === 0) return response;
  const deviation = `${method} ${pathname} answered ${status}, not as published: ${faults.join("; ")}\n${body.slice(0, 2000)}`;
  deviations.push(deviation);
  throw new Error(deviation);
};

/** A test may have caught the error, or expected one. The next file's setup begins with the plain one again. */
afterAll(() => {
  globalThis.fetch = plainFetch;
  if (deviations.length > 0) throw new Error([...new Set(deviations)].join("\n"));
});

function judgeOf(origin: string): Promise<Judge> {
  let judge = judges.get(origin);
  if (judge === undefined) {
    judge = plainFetch(`${origin}/openapi.json`).then(async (response) =>
      createJudge((await response.json()) as OpenApiDocument),
    );
    judges.set(origin, judge);
    judge.catch(() => judges.delete(origin));
  }
  return judge;
}
