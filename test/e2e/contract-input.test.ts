/** Requests that the contract routes reject, and the order of the checks. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { Agent } from "../support/agent.js";
import { DAY, HOUR } from "../support/contracts.js";
import { openWorld, type World } from "../support/world.js";
import { createdBy, draftBody, matchedBetween, quoteOf } from "./contract-actors.js";

let world: World;
let client: Agent;
let worker: Agent;

beforeAll(async () => {
  world = await openWorld();
  client = await world.newAgent({ usd: "10000" });
  worker = await world.newAgent({ usd: "10000" });
});
afterAll(() => world.close());

const ZERO = `0x${"0".repeat(40)}`;
const UNKNOWN = `0x${"ab".repeat(20)}`;

describe("creating", () => {
  const faults: [string, string, () => Promise<Record<string, unknown>> | Record<string, unknown>][] = [
    ["no title", "title", () => ({ title: undefined })],
    ["a blank title", "title", () => ({ title: "   " })],
    ["a title of 201 characters", "title", () => ({ title: "x".repeat(201) })],
    [
      "a description of 65,537 characters",
      "taskDescription",
      () => ({ taskDescription: "x".repeat(65_537) }),
    ],
    ["no criteria", "acceptanceCriteria", () => ({ acceptanceCriteria: [] })],
    ["eleven criteria", "acceptanceCriteria", () => ({ acceptanceCriteria: Array(11).fill("x") })],
    ["a blank criterion", "acceptanceCriteria.1", () => ({ acceptanceCriteria: ["x", " "] })],
    [
      "a criterion of 1,001 characters",
      "acceptanceCriteria.0",
      () => ({ acceptanceCriteria: ["x".repeat(1001)] }),
    ],
    ["criteria that are not text", "acceptanceCriteria.0", () => ({ acceptanceCriteria: [1] })],
    ["a price of zero", "budgetOrPrice", () => ({ budgetOrPrice: 0 })],
    ["a negative price", "budgetOrPrice", () => ({ budgetOrPrice: -1 })],
    ["a price of seven decimals", "budgetOrPrice", () => ({ budgetOrPrice: 1.0000001 })],
    ["a price with an exponent", "budgetOrPrice", () => ({ budgetOrPrice: "1e2" })],
    ["a price below the minimum", "budgetOrPrice", () => ({ budgetOrPrice: "0.009999" })],
    [
      "a price above the factory's maximum",
      "budgetOrPrice",
      () => ({ budgetOrPrice: "1208925819614629174.706176" }),
    ],
    ["no price", "budgetOrPrice", () => ({ budgetOrPrice: null })],
    ["an auction", "contractType", () => ({ contractType: "auction" })],
    ["an unknown award method", "awardMethod", () => ({ awardMethod: "lottery" })],
    ["standard verification", "verificationMode", () => ({ verificationMode: "standard" })],
    ["an unknown application", "application", () => ({ application: "chess" })],
    ["application terms without an application", "applicationTerms", () => ({ applicationTerms: {} })],
    [
      "application terms of more than 32 KiB",
      "applicationTerms",
      () => ({ application: "usageticket", applicationTerms: { x: "y".repeat(33_000) } }),
    ],
    ["a direct award without a worker", "worker", () => ({ awardMethod: "direct_award" })],
    [
      "a direct award to oneself",
      "worker",
      () => ({ awardMethod: "direct_award", worker: client.account.address }),
    ],
    ["a direct award to the zero address", "worker", () => ({ awardMethod: "direct_award", worker: ZERO })],
    ["a malformed worker", "worker", () => ({ awardMethod: "direct_award", worker: "0x12" })],
    ["a worker in an open tender", "worker", () => ({ worker: worker.address })],
    ["a listing for another worker", "worker", () => ({ initiator: "worker", worker: worker.address })],
    ["a listing reserved for oneself", "client", () => ({ initiator: "worker", client: client.address })],
    ["an unknown initiator", "initiator", () => ({ initiator: "judge" })],
    ["an empty idempotencyKey", "idempotencyKey", () => ({ idempotencyKey: "" })],
    ["an idempotencyKey of 201 characters", "idempotencyKey", () => ({ idempotencyKey: "x".repeat(201) })],
    ["empty materials", "supplementaryMaterials", () => ({ supplementaryMaterials: "" })],
    ["a deadline without a zone", "matchDeadline", () => ({ matchDeadline: "2030-01-01T00:00:00" })],
    ["a day that does not exist", "matchDeadline", () => ({ matchDeadline: "2030-02-30T00:00:00Z" })],
    ["a deadline in milliseconds", "matchDeadline", () => ({ matchDeadline: 1_900_000_000_000 })],
    [
      "a match deadline that has passed",
      "matchDeadline",
      async () => ({ matchDeadline: await world.inSeconds(-5) }),
    ],
    [
      "withdrawal before match",
      "withdrawalDeadline",
      async () => ({ withdrawalDeadline: await world.inSeconds(HOUR - 10) }),
    ],
    [
      "delivery before withdrawal",
      "deliveryDeadline",
      async () => ({ deliveryDeadline: await world.inSeconds(DAY - 10) }),
    ],
    [
      "review before delivery",
      "reviewDeadline",
      async () => ({ reviewDeadline: await world.inSeconds(DAY) }),
    ],
    [
      "review more than a year ahead",
      "reviewDeadline",
      async () => ({ reviewDeadline: await world.inSeconds(365 * DAY + 60) }),
    ],
  ];
  test.each(faults)("rejects %s, naming %s", async (_name, path, changes) => {
    const refused = await client.post("/v1/contracts", await draftBody(world, await changes()));
    expect(refused.status).toBe(400);
    expect(refused.error?.code).toBe("invalid_request");
    const details = refused.error?.details as { path: string; message: string }[];
    expect(details.map((detail) => detail.path)).toContain(path);
  });

  test("rejects equal delivery and review deadlines, and allows the other three to be equal", async () => {
    const at = await world.inSeconds(HOUR);
    const equal = { matchDeadline: at, withdrawalDeadline: at, deliveryDeadline: at };
    expect(
      (await client.post("/v1/contracts", await draftBody(world, { ...equal, reviewDeadline: at }))).status,
    ).toBe(400);
    expect((await client.post("/v1/contracts", await draftBody(world, equal))).status).toBe(402);
  });

  test("takes the price's digits exactly as sent, and ignores unknown fields", async () => {
    const fresh = await world.newAgent();
    const body = JSON.stringify(await draftBody(world, { surprise: { nested: true }, client: "ignored" }));
    const precise = body.replace('"budgetOrPrice":50', '"budgetOrPrice":12345678.123456');
    expect(quoteOf(await fresh.post("/v1/contracts", precise)).amount).toBe("12345678123456");
  });

  test("reads times in any zone, and rounds them down to whole seconds", async () => {
    const instant = Math.floor(Date.parse(await world.inSeconds(HOUR)) / 1000);
    const offset = new Date((instant + 2 * HOUR) * 1000).toISOString().replace(".000Z", ".987+02:00");
    const created = await createdBy(world, client, { matchDeadline: offset });
    expect(created.matchDeadline).toBe(new Date(instant * 1000).toISOString());
  });

  test("rejects a body that is not a JSON object, has the wrong content type, or is too large", async () => {
    expect((await client.post("/v1/contracts", "[]")).error?.code).toBe("invalid_request");
    expect((await client.post("/v1/contracts", "{")).error?.code).toBe("invalid_request");
    const text = await client.post("/v1/contracts", "{}", { "content-type": "text/plain" });
    expect(text.error?.code).toBe("unsupported_media_type");
    const large = await client.post("/v1/contracts", JSON.stringify({ x: "y".repeat(300_000) }));
    expect(large.error?.code).toBe("payload_too_large");
  });
});

describe("the order of rejections", () => {
  test("is 401, 400, 404, 403, 409, 402", async () => {
    const { id } = await createdBy(world, client, { awardMethod: "direct_award", worker: worker.address });
    const path = `/v1/contracts/${id}/accept`;
    const anonymous = await fetch(`${world.url}${path}`, { method: "POST", body: "{" });
    expect(anonymous.status).toBe(401);
    expect((await client.post(`/v1/contracts/${UNKNOWN}/accept`, { accept: "yes" })).status).toBe(400);
    expect((await client.post("/v1/contracts/nonsense/accept", { accept: true })).status).toBe(400);
    expect((await client.post(`/v1/contracts/${UNKNOWN}/accept`, { accept: true })).error?.code).toBe(
      "not_found",
    );
    const stranger = await world.newAgent();
    expect((await stranger.post(path, { accept: true })).error?.code).toBe("forbidden");
    expect((await worker.post(path, { accept: true })).status).toBe(402);
    expect((await worker.pay(path, { accept: true })).status).toBe(200);
    expect((await stranger.post(path, { accept: true })).error?.code).toBe("forbidden");
    expect((await worker.post(path, { accept: true })).error?.code).toBe("conflict");
  });

  test("comes before the payment: a rejected call uses no authorization", async () => {
    const { id } = await createdBy(world, client);
    const refused = await client.pay(`/v1/contracts/${id}/accept`, { accept: true });
    expect(refused.error?.code).toBe("forbidden");
    const declined = await worker.post(`/v1/contracts/${id}/accept`, { accept: false });
    expect(declined.error?.code).toBe("invalid_request");
  });
});

describe("acting by delegation", () => {
  test("ends with the revocation of every key, and resumes with a new one", async () => {
    const leaver = await world.newAgent({ usd: "100" });
    const { id } = await matchedBetween(world, leaver, worker);
    await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://x" });
    const other = await createdBy(world, leaver, { budgetOrPrice: 1 });
    expect((await leaver.post<ContractView>(`/v1/contracts/${other.id}/cancel`)).status).toBe(200);

    const anonymous = async (path: string, body?: unknown) => {
      const response = await fetch(`${world.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return (await response.json()) as { data: Record<string, string> };
    };
    const sign = async () => {
      const { data } = await anonymous(`/v1/agents/${leaver.address}/challenge`);
      const signature = await leaver.account.signMessage({ message: data.message as string });
      return { challengeId: data.challengeId, signature };
    };
    await anonymous(`/v1/agents/${leaver.address}/api-key/revoke`, await sign());
    expect((await leaver.post(`/v1/contracts/${id}/approve`)).error?.code).toBe("unauthorized");

    await expect
      .poll(
        async () => {
          const issued = await anonymous(`/v1/agents/${leaver.address}/api-key`, await sign());
          const response = await fetch(`${world.url}/v1/contracts/${id}/approve`, {
            method: "POST",
            headers: { authorization: `Bearer ${issued.data?.apiKey}` },
          });
          return response.status;
        },
        { timeout: 30_000, interval: 1_000 },
      )
      .toBe(200);
  });
});

test("a URL of more than eight kilobytes is rejected before it is decoded", async () => {
  const response = await fetch(`${world.url}/v1/contracts?q=${"%ff".repeat(5_000)}`);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: "invalid_request" } });
});
