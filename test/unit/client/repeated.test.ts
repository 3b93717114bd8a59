import { checkpointLeaf } from "@working-contracts/protocol/checkpoints";
import { expect, it } from "vitest";
import { agentOf } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

const { id: ID, terms } = servedTerms();
const checkpointOf = (sequence: number) => ({
  ...{ fromSequence: sequence, toSequence: sequence, merkleRoot: "0x01", lastReceiptHash: "0x02" },
  ...{ teeMeasurement: "none", teeSignature: "none", data: { tokens: sequence, hours: 1 } },
  checkpointedAt: `2030-01-0${sequence}T00:00:00.000Z`,
});
const CHECKPOINT = checkpointOf(1);

/** Stores each request once for its key and bytes, as the service does, and loses the response to the `lost`-th. */
function storing(open: (body: object) => object, { lost = 1, most = 1 } = {}) {
  const stored = new Map<string, object>();
  let requests = 0;
  return {
    stored,
    answer(request: string, { headers, body }: RequestInit): Response | undefined {
      if (request === `GET /v1/contracts/${ID}/terms`) return Response.json({ data: terms });
      if (request === `GET /v1/contracts/${ID}/checkpoints`)
        return Response.json({ data: [...stored.values()] });
      if (request === `POST /v1/contracts/${ID}/delivery`) return Response.json({ data: { id: ID } });
      if (!request.startsWith("POST")) return undefined;
      const key = `${new Headers(headers).get("idempotency-key")} ${body}`;
      const isNew = !stored.has(key);
      if (isNew && stored.size === most)
        return Response.json({ error: { code: "conflict", message: "out of order" } }, { status: 409 });
      if (isNew) stored.set(key, open(JSON.parse(String(body))));
      if (++requests === lost) throw new TypeError("fetch failed");
      return Response.json({ data: stored.get(key) });
    },
  };
}

it("a refusal says that an action was signed if the service then asks for another one", async () => {
  const sent: unknown[] = [];
  const details = { sign: { message: { call: "0x01", nonce: "0" } } };
  const error = { code: "forbidden", message: "Sign", details };
  const agent = await agentOf((request, { headers }) => {
    if (!request.startsWith("POST")) return undefined;
    sent.push(new Headers(headers).get("action-signature"));
    return Response.json({ error }, { status: 403 });
  });
  const refused = await agent.withdraw(ID).catch((thrown) => thrown);
  expect(sent).toEqual([expect.stringMatching(/^0x/)]);
  expect(refused).toMatchObject({ name: "RefusedToSign", field: "action" });
  expect(refused.message).toMatch(/asks to sign 0x01 .*But you signed withdraw.*cancelSignatures/);
});

const stored = (body: object) => ({ ...body, contractId: ID, id: "one", createdAt: "now" });

it("a checkpoint whose response was lost is stored and remembered once, however often it is repeated", async () => {
  const submitted: string[] = [];
  const service = storing(stored);
  const agent = await agentOf(service.answer, {
    submitted: { read: () => submitted as never, add: (_, leaf) => void submitted.push(leaf) },
  });
  await expect(agent.checkpoint(ID, CHECKPOINT)).rejects.toMatchObject({ name: "ConnectionError" });
  expect(submitted).toEqual([]);
  const { data, ...reordered } = { ...CHECKPOINT, data: { hours: 1, tokens: 1 } };
  for (const same of [CHECKPOINT, { data, ...reordered, checkpointedAt: "2030-01-01T01:00:00+01:00" }])
    expect(await agent.checkpoint(ID, same)).toMatchObject({ id: "one" });
  expect(service.stored.size).toBe(1);
  expect(submitted).toEqual([checkpointLeaf({ ...CHECKPOINT, contractId: ID })]);
});

it("a checkpoint that is repeated after a later one blocks no delivery", async () => {
  const agent = await agentOf(storing(stored, { lost: 2, most: 3 }).answer);
  await agent.checkpoint(ID, checkpointOf(1));
  await expect(agent.checkpoint(ID, checkpointOf(2))).rejects.toMatchObject({ name: "ConnectionError" });
  await agent.checkpoint(ID, checkpointOf(3));
  await agent.checkpoint(ID, checkpointOf(2));
  expect(await agent.deliver(ID, "ipfs://page", { seal: false })).toEqual({ id: ID });
});

it("a complaint whose response was lost is filed once if the same evidence is sent again", async () => {
  const { answer, stored } = storing(() => ({ id: "one" }));
  const agent = await agentOf(answer);
  const lost = agent.complain(ID, { late: true, by: { days: 2, hours: 1 } });
  await expect(lost).rejects.toMatchObject({ name: "ConnectionError" });
  expect(await agent.complain(ID, { by: { hours: 1, days: 2 }, late: true })).toEqual({ id: "one" });
  expect(stored.size).toBe(1);
});
