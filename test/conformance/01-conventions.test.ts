/** The specification's first page: conventions and the service's purpose. */
import { describe, expect } from "vitest";
import {
  created,
  delivered,
  draft,
  type Json,
  matched,
  newPair,
  ok,
  posted,
  quoteFor,
  UNKNOWN,
  untilStatus,
} from "../support/contracts.js";
import { authorize, version2 } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { says, withMoney } from "./support/spec.js";

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
