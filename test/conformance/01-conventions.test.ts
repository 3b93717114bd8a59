/** The specification's first page: conventions and the service's purpose. */
import { describe, expect } from "vitest";
import { created, type Json, matched, newPair, ok, UNKNOWN, untilStatus } from "../support/contracts.js";
import { signedCall } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { says, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const contract = lazy(async () => matched(scene, await pair()));

const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

describe("Conventions", () => {
  says(
    ['every successful response is wrapped as `{ "data": ... }`', "all paths below are relative to it"],
    async () => {
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
    },
  );

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
});

describe("What the service does", () => {
  withMoney("The contract state changes only after the transfer settles into escrow.", async () => {
    const { client } = await pair();
    const poor = await scene.newAgent();
    const { id } = await created(scene, client);
    const { send } = await signedCall(poor, `/v1/contracts/${id}/accept`, { accept: true }, scene);
    expect((await send()).status).toBe(402);
    expect(await untilStatus(client, id, "created")).toMatchObject({ worker: null, workerStake: null });
  });
});
