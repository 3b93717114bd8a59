/** Rules for every endpoint alike: unknown contracts, malformed ids, a repeated request, two at the same moment. */
import { describe, expect } from "vitest";
import type { Agent, Answer } from "../support/agent.js";
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
  signedChallenge,
  UNKNOWN,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { says, withMoney } from "./support/spec.js";

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

describe("Every endpoint of a contract", () => {
  for (const [method, call, body] of CALLS) {
    const send = async (id: string): Promise<Answer> => {
      const path = `/v1/contracts/${id}${call}`;
      return method === "GET" ? (await agent()).get(path) : (await agent()).post(path, await body?.());
    };
    says(`${method} /v1/contracts/{id}${call}: an unknown contract is 404 \`not_found\``, async () => {
      const refused = await send(UNKNOWN);
      expect([refused.status, refused.error?.code]).toEqual([404, "not_found"]);
    });
    says(`${method} /v1/contracts/{id}${call}: a malformed id is 400 \`invalid_request\``, async () => {
      for (const id of ["1", UNKNOWN.slice(0, -1), `${UNKNOWN}00`, "00000000-0000-4000-8000-000000000000"]) {
        const refused = await send(id);
        expect([refused.status, refused.error?.code], id).toEqual([400, "invalid_request"]);
      }
    });
  }

  withMoney("one that is quoted but not paid for is unknown to everyone, its client included", async () => {
    const { client } = await pair();
    const quoted = await client.post("/v1/contracts", await draft(scene));
    const header = Buffer.from(quoted.headers.get("payment-required") ?? "", "base64").toString();
    const { payTo } = JSON.parse(header).accepts[0];
    for (const [method, call] of [
      ["get", ""],
      ["post", "/cancel"],
      ["post", "/approve"],
    ] as const) {
      expect((await client[method](`/v1/contracts/${payTo}${call}`)).error?.code).toBe("not_found");
    }
  });
});

interface Act {
  agent: Agent;
  path: string;
  body?: Json;
}

/** Actions that are executed once: the chain, or the contract's state, ensures it. */
const ONCE: Record<string, () => Promise<Act>> = {
  "accept=false": async () => {
    const parties = await newPair(scene);
    const { id } = await created(scene, parties.client, award(parties));
    return { agent: parties.worker, path: `/v1/contracts/${id}/accept`, body: { accept: false } };
  },
  "POST /v1/contracts/{id}/delivery": async () => {
    const parties = await pair();
    const { id } = await matched(scene, parties);
    return { agent: parties.worker, path: `/v1/contracts/${id}/delivery`, body: { delivery: "ipfs://x" } };
  },
  "POST /v1/contracts/{id}/approve": async () => {
    const parties = await pair();
    const { id } = await delivered(scene, parties);
    return { agent: parties.client, path: `/v1/contracts/${id}/approve` };
  },
  "POST /v1/contracts/{id}/withdraw": async () => {
    const parties = await pair();
    const { id } = await matched(scene, parties);
    return { agent: parties.worker, path: `/v1/contracts/${id}/withdraw` };
  },
  "POST /v1/contracts/{id}/cancel": async () => {
    const { client } = await pair();
    const { id } = await created(scene, client);
    return { agent: client, path: `/v1/contracts/${id}/cancel` };
  },
};

describe("The same request twice", () => {
  for (const [name, prepare] of Object.entries(ONCE)) {
    withMoney(`${name}: two at the same moment are one, and a later one is 409 \`conflict\``, async () => {
      const { agent, path, body } = await prepare();
      const send = () => agent.post<Json>(path, body);
      const answers = await Promise.all([send(), send(), send()]);
      const done = answers.filter(({ status }) => status === 200);
      expect(done.length, JSON.stringify(answers.map((answer) => answer.body))).toBeGreaterThan(0);
      expect(new Set(done.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
      for (const { status, error } of answers) expect(error?.code ?? status).toBeOneOf([200, "conflict"]);
      const later = await send();
      expect([later.status, later.error?.code]).toEqual([409, "conflict"]);
      const id = path.split("/")[3] as string;
      const { status } = ok(await agent.get<Json>(`/v1/contracts/${id}`));
      // The payout after an approval can come in between.
      expect(status).toBeOneOf([done[0]?.data.status, "settled-all-met"]);
    });
  }

  says(
    "POST /v1/agents/{address}/challenge: each is a separate challenge, and each can be redeemed",
    async () => {
      const { address, account } = await agent();
      const path = `/v1/agents/${address}/challenge`;
      const answers = await Promise.all([1, 2, 3].map(() => scene.call<Json>("POST", path)));
      expect(new Set(answers.map(({ data }) => data.challengeId)).size).toBe(3);
      for (const { data } of answers) {
        const body = {
          challengeId: data.challengeId,
          signature: await account.signMessage({ message: data.message }),
        };
        ok(await scene.call("POST", `/v1/agents/${address}/api-key`, { body }), 201);
      }
    },
  );

  says(
    "POST /v1/agents/{address}/api-key/revoke: one is executed, the others find no challenge",
    async () => {
      const fresh = await scene.newAgent();
      const body = await signedChallenge(scene, fresh);
      const send = () => scene.call<Json>("POST", `/v1/agents/${fresh.address}/api-key/revoke`, { body });
      const answers = await Promise.all([send(), send(), send()]);
      expect(answers.map(({ status, error }) => error?.code ?? status).sort()).toEqual([
        200,
        "invalid_challenge",
        "invalid_challenge",
      ]);
      expect((await send()).error?.code).toBe("invalid_challenge");
    },
  );

  withMoney("POST /v1/contracts/{id}/complaints: each is a complaint, up to ten per role", async () => {
    const parties = await newPair(scene);
    const { id } = await matched(scene, parties);
    const send = () => parties.client.post<Json>(`/v1/contracts/${id}/complaints`, { evidence: { n: 1 } });
    const answers = await Promise.all(Array.from({ length: 12 }, send));
    expect(answers.map(({ status, error }) => error?.code ?? status).sort()).toEqual([
      ...Array(10).fill(201),
      "too_many_complaints",
      "too_many_complaints",
    ]);
    const list = ok(await scene.call<Json[]>("GET", `/v1/contracts/${id}/complaints`));
    expect(new Set(list.map((complaint) => complaint.id)).size).toBe(10);
  });

  says("POST /v1/agents/me/profile: each is a version", async () => {
    const fresh = await scene.newAgent();
    const answers = await Promise.all(
      [1, 2].map(() => fresh.post<Json>("/v1/agents/me/profile", { displayName: "Twin" })),
    );
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    const rest = await Promise.all(Array.from({ length: 9 }, () => fresh.post("/v1/agents/me/profile", {})));
    expect(rest.map(({ status }) => status).sort()).toEqual([...Array(8).fill(201), 429]);
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
