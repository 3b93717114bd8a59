/** `verify` notices what a service does not show, or inserts. */
import type { Agent } from "@working-contracts/client/index";
import { selectorOf } from "@working-contracts/protocol/hex";
import type { Address } from "viem";
import { describe, expect, test } from "vitest";
import { draftOf, lying, newAgent as newAgentIn } from "../support/client-agents.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const node = world.info.rpcUrl;
const newAgent = (options: Parameters<typeof newAgentIn>[1] = {}) =>
  newAgentIn(world, { usd: "1000", node, ...options });
const worker = await newAgent();

/** A contract whose Client, an agent with the given service, can read its delivery. */
async function deliveredTo(client: Agent): Promise<string> {
  const { id } = await client.create(await draftOf(client));
  await worker.accept(id);
  await worker.deliver(id, "ipfs://page", { seal: false });
  return id;
}

async function rowsOf(agent: Agent, id: string, part: string, options: { tries?: number } = {}) {
  const { equal, fields } = await agent.verify(id, options);
  return [equal, ...fields.filter(({ field }) => field.includes(part)).map((one) => one.equal)];
}

describe.concurrent("a delivery that its Client cannot read", () => {
  const keyOf = (change: (response: Response) => Response | Promise<Response>) => {
    let isLying = false;
    const fetch = lying((url, response) =>
      isLying && url.pathname.endsWith("/keys") ? change(response) : response,
    );
    return { fetch, lie: () => (isLying = true) };
  };
  const error = { error: { code: "internal_error", message: "Sorry" } };

  test.each<[string, boolean | null, () => Response]>([
    ["because of an error", false, () => Response.json(error, { status: 500 })],
    ["because of an error of a proxy", false, () => new Response("Bad gateway", { status: 500 })],
    ["because its key is another", false, () => Response.json({ data: { keys: [anotherKey] } })],
    [
      "because nothing answers",
      null,
      () => {
        throw new TypeError("fetch failed", { cause: new Error("reset") });
      },
    ],
  ])("%s is not reported as shown", async (_, equal, change) => {
    const { fetch, lie } = keyOf(change);
    const client = await newAgent({ fetch, patienceMs: 0 });
    const id = await deliveredTo(client);
    expect(await rowsOf(client, id, "withheld")).toEqual([true, true]);
    lie();
    expect(await rowsOf(client, id, "withheld", { tries: 1 })).toEqual([equal !== false, equal]);
  });
  const anotherKey = { field: "delivery", jwk: { kty: "oct", k: "AA".repeat(21), alg: "A256GCM" } };
});

test("a response that cannot be compared is a difference, or named as not compared", async () => {
  let answers: Record<string, object> = {};
  const fetch = lying((url, response) => {
    const data = answers[url.pathname.split("/").slice(4).join("/")];
    return data === undefined ? response : Response.json(data);
  });
  const client = await newAgent({ fetch });
  const id = await deliveredTo(client);
  answers = { terms: {}, complaints: { data: {} } };
  expect((await client.verify(id, { tries: 1 })).notCompared.toSorted()).toEqual([
    expect.stringMatching(/^complaints: /),
    "terms: the response has no data",
  ]);
  answers = { "": { data: { ...(await client.get(id)), title: "\ud800" } }, complaints: { data: [null] } };
  const { fields } = await client.verify(id, { tries: 1 });
  const wrong = fields.filter(({ equal }) => equal === false).map(({ field }) => field);
  expect(wrong).toEqual(["title in the terms"]);
});

const IS_VALID_SIGNATURE = selectorOf("isValidSignature(bytes32,bytes)");

describe.concurrent("a complaint", () => {
  const insert = (id: string, signed: object | null) =>
    world.pool.query(
      `insert into app.complaint (id, contract_id, filed_by, filed_by_role, evidence, signed, filed_at)
       select $1, $2, $3, $4, $5, $6, max(filed_at) + interval '1 second' from app.complaint where contract_id = $2`,
      [crypto.randomUUID(), id, worker.address, "worker", { what: "rude" }, signed],
    );

  test("counts as the party's only with its signature", async () => {
    const client = await newAgent();
    const id = await deliveredTo(client);
    await client.complain(id, { what: "slow" });
    await worker.complain(id, { what: "vague" });
    const [, { signed = null } = {}] = await client.complaints(id);
    expect(await rowsOf(client, id, "complaint")).toEqual([true, true, true]);
    await insert(id, null);
    expect(await rowsOf(client, id, "complaint")).toEqual([true, true, true, null]);
    // The operator has signatures of the party, for other complaints.
    await insert(id, signed);
    expect(await rowsOf(client, id, "complaint", { tries: 1 })).toEqual([false, true, true, null, false]);
  });

  test("whose wallet the node cannot ask is named as not compared, and ends no comparison", async () => {
    const client = await newAgent();
    const id = await deliveredTo(client);
    await worker.complain(id, { what: "vague" });
    const [{ signed = null } = {}] = await client.complaints(id);
    await insert(id, signed);
    const request = async ({ method, params }: { method: string; params?: unknown }) => {
      if (JSON.stringify([params]).includes(IS_VALID_SIGNATURE)) throw new Error("intrinsic gas too low");
      return world.publicClient.request({ method, params } as never);
    };
    const { equal, fields, notCompared } = await client.verify(id, {
      tries: 1,
      nodes: [{ request } as never],
    });
    expect([equal, notCompared]).toEqual([true, [expect.stringMatching(/^complaints: /)]]);
    expect(fields.length).toBeGreaterThan(20);
  });
});

// Last and alone, because it changes the code for all.
test("a deployment with other code than the package knows is pointed out", async () => {
  const client = await newAgent();
  const { id } = await client.create(await draftOf(client));
  expect(await rowsOf(client, id, "code of the deployment")).toEqual([true, true]);
  const address = world.deployment.relay as Address;
  const code = (await world.publicClient.getCode({ address })) ?? "0x";
  await world.testClient.setCode({ address, bytecode: `${code.slice(0, -2)}00` as Address });
  expect(await rowsOf(client, id, "code of the deployment", { tries: 1 })).toEqual([false, false]);
  await world.testClient.setCode({ address, bytecode: code });
});
