/**
 * Rows 37 and 39: proofs that were used, were made for another place, or belong to someone else, and bodies made to
 * break a parser. Guards: a challenge can be redeemed once; its text names domain, chain and factory; parsing is
 * bounded before it starts.
 */
import { expect, it } from "vitest";
import { accountOf } from "./support/cluster.js";
import { seededChance, useScene } from "./support/story.js";

const scene = await useScene("abuse", { relayers: 1 });
const { cluster, customers, clients } = scene;

async function post(path: string, body: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${cluster.apis[0]?.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
  const answer = (await response.json().catch(() => null)) as {
    data: { challengeId: string; message: string };
    error?: { message: string };
  };
  return { status: response.status, body: answer };
}

it("row 37: a challenge works once, and only with its own text", async () => {
  const { account } = accountOf("abuse challenger");
  const path = `/v1/agents/${account.address}`;
  const challenge = async () => (await post(`${path}/challenge`, "")).body.data;
  const redeem = (challengeId: string, signature: string) =>
    post(`${path}/api-key`, JSON.stringify({ challengeId, signature }));

  const used = await challenge();
  const signature = await account.signMessage({ message: used.message });
  const both = await Promise.all([redeem(used.challengeId, signature), redeem(used.challengeId, signature)]);
  expect(both.map(({ status }) => status).sort()).toEqual([201, 400]);
  const next = await challenge();
  expect((await redeem(next.challengeId, signature)).status).toBe(401);
  const chain = String(cluster.deployment.chainId);
  const changes: [string, string][] = [
    ["faults.test", "other.test"],
    [chain, "1"],
    [cluster.deployment.factory.slice(2), "00".repeat(20)],
  ];
  for (const [from, to] of changes) {
    const { challengeId, message } = await challenge();
    const altered = message.replaceAll(new RegExp(from, "gi"), to);
    expect(altered).not.toBe(message);
    const forged = await account.signMessage({ message: altered });
    expect((await redeem(challengeId, forged)).status).toBe(401);
  }
});

it("row 39: oversized, deep, hostile and random bodies are rejected and leave no row", async () => {
  const [owner, other] = clients;
  const created = await customers.create(owner);
  const count = async () =>
    (
      await cluster.pool.query(
        "select (select count(*) from app.operation) + (select count(*) from app.terms) as n",
      )
    ).rows[0].n;
  const before = await count();
  const { between } = seededChance(39);
  const valid = await customers.draft();
  const bodies = [
    "x".repeat(2 ** 20),
    "[".repeat(100_000),
    `{"a":`.repeat(50_000),
    `{"__proto__":{"polluted":true},"title":1}`,
    `{"title":"\\ud800","budgetOrPrice":1e999}`,
    `{"budgetOrPrice":${"9".repeat(5000)}}`,
    "\u0000",
    ...Array.from({ length: 40 }, () => {
      const at = between(0, valid.length - 1);
      return valid.slice(0, at) + String.fromCharCode(between(0, 127)) + valid.slice(at + between(1, 20));
    }).filter((body) => {
      try {
        JSON.parse(body);
        return false;
      } catch {
        return true;
      }
    }),
  ];
  const headers = { authorization: `Bearer ${other.apiKey}` };
  for (const body of bodies) {
    const { status } = await post("/v1/contracts", body, headers);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  }
  // Rejected for its depth, before anything parses it.
  const deep = await post("/v1/contracts", `{"title":${"[".repeat(100)}${"]".repeat(100)}}`, headers);
  expect(deep.body.error?.message).toBe("The body is nested deeper than 64 levels.");
  for (const act of ["cancel", "approve", "withdraw", "dispute"]) {
    const { status } = await post(`/v1/contracts/${created.data.id}/${act}`, "", headers);
    expect([403, 409]).toContain(status);
  }
  expect(await count()).toBe(before);
});
