/** Requests that the contract routes reject, and the order of the checks. */
import { describe, expect, test } from "vitest";
import { DAY, draft, HOUR, newPair } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

describe("creating", () => {
  const rejects = async (path: string, changes: Record<string, unknown>): Promise<void> => {
    const refused = await client.post("/v1/contracts", await draft(world, changes));
    expect(refused.status).toBe(400);
    expect(refused.error?.code).toBe("invalid_request");
    const details = refused.error?.details as { path: string; message: string }[];
    expect(details.map((detail) => detail.path)).toContain(path);
  };

  test.each<[string, string, Record<string, unknown>]>([
    ["a title of 201 characters", "title", { title: "x".repeat(201) }],
    ["a description of 65,537 characters", "taskDescription", { taskDescription: "x".repeat(65_537) }],
    ["a blank criterion", "acceptanceCriteria.1", { acceptanceCriteria: ["x", " "] }],
    ["a criterion of 1,001 characters", "acceptanceCriteria.0", { acceptanceCriteria: ["x".repeat(1001)] }],
    [
      "application terms of more than 32 KiB",
      "applicationTerms",
      { application: "usageticket", applicationTerms: { x: "y".repeat(33_000) } },
    ],
    ["a listing for another worker", "worker", { initiator: "worker", worker: worker.address }],
    ["a listing reserved for oneself", "client", { initiator: "worker", client: client.address }],
    ["empty materials", "supplementaryMaterials", { supplementaryMaterials: "" }],
  ])("rejects %s, naming %s", (_name, path, changes) => rejects(path, changes));

  test.each([
    ["a match deadline that has passed", "matchDeadline", -5],
    ["withdrawal before match", "withdrawalDeadline", HOUR - 10],
    ["delivery before withdrawal", "deliveryDeadline", DAY - 10],
    ["review before delivery", "reviewDeadline", DAY],
    ["review more than a year ahead", "reviewDeadline", 365 * DAY + 60],
  ])("rejects %s, naming %s", async (_name, path, seconds) => {
    await rejects(path, { [path]: await world.inSeconds(seconds) });
  });

  test("rejects equal delivery and review deadlines, and allows the other three to be equal", async () => {
    const at = await world.inSeconds(HOUR);
    const equal = { matchDeadline: at, withdrawalDeadline: at, deliveryDeadline: at };
    expect(
      (await client.post("/v1/contracts", await draft(world, { ...equal, reviewDeadline: at }))).status,
    ).toBe(400);
    expect((await client.post("/v1/contracts", await draft(world, equal))).status).toBe(402);
  });
});

test("a URL of more than eight kilobytes is rejected before it is decoded", async () => {
  const response = await fetch(`${world.url}/v1/contracts?q=${"%ff".repeat(5_000)}`);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: "invalid_request" } });
});
