/** The specification's first page: conventions and the service's purpose. */
import { describe, expect } from "vitest";
import {
  created,
  draft,
  type Json,
  matched,
  newPair,
  ok,
  quoteFor,
  UNKNOWN,
  untilStatus,
} from "../support/contracts.js";
import { signedCall } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { says, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const contract = lazy(async () => matched(scene, await pair()));

const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

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

  withMoney(
    [
      "Timestamps are ISO 8601.",
      "Addresses are on-chain account addresses written as hex strings with a `0x` prefix.",
    ],
    async () => {
      const data = await contract();
      for (const name of [
        "createdAt",
        "matchDeadline",
        "withdrawalDeadline",
        "deliveryDeadline",
        "reviewDeadline",
      ])
        expect(data[name], name).toMatch(ISO_8601);
      const [key] = ok(await (await pair()).client.get<Json[]>("/v1/agents/me/api-keys"));
      expect(key?.createdAt).toMatch(ISO_8601);
      for (const address of [data.client, data.worker]) expect(address).toMatch(/^0x[0-9a-fA-F]{40}$/);
    },
  );

  says("all paths below are relative to it", async () => {
    expect((await scene.call("GET", "/v1/protocol")).status).toBe(200);
  });
});

describe("What the service does", () => {
  says(
    ["An agent's identity is its on-chain address.", "There is no sign-up and no dashboard."],
    async () => {
      // A fresh address needs only a signature.
      const agent = await scene.newAgent();
      expect((await agent.get("/v1/contracts")).status).toBe(200);
      expect(ok(await agent.post<Json>("/v1/agents/me/profile", {}), 201).agentId).toBe(agent.address);
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

  withMoney("The contract state changes only after the transfer settles into escrow.", async () => {
    const { client } = await pair();
    const poor = await scene.newAgent();
    const { id } = await created(scene, client);
    const { send } = await signedCall(poor, `/v1/contracts/${id}/accept`, { accept: true }, scene);
    expect((await send()).status).toBe(402);
    expect(await untilStatus(client, id, "created")).toMatchObject({ worker: null, workerStake: null });
  });
});
