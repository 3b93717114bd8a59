/**
 * Whatever is sent, the service responds as published, reveals no internals, and changes nothing if it rejects the
 * request. EDGE_REQUESTS sets the number of requests (`npm run test:edge` makes 10,000). A failure reports its seed.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { Agent } from "../../support/agent.js";
import { created, delivered, disputed, type Json, matched, newPair } from "../../support/contracts.js";
import { openScene } from "../../support/world.js";
import { withDatabase } from "../support/spec.js";
import { type EdgeRequest, edgeRequests } from "./requests.js";
import { openState } from "./state.js";

const REQUESTS = Number(process.env.EDGE_REQUESTS || 500);
/** Maximum milliseconds for a request, state checks included, on a slow machine. */
const PATIENCE = 1_000;
const LARGEST_ANSWER = 2 * 1024 * 1024;
const INSIDE =
  /node_modules|node:internal|\\n\s+at |\bat \S+ \([^)]*:\d+:\d+\)|\.[jt]sx?:\d|drizzle|select .{1,80} from|violates|ECONNREFUSED/i;

const scene = await openScene();

withDatabase(
  `${REQUESTS} generated requests: no 500, no internals, no unbounded response, no state changed by a rejected request`,
  async () => {
    const [{ client, worker }, stranger] = await Promise.all([
      newPair(scene),
      scene.newAgent({ usd: "100" }),
    ]);
    const parties = { client, worker };
    const contracts = await Promise.all([
      created(scene, client, { awardMethod: "direct_award", worker: worker.address }),
      created(scene, worker, { initiator: "worker" }),
      matched(scene, parties),
      delivered(scene, parties, { supplementaryMaterials: "ipfs://x" }),
      disputed(scene, parties),
    ]);
    const callers: Record<string, Agent> = { client, worker, stranger };
    const { body: document } = await scene.call<Json>("GET", "/openapi.json");
    const known = [...contracts.map(({ id }) => id), ...Object.values(callers).map(({ address }) => address)];
    const requests = edgeRequests({
      document: document as never,
      known,
      callers: Object.keys(callers),
    });

    const state = await openState(scene, known);
    await state.settled();
    let before = await state.read();
    const tally = new Map<number, number>();

    const refuses = async (request: EdgeRequest): Promise<void> => {
      const { written, followed } = await state.read();
      expect(written).toBe(before.written);
      if (followed === before.followed) return;
      // An earlier request's work might have finished just now. Only a change that the same request causes again is its
      // own.
      const repeatedly = async (): Promise<boolean> => {
        await state.settled();
        before = await state.read();
        await send(request, callers);
        return (await state.read()).followed !== before.followed;
      };
      expect((await repeatedly()) && (await repeatedly()) && (await repeatedly())).toBe(false);
    };
    const holds = async (request: EdgeRequest): Promise<void> => {
      const { status, text } = await send(request, callers);
      tally.set(status, (tally.get(status) ?? 0) + 1);
      expect(status, text).toBeLessThan(500);
      expect(text.length).toBeLessThan(LARGEST_ANSWER);
      if (status >= 400)
        expect(text.replaceAll(JSON.stringify(request.path).slice(1, -1), "")).not.toMatch(INSIDE);
      // A quote for a new contract stores its terms.
      if (status >= 400 && !(status === 402 && request.operation === "createContract"))
        await refuses(request);
      else before = await state.read();
    };
    await fc.assert(fc.asyncProperty(requests, holds), { numRuns: REQUESTS, endOnFailure: true });
    console.log(`${REQUESTS} requests by status: ${JSON.stringify(Object.fromEntries([...tally].sort()))}`);
  },
  60_000 + REQUESTS * PATIENCE,
);

async function send(
  { method, path, caller, headers, body }: EdgeRequest,
  callers: Record<string, Agent>,
): Promise<{ status: number; text: string }> {
  const key = caller === "forged" ? "wc_test_forged" : callers[caller]?.apiKey;
  const response = await fetch(`${scene.url}${path}`, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: body as string }),
  });
  return { status: response.status, text: await response.text() };
}
