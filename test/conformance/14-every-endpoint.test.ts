/** Rules for every endpoint alike: unknown contracts, malformed ids, a repeated request, two at the same moment. */
import { describe, expect } from "vitest";
import type { ApiResponse } from "../support/agent.js";
import {
  ballot,
  checkpointBody,
  created,
  delivered,
  draft,
  type Json,
  matched,
  newPair,
  ok,
  type Pair,
  quoteFor,
  UNKNOWN,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, codes, refusal, says, withMoney } from "./support/spec.js";

const scene = await openScene();
const agent = lazy(() => scene.newAgent());
const pair = lazy(() => newPair(scene));
const award = ({ worker }: Pair) => ({ awardMethod: "direct_award", worker: worker.address });

/** Calls about one contract, with a valid body. */
const CALLS: [method: "GET" | "POST", call: string, body?: () => Promise<Json>][] = [
  ["GET", ""],
  ["GET", "/checkpoints"],
  ["GET", "/complaints"],
  ["GET", "/votes"],
  ["GET", "/keys"],
  ["GET", "/settlement"],
  ["GET", "/terms"],
  ["POST", "/accept", async () => ({ accept: true })],
  ["POST", "/delivery", async () => ({ delivery: "x" })],
  ["POST", "/approve"],
  ["POST", "/dispute"],
  ["POST", "/withdraw"],
  ["POST", "/cancel"],
  ["POST", "/checkpoint", () => checkpointBody(scene)],
  ["POST", "/complaints", async () => ({ evidence: {} })],
  ["POST", "/votes", async () => ballot("met")],
];

chapter("Every endpoint of a contract", () => {
  const send = async ([method, call, body]: (typeof CALLS)[number], id: string): Promise<ApiResponse> =>
    (await agent()).call(method, `/v1/contracts/${id}${call}`, { body: await body?.() });
  const each = (what: string) =>
    CALLS.map(([method, call]) => `${method} /v1/contracts/{id}${call}: ${what}`);
  says(
    [
      ...each("an unknown contract is 404 `not_found`"),
      "States and transitions / Rules > 404 `not_found` for a contract that was never created",
    ],
    async () => {
      for (const call of CALLS) expect(refusal(await send(call, UNKNOWN)), call[1]).toBe("404 not_found");
    },
  );
  says(each("a malformed id is 400 `invalid_request`"), async () => {
    for (const id of ["1", UNKNOWN.slice(0, -1), `${UNKNOWN}00`, "00000000-0000-4000-8000-000000000000"])
      for (const call of CALLS) expect(refusal(await send(call, id)), id).toBe("400 invalid_request");
  });

  withMoney("one that is quoted but not paid for is unknown to everyone, its client included", async () => {
    const { client } = await pair();
    const supplementaryMaterials = "ipfs://materials";
    const { payTo } = await quoteFor(client, "/v1/contracts", await draft(scene, { supplementaryMaterials }));
    for (const [method, call] of [
      ["get", ""],
      ["post", "/cancel"],
      ["post", "/approve"],
    ] as const) {
      expect((await client[method](`/v1/contracts/${payTo}${call}`)).error?.code).toBe("not_found");
    }
    // Only its client reads the terms, from which the quoted address follows.
    const terms = `/v1/contracts/${payTo}/terms`;
    for (const reader of [scene, await agent()])
      expect(refusal(await reader.call("GET", terms))).toBe("404 not_found");
    expect(JSON.stringify(ok(await client.get(terms)))).not.toContain(supplementaryMaterials);
  });
});

type State = (parties: Pair) => Promise<Json>;
const open: State = ({ client }) => created(scene, client);
const reserved: State = (parties) => created(scene, parties.client, award(parties));
const running: State = (parties) => matched(scene, parties);
const reviewed: State = (parties) => delivered(scene, parties);

/** Actions that are executed once: the chain, or the contract's state, ensures it. */
const ONCE: [name: string, call: string, by: keyof Pair, prepare: State, body?: Json][] = [
  ["accept=false", "accept", "worker", reserved, { accept: false }],
  ["POST /v1/contracts/{id}/delivery", "delivery", "worker", running, { delivery: "ipfs://x" }],
  ["POST /v1/contracts/{id}/approve", "approve", "client", reviewed],
  ["POST /v1/contracts/{id}/withdraw", "withdraw", "worker", running],
  ["POST /v1/contracts/{id}/cancel", "cancel", "client", open],
];

describe("The same request twice", () => {
  for (const [name, call, by, prepare, body] of ONCE) {
    withMoney(`${name}: two at the same moment are one, and a later one is 409 \`conflict\``, async () => {
      const parties = await pair();
      const { id } = await prepare(parties);
      const agent = parties[by];
      const send = () => agent.post<Json>(`/v1/contracts/${id}/${call}`, body);
      const responses = await Promise.all([send(), send(), send()]);
      const done = responses.filter(({ status }) => status === 200);
      expect(done.length, JSON.stringify(responses.map((response) => response.body))).toBeGreaterThan(0);
      expect(new Set(done.map((response) => JSON.stringify(response.body))).size).toBe(1);
      for (const { status, error } of responses) expect(error?.code ?? status).toBeOneOf([200, "conflict"]);
      expect(refusal(await send())).toBe("409 conflict");
      const { status } = ok(await agent.get<Json>(`/v1/contracts/${id}`));
      // The payout after an approval can come in between.
      expect(status).toBeOneOf([done[0]?.data.status, "settled-all-met"]);
    });
  }

  withMoney("POST /v1/contracts/{id}/complaints: each is a complaint, up to ten per role", async () => {
    const parties = await newPair(scene);
    const { id } = await matched(scene, parties);
    const send = () => parties.client.post<Json>(`/v1/contracts/${id}/complaints`, { evidence: { n: 1 } });
    const responses = await Promise.all(Array.from({ length: 12 }, send));
    expect(codes(responses)).toEqual([...Array(10).fill(201), "too_many_complaints", "too_many_complaints"]);
    const list = ok(await scene.call<Json[]>("GET", `/v1/contracts/${id}/complaints`));
    expect(new Set(list.map((complaint) => complaint.id)).size).toBe(10);
  });

  withMoney("reads change nothing: the second response equals the first", async () => {
    const { client } = await pair();
    const { id } = await created(scene, client);
    for (const path of [
      `/v1/contracts/${id}`,
      `/v1/contracts/${id}/checkpoints`,
      `/v1/contracts/${id}/complaints`,
      `/v1/contracts/${id}/votes`,
      `/v1/agents/${client.address}/profile`,
      "/v1/agents/me/api-keys",
      "/v1/protocol",
    ]) {
      const [one, other] = await Promise.all([client.get(path), client.get(path)]);
      expect(one.status, path).toBe(200);
      expect(other.body, path).toEqual(one.body);
    }
  });
});
