/** Sentences between the tables of the specification. */
import { expect } from "vitest";
import {
  checkpointBody,
  created,
  draft,
  type Json,
  matched,
  newPair,
  ok,
  posted,
  signedChallenge,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { asVersion2, chapter, says, withDatabase, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));

chapter("Endpoints / Small print", () => {
  says("All bodies are JSON.", async () => {
    const agent = await scene.newAgent();
    const { body: quoted, headers } = await agent.post("/v1/contracts", await draft(scene), asVersion2());
    expect([quoted, headers.get("content-type")?.split(";")[0]]).toEqual([{}, "application/json"]);
    const form = { "content-type": "application/x-www-form-urlencoded" };
    expect((await agent.post("/v1/agents/me/profile", "displayName=Ada", form)).status).toBe(415);
    expect((await agent.post("/v1/agents/me/profile", "displayName=Ada")).error?.code).toBe(
      "invalid_request",
    );
  });

  says("Unless said otherwise success is 200 and a failed call returns the error envelope.", async () => {
    const { paths } = (await scene.call<Json>("GET", "/openapi.json")).body as Json;
    const said: Record<string, number> = {
      "post /v1/agents/{address}/api-key": 201,
      "post /v1/contracts/{id}/checkpoint": 201,
      "post /v1/contracts/{id}/complaints": 201,
      "post /v1/agents/me/profile": 201,
    };
    for (const [path, item] of Object.entries(paths as Record<string, Json>)) {
      // Webhooks and events are not part of the specification.
      if (!path.startsWith("/v1/") || /webhooks|events/.test(path)) continue;
      for (const [method, operation] of Object.entries(item)) {
        const successes = Object.keys(operation.responses).filter((status) => status.startsWith("2"));
        expect(successes, `${method} ${path}`).toEqual([String(said[`${method} ${path}`] ?? 200)]);
        for (const [status, response] of Object.entries(operation.responses as Record<string, Json>)) {
          if (status < "400" || status === "402") continue;
          expect(JSON.stringify(response), `${method} ${path} ${status}`).toContain("#/components/");
        }
      }
    }
  });
});

chapter("Keys / Small print", () => {
  withDatabase(
    [
      "The plaintext key is returned once and only its hash is stored.",
      "Resources and their fields / API key > only its hash is stored",
    ],
    async () => {
      const agent = await scene.newAgent();
      const { address, apiKey } = agent;
      const list = await agent.get("/v1/agents/me/api-keys");
      expect(JSON.stringify(list.body)).not.toContain(apiKey);
      const body = await signedChallenge(scene, agent);
      const { data } = await scene.call<Json>("POST", `/v1/agents/${address}/api-key`, { body });
      expect(data.apiKey).not.toBe(apiKey);
      const stored = await scene.query("select 1 from app.api_key where id = $1", [data.keyId]);
      expect(stored).toHaveLength(1);
      // Without the prefix that all keys share.
      const secrets = [apiKey, data.apiKey].map((key) => `%${key.slice(8)}%`);
      const tables = await scene.query<{ name: string }>(
        "select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_schema = 'app' and table_type = 'BASE TABLE'",
      );
      for (const { name } of tables) {
        const sql = `select count(*)::int as found from ${name} t where t::text like any ($1)`;
        const [row] = await scene.query(sql, [secrets]);
        expect(row?.found, name).toBe(0);
      }
    },
  );
});

chapter("Work / Small print", () => {
  withMoney(
    [
      "For the usage-ticket application criteriaMet is filled in by this call.",
      "States and transitions > | matched | Submit Delivery | caller is the matched worker, Delivery Deadline not passed | under-review | delivery set; Review Deadline unchanged; for the usage-ticket application criteriaMet is computed at this moment. |",
    ],
    async () => {
      const { client, worker } = await pair();
      const criteria = [">=", ">", "<=", "<", "=="].map((op) => ({ metric: "tokens", op, target: 12 }));
      const { id, criteriaMet, reviewDeadline } = await matched(scene, await pair(), {
        acceptanceCriteria: [...criteria.map(({ op }) => `tokens ${op} 12`), "Judged by the client"],
        application: "usageticket",
        applicationTerms: { criteria: [...criteria, null] },
      });
      expect(criteriaMet).toBeNull();
      // The last one counts.
      for (const [i, tokens] of [99, 12].entries()) {
        const sequence = { fromSequence: i + 1, toSequence: i + 1 };
        const body = await checkpointBody(scene, { ...sequence, data: { tokens } });
        ok(await worker.post(`/v1/contracts/${id}/checkpoint`, body), 201);
      }
      expect((await client.get<Json>(`/v1/contracts/${id}`)).data.criteriaMet).toBeNull();
      const delivered = ok(await worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery: "x" }));
      expect(delivered).toMatchObject({
        status: "under-review",
        reviewDeadline,
        delivery: expect.any(String),
      });
      expect(delivered.criteriaMet).toEqual(["met", "not met", "met", "not met", "met", "unclear"]);
    },
  );
});

chapter("Profiles / Small print", () => {
  withMoney("The profile feeds no reputation metric and is not an identity.", async () => {
    const agent = await scene.newAgent({ usd: "100" });
    const { contract } = await posted(scene, agent);
    const read = async () => ({
      record: ok(await agent.get<Json>(`/v1/agents/${agent.address}/record`)),
      workload: ok(await agent.get<Json>(`/v1/agents/${agent.address}/workload`)),
      contract: ok(await agent.get<Json>(`/v1/contracts/${contract.id}`)),
    });
    const before = await read();
    ok(await agent.post("/v1/agents/me/profile", { displayName: "Most Trusted", bio: "100% met" }), 201);
    expect(await read()).toEqual(before);
    expect((await scene.call("GET", "/v1/agents/Most%20Trusted/profile")).status).toBe(400);
  });

  says(
    [
      "| Profile versions | 10 per rolling 24 hours per agent | Profile |",
      "Errors > | 429 | too_many_profile_updates | More than 10 profile versions in a rolling 24 hours. |",
      "The same request twice > POST /v1/agents/me/profile: each is a version",
    ],
    async () => {
      const [agent, other] = await Promise.all([scene.newAgent(), scene.newAgent()]);
      const update = () => agent.post("/v1/agents/me/profile", { bio: "again" });
      const answers = await Promise.all(Array.from({ length: 15 }, update));
      const refused = answers.filter(({ status }) => status !== 201);
      expect(refused).toHaveLength(5);
      for (const { status, error } of refused)
        expect([status, error?.code]).toEqual([429, "too_many_profile_updates"]);
      ok(await other.post("/v1/agents/me/profile", {}), 201);
    },
  );
});

chapter("Lists / Pages", () => {
  withMoney("a page never skips or repeats a contract while others are created", async () => {
    const { client, worker } = await newPair(scene);
    const there = new Set<string>();
    for (let i = 0; i < 5; i++) there.add((await created(scene, client, { budgetOrPrice: 20 + i })).id);
    let more = 8;
    const sorts = ["-createdAt", "createdAt", "budgetOrPrice", "-reviewDeadline"];
    const walks = sorts.map(async (sort) => {
      const seen: Json[] = [];
      let cursor = "";
      do {
        const { body } = await worker.get(
          `/v1/contracts?client=${client.address}&sort=${sort}&limit=1${cursor}`,
        );
        const { data, nextCursor } = body as unknown as { data: Json[]; nextCursor: string | null };
        seen.push(...data);
        // The next page is requested when there is one more contract somewhere in the order.
        if (more-- > 0) await created(scene, client, { budgetOrPrice: 10 + more * 3 });
        cursor = nextCursor === null ? "" : `&cursor=${nextCursor}`;
      } while (cursor !== "");
      return { sort, seen };
    });
    for (const { sort, seen } of await Promise.all(walks)) {
      const ids = seen.map(({ id }) => id);
      expect(new Set(ids).size, sort).toBe(ids.length);
      for (const id of there) expect(ids, sort).toContain(id);
      const by = sort.replace("-", "");
      const keys = seen.map((contract) => Number(contract[by]) || Date.parse(contract[by]));
      expect(keys, sort).toEqual(keys.toSorted((a, b) => (by === sort ? a - b : b - a)));
    }
  });

  withMoney("a short list's page never skips or repeats an entry while others are added", async () => {
    const { client, worker } = await newPair(scene);
    const { id } = await matched(scene, { client, worker });
    const path = `/v1/contracts/${id}/checkpoints`;
    let sequence = 0;
    const add = async () => {
      sequence++;
      const body = await checkpointBody(scene, { fromSequence: sequence, toSequence: sequence });
      ok(await worker.post(`/v1/contracts/${id}/checkpoint`, body), 201);
    };
    for (let i = 0; i < 4; i++) await add();
    const seen: number[] = [];
    let cursor = "";
    do {
      const { body } = await client.get(`${path}?limit=2${cursor}`);
      const { data, nextCursor } = body as unknown as { data: Json[]; nextCursor: string | null };
      seen.push(...data.map(({ fromSequence }) => fromSequence));
      await add();
      cursor = nextCursor === null ? "" : `&cursor=${nextCursor}`;
    } while (cursor !== "" && seen.length < 20);
    expect(seen).toEqual(seen.map((_, i) => i + 1));
    expect(seen.length).toBeGreaterThanOrEqual(4);
  });

  withMoney(
    [
      "a filter by status follows the status at once",
      "States and transitions > `cancelled-*` statuses count as closed",
    ],
    async () => {
      const client = await scene.newAgent({ usd: "100" });
      const { id } = await created(scene, client);
      const listed = async (status: string) =>
        ok(await client.get<Json[]>(`/v1/contracts?client=${client.address}&status=${status}`)).length;
      expect([await listed("open"), await listed("closed")]).toEqual([1, 0]);
      ok(await client.post(`/v1/contracts/${id}/cancel`));
      expect([await listed("open"), await listed("closed")]).toEqual([0, 1]);
    },
  );
});
