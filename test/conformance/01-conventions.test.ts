/** The specification's first page: conventions and the service's purpose. */
import { verifyMessage } from "viem";
import { describe, expect } from "vitest";
import {
  ballot,
  checkpointBody,
  created,
  delivered,
  disputed,
  draft,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  posted,
  quoteFor,
  signedChallenge,
  UNKNOWN,
  untilStatus,
} from "../support/contracts.js";
import { authorize, version2 } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { says, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const contract = lazy(async () => matched(scene, await pair()));

const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

describe("Conventions", () => {
  says('every successful response is wrapped as `{ "data": ... }`', async () => {
    const agent = await scene.newAgent();
    const answers = await Promise.all([
      scene.call("GET", "/v1/protocol"),
      scene.call("GET", `/v1/agents/${agent.address}/profile`),
      scene.call("POST", `/v1/agents/${agent.address}/challenge`),
      agent.get("/v1/agents/me/api-keys"),
      agent.get("/v1/contracts"),
      agent.post("/v1/agents/me/profile", { displayName: "Envelope" }),
    ]);
    for (const { status, body } of answers) {
      expect([200, 201]).toContain(status);
      expect(body).toHaveProperty("data");
      expect(body).not.toHaveProperty("error");
    }
  });

  says('every error is wrapped as `{ "error": { "code": <string>, "message": <string> } }`', async () => {
    const agent = await scene.newAgent();
    const answers = await Promise.all([
      scene.call("GET", "/v1/agents/me/api-keys"),
      scene.call("GET", "/v1/nowhere"),
      scene.call("DELETE", "/v1/protocol"),
      scene.call("POST", "/v1/agents/nobody/challenge"),
      agent.get(`/v1/contracts/${UNKNOWN}`),
      agent.post("/v1/contracts", "{"),
      agent.post("/v1/agents/me/profile", { displayName: "0xabc" }),
    ]);
    for (const { status, body } of answers) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(body).toEqual({
        error: expect.objectContaining({ code: expect.any(String), message: expect.any(String) }),
      });
    }
  });

  withMoney("Timestamps are ISO 8601.", async () => {
    const { client } = await pair();
    const { id } = await contract();
    const { data } = await client.get<Json>(`/v1/contracts/${id}`);
    for (const name of [
      "createdAt",
      "matchDeadline",
      "withdrawalDeadline",
      "deliveryDeadline",
      "reviewDeadline",
    ]) {
      expect(data[name], name).toMatch(ISO_8601);
    }
    const keys = ok(await client.get<Json[]>("/v1/agents/me/api-keys"));
    expect(keys[0]?.createdAt).toMatch(ISO_8601);
  });

  withMoney(
    "Addresses are on-chain account addresses written as hex strings with a `0x` prefix.",
    async () => {
      const { client, worker } = await contract();
      expect(client).toMatch(ADDRESS);
      expect(worker).toMatch(ADDRESS);
    },
  );

  says("all paths below are relative to it", async () => {
    expect((await scene.call("GET", "/v1/protocol")).status).toBe(200);
  });
});

describe("What the service does", () => {
  says("An agent's identity is its on-chain address.", async () => {
    const agent = await scene.newAgent();
    const profile = ok(await agent.post<Json>("/v1/agents/me/profile", {}), 201);
    expect(profile.agentId).toBe(agent.address);
  });

  says("There is no sign-up and no dashboard.", async () => {
    // A fresh address needs only a signature.
    const agent = await scene.newAgent();
    expect((await agent.get("/v1/contracts")).status).toBe(200);
  });

  says(
    "An agent proves control of its address by signing a server-issued challenge off-chain (no transaction, no gas) and receives an API key.",
    async () => {
      const agent = await scene.newAgent();
      const { message } = ok(await scene.call<Json>("POST", `/v1/agents/${agent.address}/challenge`));
      const signature = await agent.account.signMessage({ message });
      expect(await verifyMessage({ address: agent.address, message, signature })).toBe(true);
      const issued = await scene.call<Json>("POST", `/v1/agents/${agent.address}/api-key`, {
        body: await signedChallenge(scene, agent),
      });
      expect(issued.data.apiKey).toEqual(expect.any(String));
    },
  );

  withMoney(
    "A Client posts a Working Contract with a task, up to 10 acceptance criteria, four deadlines and a fixed price.",
    async () => {
      const { client } = await pair();
      const { body, contract } = await posted(scene, client, {
        acceptanceCriteria: Array.from({ length: 10 }, (_, i) => `Part ${i}`),
      });
      expect(contract.acceptanceCriteria).toEqual(body.acceptanceCriteria);
      expect(contract).toMatchObject({ title: body.title, budgetOrPrice: "50.0", client: client.address });
    },
  );

  withMoney(
    "The price is locked in a per-contract escrow by a payment made within the same call.",
    async () => {
      const client = await scene.newAgent({ usd: "100" });
      const bodies = [await draft(scene), await draft(scene)];
      const quotes = [
        await quoteFor(client, "/v1/contracts", bodies[0]),
        await quoteFor(client, "/v1/contracts", bodies[1]),
      ];
      expect(quotes[0]?.payTo).not.toBe(quotes[1]?.payTo);
      ok(await client.pay("/v1/contracts", bodies[0]));
      expect(await scene.usdOf(client.address)).toBe(50_000_000n);
      expect(await scene.usdOf(quotes[0]?.payTo as `0x${string}`)).toBe(50_000_000n);
    },
  );

  withMoney(
    "A Worker can instead post a contract as the initiator by staking first (a worker-initiated listing).",
    async () => {
      const worker = await scene.newAgent({ usd: "2.5" });
      const listing = await created(scene, worker, { initiator: "worker" });
      expect(listing).toMatchObject({ initiator: "worker", worker: worker.address, workerStake: "2.5" });
      expect(await scene.usdOf(worker.address)).toBe(0n);
    },
  );

  withMoney(
    "A Worker is matched either by direct award (named in the request) or by open tender (first qualifying agent whose stake payment settles).",
    async () => {
      const { client, worker } = await pair();
      const award = await matched(
        scene,
        { client, worker },
        { awardMethod: "direct_award", worker: worker.address },
      );
      const tender = await matched(scene, { client, worker });
      for (const contract of [award, tender]) {
        expect(contract).toMatchObject({ status: "matched", worker: worker.address });
      }
    },
  );

  withMoney("The Worker posts a Worker Stake in the same escrow.", async () => {
    const { client, worker } = await pair();
    const { id } = await created(scene, client);
    const quote = await quoteFor(worker, `/v1/contracts/${id}/accept`, { accept: true });
    const before = await scene.usdOf(quote.payTo);
    ok(await worker.pay(`/v1/contracts/${id}/accept`, { accept: true }));
    expect(before).toBe(50_000_000n);
    expect(await scene.usdOf(quote.payTo)).toBe(52_500_000n);
  });

  withMoney("The Worker submits a delivery (an encrypted reference).", async () => {
    const contract = await delivered(scene, await pair());
    expect(contract.status).toBe("under-review");
    expect(contract.delivery).toEqual(expect.any(String));
    expect(contract.delivery).not.toContain("ipfs://output");
  });

  withMoney("A dispute requires the Client to post a Dispute Bond.", async () => {
    const { client, worker } = await pair();
    const { id } = await delivered(scene, { client, worker });
    expect((await client.post(`/v1/contracts/${id}/dispute`)).status).toBe(402);
    expect((await client.get<Json>(`/v1/contracts/${id}`)).data.status).toBe("under-review");
    expect(ok(await client.pay<Json>(`/v1/contracts/${id}/dispute`)).disputeBond).toBe("2.5");
  });

  withJury(
    "Backup Agents stake a bond and vote per acceptance criterion (`met`, `not met`, `unclear`).",
    async () => {
      const juror = await newJuror(scene);
      const { id } = await disputed(scene, await pair());
      const before = await scene.usdOf(juror.address);
      const votes = ok(
        await juror.pay<Json[]>(`/v1/contracts/${id}/votes`, ballot("met", "not met", "unclear")),
      );
      expect(votes.map(({ vote }) => vote)).toEqual(["met", "not met", "unclear"]);
      expect(await scene.usdOf(juror.address)).toBe(before - 7_500_000n);
    },
  );

  withMoney(
    "A contract that delivers continuously can receive periodic checkpoints from its Worker without ending.",
    async () => {
      const { client, worker } = await pair();
      const { id } = await matched(scene, { client, worker });
      const path = `/v1/contracts/${id}/checkpoint`;
      ok(await worker.post(path, await checkpointBody(scene)), 201);
      ok(await worker.post(path, await checkpointBody(scene, { fromSequence: 11, toSequence: 20 })), 201);
      expect((await client.get<Json>(`/v1/contracts/${id}`)).data.status).toBe("matched");
    },
  );

  withMoney("Either party can file a complaint about the other party's conduct.", async () => {
    const { client, worker } = await pair();
    const { id } = await contract();
    const path = `/v1/contracts/${id}/complaints`;
    const [byClient, byWorker] = [
      ok(await client.post<Json>(path, { evidence: { late: true } }), 201),
      ok(await worker.post<Json>(path, { evidence: { silent: true } }), 201),
    ];
    expect([byClient.filedByRole, byWorker.filedByRole]).toEqual(["client", "worker"]);
  });

  withMoney("A complaint never moves funds and only produces a reputational record.", async () => {
    const parties = await newPair(scene);
    const contract = await matched(scene, parties);
    const { client, worker } = parties;
    const balances = () => Promise.all([client.address, worker.address, contract.id].map(scene.usdOf));
    const before = await balances();
    ok(await client.post(`/v1/contracts/${contract.id}/complaints`, { evidence: {} }), 201);
    expect(await balances()).toEqual(before);
    expect((await client.get<Json>(`/v1/contracts/${contract.id}`)).data).toEqual(contract);
  });

  says("Agents can set a self-declared display name and bio.", async () => {
    const agent = await scene.newAgent();
    const version = ok(
      await agent.post<Json>("/v1/agents/me/profile", { displayName: "Ada", bio: "Counts." }),
      201,
    );
    expect(version).toMatchObject({ displayName: "Ada", bio: "Counts." });
  });

  says("Global economic parameters are readable.", async () => {
    expect((await scene.call<Json>("GET", "/v1/protocol")).data.protocolFee).toEqual(expect.any(Number));
  });

  withMoney("a call that needs money first answers `402 Payment Required` with a quote", async () => {
    const agent = await scene.newAgent();
    expect((await quoteFor(agent, "/v1/contracts", await draft(scene))).maxAmountRequired).toBe("50000000");
  });

  withMoney(
    "The caller signs a stablecoin transfer authorization (a signed transferWithAuthorization, EIP-3009 style) and repeats the identical call with it attached.",
    async () => {
      const client = await scene.newAgent({ usd: "50" });
      const body = JSON.stringify(await draft(scene));
      const quote = await quoteFor(client, "/v1/contracts", body);
      const signed = await authorize(client, quote, scene);
      ok(await client.post("/v1/contracts", body, version2(quote, signed)));
    },
  );

  withMoney("The contract state changes only after the transfer settles into escrow.", async () => {
    const { client } = await pair();
    const poor = await scene.newAgent();
    const { id } = await created(scene, client);
    const path = `/v1/contracts/${id}/accept`;
    const quote = await quoteFor(poor, path, { accept: true });
    const unpaid = await poor.post(
      path,
      { accept: true },
      version2(quote, await authorize(poor, quote, scene)),
    );
    expect(unpaid.status).toBe(402);
    expect(await untilStatus(client, id, "created")).toMatchObject({ worker: null, workerStake: null });
  });
});
