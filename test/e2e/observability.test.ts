/** Metrics and logs show an operator agents' calls, good and bad, and no log contains a secret. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { localSignerKeys } from "../../tools/local/network.js";
import { until } from "../../tools/local/processes.js";
import type { Agent } from "../support/agent.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { draft, newJuror, newPair, vote } from "../support/contracts.js";
import { authorize, quoteOf, signedCall, version2 } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const MATERIALS = "ipfs://materials-that-nobody-may-log";
const DELIVERY = "ipfs://delivery-that-nobody-may-log";
const TOKEN = "token-that-nobody-may-log";

const world = await useWorld();
const { client, worker } = await newPair(world);
const juror = await newJuror(world);
/** Everything that must not appear in a log. */
const secrets = [
  ...["11".repeat(32), ...localSignerKeys(), MATERIALS, DELIVERY, TOKEN],
  ...[client, worker, juror].map(({ apiKey }) => apiKey),
];

async function metrics(): Promise<string> {
  const answer = await fetch(`${world.url}/metrics`);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain/);
  return answer.text();
}

/** The value of a sample, or 0 if it does not exist yet. */
function sample(text: string, name: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`working_contracts_${name} `));
  return line === undefined ? 0 : Number(line.split(" ").at(-1));
}

/** Calls, pays the quote, and remembers the payment as a secret. */
async function pay(agent: Agent, path: string, body: unknown, requestId: string) {
  const text = JSON.stringify(body);
  const { quote, payment, headers } = await signedCall(agent, path, text, world);
  secrets.push(payment.signature.slice(2), ...Object.values(headers));
  const answer = await agent.post(path, text, { ...headers, "x-request-id": requestId });
  return { quote, header: headers, text, answer };
}

test("a contract's lifecycle and agents' mistakes are visible in metrics and logs, and no secret is", async () => {
  const before = await metrics();
  const body = await draft(world, { supplementaryMaterials: MATERIALS });
  const created = await pay(client, "/v1/contracts", body, "life-create");
  expect(created.answer.status).toBe(200);
  const path = `/v1/contracts/${created.quote.payTo}`;

  // The same payment for another body, a broken signature, no key, a wrong key, no route, an invalid body, no money.
  const other = JSON.stringify({ ...body, title: "Another" });
  const again = { ...created.header, "x-request-id": "life-again" };
  expect((await client.post("/v1/contracts", other, again)).status).toBe(409);
  const quote = quoteOf(await client.post("/v1/contracts", other));
  const forged = await authorize(worker, quote, { ...world, changes: { from: client.address } });
  const forgedHeader = version2(quote, forged);
  secrets.push(forged.signature.slice(2), ...Object.values(forgedHeader));
  expect((await client.post("/v1/contracts", other, forgedHeader)).status).toBe(402);
  expect((await fetch(`${world.url}${path}`)).status).toBe(401);
  const wrongKey = `${client.apiKey.slice(0, -1)}${client.apiKey.endsWith("x") ? "y" : "x"}`;
  secrets.push(wrongKey);
  const withWrongKey = { headers: { authorization: `Bearer ${wrongKey}` } };
  expect((await fetch(`${world.url}${path}`, withWrongKey)).status).toBe(401);
  expect((await fetch(`${world.url}/v1/nothing/at/${client.address}?token=${TOKEN}`)).status).toBe(404);
  expect((await client.post("/v1/contracts", `{"title": "${DELIVERY}`)).status).toBe(400);
  const poor = await world.newAgent();
  secrets.push(poor.apiKey);
  expect((await pay(poor, `${path}/accept`, { accept: true }, "life-poor")).answer.status).toBe(402);

  expect((await pay(worker, `${path}/accept`, { accept: true }, "life-accept")).answer.status).toBe(200);
  const delivered = await worker.post(
    `${path}/delivery`,
    { delivery: DELIVERY },
    { "x-request-id": "life-deliver" },
  );
  expect(delivered.status).toBe(200);
  const { data: keys } = await client.get<{ keys: { k: string }[] }>(`${path}/keys`);
  secrets.push(...keys.keys.map(({ k }) => k));
  expect((await pay(client, `${path}/dispute`, {}, "life-dispute")).answer.status).toBe(200);
  const { salt } = await vote(juror, created.quote.payTo, "met", "met", "unclear");
  secrets.push(salt.slice(2));
  const webhook = await client.post<{ secret: string }>("/v1/agents/me/webhooks", {
    url: "http://127.0.0.1:9/nobody",
    types: ["contract.created"],
  });
  secrets.push(webhook.data.secret);

  const after = await metrics();
  const grown = (name: string) => sample(after, name) - sample(before, name);
  const errors = { 400: "invalid_request", 401: "unauthorized", 402: "payment_required", 409: "conflict" };
  for (const [status, code] of Object.entries(errors)) {
    expect(grown(`http_errors_total{status="${status}",code="${code}"}`), code).toBeGreaterThan(0);
  }
  // By the route's pattern, never by path.
  const request = (method: string, route: string, status: number) =>
    `http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`;
  expect(grown(request("POST", "/v1/contracts/:id/delivery", 200))).toBe(1);
  expect(grown(request("POST", "/v1/contracts", 409))).toBe(1);
  expect(grown(request("GET", "unmatched", 404))).toBe(1);
  expect(after).not.toContain(client.address);
  expect(grown('relayer_batches_total{event="sent"}')).toBeGreaterThanOrEqual(4);
  expect(grown("relayer_batch_operations_sum")).toBeGreaterThanOrEqual(5);
  expect(grown("relayer_operation_seconds_count")).toBeGreaterThanOrEqual(5);
  expect(sample(after, "index_lag_blocks")).toBeLessThan(30);
  // The queries of a scrape do not count.
  expect(sample(after, 'database_connections{pool="work",kind="waiting"}')).toBe(0);
  const gas = ["gas_allowance", "gas_budget", "gas_per_fee"].map((name) => `relayer_${name}`);
  const lags = ["event_log_lag_seconds", "webhook_matching_lag_seconds"];
  for (const name of ["chain_head_age_seconds", "late_settlements", ...lags, ...gas]) {
    expect(after).toMatch(new RegExp(`^working_contracts_${name} \\d`, "m"));
  }

  const lines = logLines();
  for (const [id, kind] of [
    ["life-create", "create"],
    ["life-accept", "accept"],
    ["life-deliver", "deliver"],
    ["life-dispute", "dispute"],
  ]) {
    const ofRequest = lines.filter(({ requestId }) => requestId === id);
    const stored = ofRequest.find(({ msg }) => msg === "operation stored");
    expect(stored, id).toMatchObject({ kind, operation: expect.stringMatching(/^\d+$/) });
    const applied = ofRequest.find(({ msg }) => msg === "operation applied");
    expect(applied).toMatchObject({
      operation: stored?.operation,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      block: expect.stringMatching(/^\d+$/),
    });
    const ofOperation = lines.filter(
      ({ operations }) => Array.isArray(operations) && operations.includes(stored?.operation),
    );
    expect(ofOperation.map(({ msg }) => msg)).toContain("batch sent");
    expect(ofOperation.find(({ msg }) => /^batch (mined|final)$/.test(String(msg)))).toMatchObject({
      hash: applied?.transaction,
      block: applied?.block,
    });
    expect(ofRequest.find(({ msg }) => msg === "request")).toMatchObject({ status: 200 });
  }
  const ended = (id: string) => lines.find(({ requestId, msg }) => requestId === id && msg === "request");
  expect(ended("life-poor")).toMatchObject({ status: 402, caller: poor.address });
  expect(ended("life-again")).toMatchObject({ status: 409, code: "conflict", caller: client.address });

  expect(secrets.every((secret) => secret.length > 20)).toBe(true);
  for (const [name, text] of Object.entries(logs())) {
    for (const secret of secrets) expect(text.includes(secret), `${name}: ${secret}`).toBe(false);
    // Also covers what other tests logged: API keys, signatures and calldata, encrypted references, webhook secrets.
    for (const form of [/wc_(test|live)_[0-9A-Za-z]{40}/, /0x[0-9a-f]{128}/i, /eyJ[\w-]{20}/, /whsec_/]) {
      expect(form.exec(text)?.[0] ?? null, name).toBeNull();
    }
  }
});

test("the queue's depth and age are visible while the chain is stopped, and reset once it has caught up", async () => {
  const body = await draft(world);
  await pauseBlocks(world.testClient);
  let paid: ReturnType<typeof pay> | undefined;
  try {
    paid = pay(client, "/v1/contracts", body, "queue-create");
    const isSeen = async () => sample(await metrics(), 'outbox_oldest_seconds{state="sent"}') > 1;
    await until("the operation is pending", isSeen, { timeoutMs: 60_000 });
    expect(sample(await metrics(), 'outbox_operations{state="sent"}')).toBeGreaterThanOrEqual(1);
  } finally {
    await resumeBlocks(world.testClient);
  }
  expect((await paid).answer.status).toBe(200);
  const isGone = async () => sample(await metrics(), 'outbox_operations{state="sent"}') === 0;
  await until("nothing is pending", isGone, { timeoutMs: 60_000 });
});

/** The output of every process of the stack, by file. */
function logs(): Record<string, string> {
  const { logs: folder } = world.info;
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
}

function logLines(): Record<string, unknown>[] {
  const lines = logs()["service.log"]?.split("\n") ?? [];
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}
