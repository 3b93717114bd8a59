/** An agent's self-description, from its first version to the daily limit. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent, Answer } from "../support/agent.js";
import { openWorld, type World } from "../support/world.js";

interface Profile {
  agentId: string;
  displayName: string | null;
  bio: string | null;
  createdAt?: string;
}

const PATH = "/v1/agents/me/profile";

let world: World;
let agent: Agent;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

const update = (body: unknown): Promise<Answer<Profile>> => agent.post<Profile>(PATH, body);
const read = async (address: string): Promise<Profile> => {
  const response = await fetch(`${world.url}/v1/agents/${address}/profile`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: Profile }).data;
};

describe("a profile", () => {
  test("has null fields if none was ever set, and is read without a key in any letter case", async () => {
    const address = "0x00000000000000000000000000000000000ABCDE";
    expect(await read(address)).toEqual({ agentId: address.toLowerCase(), displayName: null, bio: null });
  });

  test("keeps omitted fields, clears null ones, and shows the newest version", async () => {
    agent = await world.newAgent();
    const first = await update({ displayName: " Ada\u200b ", bio: "Translates." });
    expect(first.status).toBe(201);
    expect(first.data).toEqual({
      agentId: agent.address,
      displayName: "Ada",
      bio: "Translates.",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/),
    });

    expect((await update({ bio: null })).data).toMatchObject({ displayName: "Ada", bio: null });
    expect((await update({ displayName: "\u200b" })).data).toMatchObject({ displayName: null, bio: null });
    expect((await update({ displayName: "Bea", bio: "b".repeat(280) })).status).toBe(201);
    expect((await update({})).data).toMatchObject({ displayName: "Bea", bio: "b".repeat(280) });
    expect(await read(agent.account.address)).toEqual({
      agentId: agent.address,
      displayName: "Bea",
      bio: "b".repeat(280),
    });
    const { rows } = await world.pool.query("select count(*) from app.profile where agent = $1", [
      agent.address,
    ]);
    expect(rows[0].count).toBe("5");
  });

  test("is written only for the caller, and names are not unique", async () => {
    const [one, other] = [await world.newAgent(), await world.newAgent()];
    expect((await one.post(PATH, { displayName: "Twin", agentId: other.address })).status).toBe(201);
    expect(await read(other.address)).toMatchObject({ displayName: null });
    expect((await other.post(PATH, { displayName: "Twin" })).status).toBe(201);
  });

  test.each([
    ["displayName of 33 characters", { displayName: "🤖".repeat(33) }, "displayName"],
    ["bio of 281 characters", { bio: "b".repeat(281) }, "bio"],
    ["displayName with 0X", { displayName: "a0Xb" }, "displayName"],
    ["displayName with full-width 0x", { displayName: "\uff10\uff38dead" }, "displayName"],
    ["displayName with 0x across a zero-width space", { displayName: "0\u200bx" }, "displayName"],
    ["displayName of another type", { displayName: 7 }, "displayName"],
    ["bio of another type", { bio: ["b"] }, "bio"],
  ])("rejects a %s", async (_, body, path) => {
    const { status, error } = await update(body);
    expect([status, error?.code]).toEqual([400, "invalid_request"]);
    expect(error?.details).toMatchObject([{ path }]);
  });

  test("accepts 32 characters that are more UTF-16 units, and 0x in a bio", async () => {
    const stranger = await world.newAgent();
    const body = { displayName: "🤖".repeat(32), bio: "I live at 0xabc" };
    expect((await stranger.post(PATH, body)).data).toMatchObject(body);
  });

  test("needs a key, and a well-formed address to read", async () => {
    const anonymous = await fetch(world.url + PATH, { method: "POST", body: "{}" });
    expect(anonymous.status).toBe(401);
    expect((await fetch(`${world.url}/v1/agents/0x12/profile`)).status).toBe(400);
  });

  test("accepts exactly 10 versions in 24 hours, however many arrive at once", async () => {
    agent = await world.newAgent();
    const answers = await Promise.all(Array.from({ length: 25 }, (_, i) => update({ displayName: `v${i}` })));
    const accepted = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status === 429);
    expect([accepted.length, refused.length]).toEqual([10, 15]);
    expect(refused[0]?.error).toMatchObject({ code: "too_many_profile_updates" });
    const wait = Number(refused[0]?.headers.get("retry-after"));
    expect(wait).toBeGreaterThan(86_300);
    expect(wait).toBeLessThanOrEqual(86_400);

    await world.pool.query(
      `update app.profile set created_at = created_at - interval '24 hours'
       where id = (select min(id) from app.profile where agent = $1)`,
      [agent.address],
    );
    expect((await update({ displayName: "later" })).status).toBe(201);
    expect((await update({ displayName: "too soon" })).status).toBe(429);
    expect(await read(agent.address)).toMatchObject({ displayName: "later" });
  });
});
