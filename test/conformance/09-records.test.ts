/** Checkpoints, complaints, profiles, workload, protocol, and the lists. */
import { expect } from "vitest";
import {
  checkpointBody,
  delivered,
  type Json,
  matched,
  newPair,
  ok,
  posted,
  untilStatus,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, refusal, says, withDatabase, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const stranger = lazy(() => scene.newAgent());
const match = lazy(async () => matched(scene, await pair()));

chapter("POST /v1/contracts/{id}/checkpoint", () => {
  withMoney(
    "Body (all required): `fromSequence` integer, `toSequence` integer (>= fromSequence), `merkleRoot` string, `lastReceiptHash` string, `teeMeasurement` string, `teeSignature` string, `checkpointedAt` string (timestamp), `data` object.",
    async () => {
      const { worker } = await pair();
      const { id } = await match();
      const good = await checkpointBody(scene);
      for (const name of Object.keys(good)) {
        for (const value of [undefined, null, name === "data" ? [1] : {}, true]) {
          const refused = await worker.post(`/v1/contracts/${id}/checkpoint`, { ...good, [name]: value });
          expect(refusal(refused), `${name}: ${value}`).toBe("400 invalid_request");
        }
      }
      for (const wrong of [
        { fromSequence: 1.5 },
        { fromSequence: -(2 ** 53) },
        { toSequence: 2 ** 53 },
        { fromSequence: "1" },
        { toSequence: 0 },
        { fromSequence: 5, toSequence: 4 },
      ]) {
        expect((await worker.post(`/v1/contracts/${id}/checkpoint`, { ...good, ...wrong })).status).toBe(400);
      }
    },
  );

  withMoney(
    [
      "the first checkpoint of a contract must have fromSequence 1",
      "each later one must have fromSequence equal to the previous toSequence + 1; checkpointedAt must be strictly after the previous checkpoint's; violations return 409 `conflict`.",
    ],
    async () => {
      const { worker } = await pair();
      const { id } = await matched(scene, await pair());
      const path = `/v1/contracts/${id}/checkpoint`;
      for (const fromSequence of [2, 0, -1]) {
        const refused = await worker.post(path, await checkpointBody(scene, { fromSequence }));
        expect(refusal(refused)).toBe("409 conflict");
        expect(refused.error?.message).toContain(`fromSequence is ${fromSequence}, expected 1`);
      }
      const first = await checkpointBody(scene);
      ok(await worker.post(path, first), 201);
      const next = async (overrides: Json) =>
        worker.post(path, await checkpointBody(scene, { fromSequence: 11, toSequence: 11, ...overrides }));
      for (const wrong of [
        { fromSequence: 10 },
        { fromSequence: 12, toSequence: 12 },
        { fromSequence: 1 },
        { fromSequence: 0 },
        { checkpointedAt: first.checkpointedAt },
        { checkpointedAt: await scene.inSeconds(-100_000) },
      ]) {
        expect(refusal(await next(wrong))).toBe("409 conflict");
      }
      ok(await next({}), 201);
    },
  );

  withMoney("two checkpoints for one place at the same moment: one passes", async () => {
    const { worker } = await pair();
    const { id } = await matched(scene, await pair());
    const body = await checkpointBody(scene);
    const submit = () => worker.post(`/v1/contracts/${id}/checkpoint`, body);
    const statuses = (await Promise.all([submit(), submit(), submit()])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([201, 409, 409]);
    expect((await submit()).error?.code).toBe("conflict");
  });
});

chapter("GET /v1/contracts/{id}/checkpoints", () => {
  withMoney("No auth. Response 200: array of Checkpoint, oldest first.", async () => {
    const { worker } = await pair();
    const { id } = await matched(scene, await pair());
    expect(ok(await scene.call<Json[]>("GET", `/v1/contracts/${id}/checkpoints`))).toEqual([]);
    const stored = [];
    for (let i = 1; i <= 3; i++) {
      const body = await checkpointBody(scene, { fromSequence: i, toSequence: i });
      stored.push(ok(await worker.post<Json>(`/v1/contracts/${id}/checkpoint`, body), 201));
    }
    expect(ok(await scene.call<Json[]>("GET", `/v1/contracts/${id}/checkpoints`))).toEqual(stored);
  });
});

chapter("POST /v1/contracts/{id}/complaints", () => {
  withMoney("Body: `evidence` object required (stored as given).", async () => {
    const { client } = await pair();
    const path = `/v1/contracts/${(await match()).id}/complaints`;
    for (const body of [{}, { evidence: null }, { evidence: "late" }, { evidence: [1] }, { evidence: 1 }]) {
      expect(refusal(await client.post(path, body))).toBe("400 invalid_request");
    }
    const evidence = { "": "", a: [[], {}, null, 0.1, -5, "\u0001"], ключ: { __proto__x: 1 } };
    expect(ok(await client.post<Json>(path, { evidence }), 201).evidence).toEqual(evidence);
  });
});

chapter("GET /v1/contracts/{id}/complaints", () => {
  withMoney(
    [
      "No auth. Response 200: array of Complaint, oldest first.",
      "What the service does > Either party can file a complaint about the other party's conduct.",
      "POST /v1/contracts/{id}/complaints > A complaint is reviewed directly (not by Backup Agents) and never moves funds.",
      "What the service does > A complaint never moves funds and only produces a reputational record.",
    ],
    async () => {
      const parties = await newPair(scene);
      const { client, worker } = parties;
      const contract = await matched(scene, parties);
      const { id } = contract;
      const balances = () => Promise.all([client.address, worker.address, id].map(scene.usdOf));
      const before = await balances();
      const filed = [];
      for (const agent of [client, worker, client]) {
        const body = { evidence: { by: agent.address } };
        filed.push(ok(await agent.post<Json>(`/v1/contracts/${id}/complaints`, body), 201));
      }
      expect(filed.map(({ filedByRole }) => filedByRole)).toEqual(["client", "worker", "client"]);
      expect(ok(await scene.call<Json[]>("GET", `/v1/contracts/${id}/complaints`))).toEqual(filed);
      expect(await balances()).toEqual(before);
      expect((await client.get<Json>(`/v1/contracts/${id}`)).data).toEqual(contract);
    },
  );
});

chapter("POST /v1/agents/me/profile", () => {
  const update = async (body: Json) => (await scene.newAgent()).post<Json>("/v1/agents/me/profile", body);

  const target = [
    "the authenticated address is the target.",
    "What the service does > An agent's identity is its on-chain address.",
    "What the service does > There is no sign-up and no dashboard.",
  ];
  says(target, async () => {
    // A fresh address needs only a signature.
    const [agent, other] = [await scene.newAgent(), await scene.newAgent()];
    const body = { displayName: "Mine", agentId: other.address, address: other.address };
    expect(ok(await agent.post<Json>("/v1/agents/me/profile", body), 201).agentId).toBe(agent.address);
    expect(ok(await scene.call<Json>("GET", `/v1/agents/${other.address}/profile`)).displayName).toBeNull();
  });
  says(
    "`displayName` string or null, up to 32 characters, must not contain `0x` in any letter case (else 400 `invalid_request`)",
    async () => {
      for (const displayName of [
        "0x",
        "Agent 0xABC",
        "0X",
        "a0Xb",
        "０ｘ1",
        "0\u200Bx",
        "0\u0445x0x",
        "x".repeat(33),
        5,
        [],
      ]) {
        expect(refusal(await update({ displayName })), String(displayName)).toBe("400 invalid_request");
      }
      ok(await update({ displayName: "0 x", bio: "0xabc is fine in a bio" }), 201);
    },
  );
  says(
    "Invisible and bidirectional-override characters are stripped before validation and storage.",
    async () => {
      const dirty = `\u202E${"a".repeat(16)}\u200B\u200D\u2066${"b".repeat(16)}\uFEFF\u0007`;
      const version = ok(await update({ displayName: dirty, bio: "\u202Eoib\u202C\u00AD" }), 201);
      expect(version).toMatchObject({ displayName: `${"a".repeat(16)}${"b".repeat(16)}`, bio: "oib" });
    },
  );
  says(
    [
      "An omitted field carries over its current value; `null` clears it.",
      "What the service does > Agents can set a self-declared display name and bio.",
      "Profiles / Small print > Body (both optional): `displayName` string or null, `bio` string or null",
    ],
    async () => {
      const agent = await scene.newAgent();
      const set = async (body: Json) => ok(await agent.post<Json>("/v1/agents/me/profile", body), 201);
      expect(await set({ displayName: "Ada", bio: "Counts" })).toMatchObject({
        displayName: "Ada",
        bio: "Counts",
      });
      expect(await set({ bio: "Counts more" })).toMatchObject({ displayName: "Ada", bio: "Counts more" });
      expect(await set({ displayName: null })).toMatchObject({ displayName: null, bio: "Counts more" });
      expect(await set({})).toMatchObject({ displayName: null, bio: "Counts more" });
      expect(await set({ bio: null })).toMatchObject({ displayName: null, bio: null });
      for (const body of [{ displayName: 1 }, { bio: false }, { bio: ["a"] }, { displayName: { a: 1 } }])
        expect(refusal(await agent.post("/v1/agents/me/profile", body))).toBe("400 invalid_request");
    },
  );
  withDatabase(
    "At most 10 versions per rolling 24 hours per agent (else 429 `too_many_profile_updates`).",
    async () => {
      const agent = await scene.newAgent();
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, i) => agent.post("/v1/agents/me/profile", { displayName: `v${i}` })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(201), 429, 429]);
      expect(refusal(await agent.post("/v1/agents/me/profile", {}))).toBe("429 too_many_profile_updates");
      await scene.query(
        "update app.profile set created_at = created_at - interval '24 hours' where id = (select min(id) from app.profile where agent = $1)",
        [agent.address],
      );
      expect((await agent.post("/v1/agents/me/profile", {})).status).toBe(201);
      expect((await agent.post("/v1/agents/me/profile", {})).status).toBe(429);
    },
  );
  says("Names are not unique.", async () => {
    ok(await update({ displayName: "Common Name" }), 201);
    ok(await update({ displayName: "Common Name" }), 201);
  });
});

chapter("GET /v1/agents/{address}/profile", () => {
  says(
    [
      "No auth. Response 200: `{ agentId, displayName, bio }` for the newest version, or null fields when none was ever set; never 404.",
      "POST /v1/agents/me/profile > Response 201: `{ agentId, displayName, bio, createdAt }`.",
      "Resources and their fields / Agent profile > | agentId | string | The agent's address (shown in lower case). |",
      "Resources and their fields / Agent profile > | createdAt | string (timestamp) | Returned when a version is created. |",
    ],
    async () => {
      const agent = await scene.newAgent();
      const path = `/v1/agents/${agent.account.address}/profile`;
      const never = { agentId: agent.address.toLowerCase(), displayName: null, bio: null };
      expect(ok(await scene.call("GET", path))).toEqual(never);
      const version = ok(await agent.post<Json>("/v1/agents/me/profile", { displayName: "Ada" }), 201);
      const { createdAt } = version;
      expect(new Date(createdAt).toISOString()).toBe(createdAt);
      expect(version).toEqual({ ...never, displayName: "Ada", createdAt });
      expect(ok(await scene.call("GET", path))).toEqual({ ...never, displayName: "Ada" });
    },
  );
});

chapter("GET /v1/agents/{address}/workload", () => {
  withMoney(
    [
      "200 `data` with arrays `activeAsWorker` (contract ids, matched Worker, not yet settled or cancelled), `completedAsWorker` (ids, settled or cancelled), `activeAsClient`, `completedAsClient`, `pendingBaVotes` (items `{ contractId, criterionIndex }`, drawn but unresolved), `resolvedBaVotes` (items `{ contractId, criterionIndex, vote, majorityOutcome }`).",
      "Work / Small print > the same data is obtainable from contract listings and vote listings filtered by worker, client and status.",
    ],
    async () => {
      const parties = await newPair(scene);
      const { client, worker } = parties;
      const active = await matched(scene, parties);
      const done = await delivered(scene, parties);
      ok(await client.post(`/v1/contracts/${done.id}/approve`));
      await untilStatus(client, done.id, "settled-all-met");
      const of = async (address: string) => ok(await client.get<Json>(`/v1/agents/${address}/workload`));
      const empty = { pendingBaVotes: [], resolvedBaVotes: [] };
      expect(await of(worker.address)).toEqual({
        activeAsWorker: [active.id],
        completedAsWorker: [done.id],
        activeAsClient: [],
        completedAsClient: [],
        ...empty,
      });
      expect(await of(client.address)).toEqual({
        activeAsWorker: [],
        completedAsWorker: [],
        activeAsClient: [active.id],
        completedAsClient: [done.id],
        ...empty,
      });
      const list = async (query: string) =>
        ok(await client.get<Json[]>(`/v1/contracts?${query}`)).map(({ id }) => id);
      for (const party of [`worker=${worker.address}`, `client=${client.address}`]) {
        expect(await list(`${party}&status=active`)).toEqual([active.id]);
        expect(await list(`${party}&status=closed`)).toEqual([done.id]);
        expect(ok(await client.get(`/v1/votes?${party}`))).toEqual([]);
      }
    },
  );
  says(
    ["Unknown agent: 404 `not_found`.", "Errors > | 404 | not_found | Unknown agent (workload). |"],
    async () => {
      const refused = await (await stranger()).get(`/v1/agents/0x${"e7".repeat(20)}/workload`);
      expect(refusal(refused)).toBe("404 not_found");
    },
  );
});

chapter("Other endpoints", () => {
  withMoney(
    "Get Contract, List Contracts and List Votes (referenced as existing with filters by worker, client, status, backupAgent and majorityOutcome)",
    async () => {
      const parties = await newPair(scene);
      const { contract } = await posted(scene, parties.client);
      const match = await matched(scene, parties);
      const { client, worker } = parties;
      expect(ok(await worker.get(`/v1/contracts/${contract.id}`))).toEqual(contract);
      const ids = async (query: string) =>
        ok(await worker.get<Json[]>(`/v1/contracts?${query}`)).map(({ id }) => id);
      expect((await ids(`client=${client.address}`)).sort()).toEqual([match.id, contract.id].sort());
      expect(await ids(`worker=${worker.address}`)).toEqual([match.id]);
      expect(await ids(`client=${client.address}&status=created`)).toEqual([contract.id]);
      expect(await ids(`backupAgent=${worker.address}`)).toEqual([]);
      for (const query of [
        "",
        `backupAgent=${worker.address}`,
        "majorityOutcome=met",
        `client=${client.address}`,
        "status=disputed",
      ]) {
        expect((await worker.get(`/v1/votes?${query}`)).status).toBe(200);
      }
    },
  );
});
