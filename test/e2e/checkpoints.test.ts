/** Continuous work: checkpoints from the first one to the root on chain. */
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { escrowAbi } from "@working-contracts/protocol/abi";
import canonicalize from "canonicalize";
import { keccak256, stringToHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CheckpointProof, CheckpointView } from "../../src/features/checkpoints/read-checkpoints.js";
import type { Agent, Answer } from "../support/agent.js";
import { DAY, HOUR } from "../support/contracts.js";
import { openWorld, type World } from "../support/world.js";
import { createdBy, matchedBetween, untilStatus } from "./contract-actors.js";

let world: World;
let client: Agent;
let worker: Agent;

beforeAll(async () => {
  world = await openWorld();
  client = await world.newAgent({ usd: "10000" });
  worker = await world.newAgent({ usd: "10000" });
});
afterAll(() => world.close());

/** A checkpoint of the sequences `from` to `to`, `from` minutes after an hour ago. */
async function checkpointBody(from: number, to: number, overrides: Record<string, unknown> = {}) {
  return {
    fromSequence: from,
    toSequence: to,
    merkleRoot: `root of ${from} to ${to}`,
    lastReceiptHash: `receipt ${to}`,
    teeMeasurement: "measurement",
    teeSignature: "signature",
    checkpointedAt: await world.inSeconds(from - HOUR),
    data: { tokens: to },
    ...overrides,
  };
}

const submit = (id: string, body: unknown, agent = worker): Promise<Answer<CheckpointView>> =>
  agent.post<CheckpointView>(`/v1/contracts/${id}/checkpoint`, body);

async function read<T>(path: string): Promise<{ status: number; data: T; nextCursor?: string | null }> {
  const response = await fetch(`${world.url}/v1/contracts/${path}`);
  return { status: response.status, ...((await response.json()) as { data: T }) };
}

async function anchoredRoot(id: string): Promise<string | undefined> {
  const events = await world.publicClient.getContractEvents({
    address: id as `0x${string}`,
    abi: escrowAbi,
    eventName: "WorkingContractDelivered",
    fromBlock: 0n,
  });
  return events[0]?.args.checkpointsRoot;
}

describe("a matched contract", () => {
  test("takes any number of checkpoints in order, and lists them to everyone, oldest first", async () => {
    const { id } = await matchedBetween(world, client, worker);
    const data = { z: 1.5, a: [null, { "": "é" }], "0": -3, deep: { big: 1e21, small: 5e-324 } };
    const checkpointedAt = new Date(Date.parse(await world.inSeconds(-HOUR)) + 123);
    const first = await submit(
      id,
      await checkpointBody(1, 10, {
        data,
        checkpointedAt: checkpointedAt.toISOString().replace("Z", "+00:00"),
      }),
    );
    expect(first.status).toBe(201);
    expect(first.data).toEqual({
      id: expect.any(String),
      contractId: id,
      fromSequence: 1,
      toSequence: 10,
      merkleRoot: "root of 1 to 10",
      lastReceiptHash: "receipt 10",
      teeMeasurement: "measurement",
      teeSignature: "signature",
      data,
      checkpointedAt: checkpointedAt.toISOString(),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/),
    });
    const { rows } = await world.pool.query("select data::text from app.checkpoint where id = $1", [
      first.data.id,
    ]);
    // A number of seven characters can stand for one of three hundred digits.
    expect(rows).toEqual([{ data: JSON.stringify(data) }]);
    const second = await submit(id, await checkpointBody(11, 11));
    const third = await submit(id, await checkpointBody(12, Number.MAX_SAFE_INTEGER));
    expect([second.status, third.status]).toEqual([201, 201]);
    const all = [first.data, second.data, third.data];

    const whole = await read<CheckpointView[]>(`${id}/checkpoints`);
    expect(whole).toEqual({ status: 200, data: all });
    const page = await read<CheckpointView[]>(`${id}/checkpoints?limit=2`);
    expect(page).toEqual({ status: 200, data: all.slice(0, 2), nextCursor: second.data.id });
    const rest = await read<CheckpointView[]>(`${id}/checkpoints?cursor=${page.nextCursor}`);
    expect(rest).toEqual({ status: 200, data: [third.data], nextCursor: null });
    expect((await read(`${id}/checkpoints?cursor=nonsense`)).status).toBe(400);
    expect((await read(`${id}/checkpoints?limit=0`)).status).toBe(400);
    expect((await client.get<{ status: string }>(`/v1/contracts/${id}`)).data.status).toBe("matched");
  });

  test("lists more checkpoints than one read returns", async () => {
    const { id } = await matchedBetween(world, client, worker);
    expect(await read(`${id}/checkpoints`)).toEqual({ status: 200, data: [] });
    for (let i = 1; i <= 101; i++) {
      expect((await submit(id, await checkpointBody(i, i))).status).toBe(201);
    }
    const { data } = await read<CheckpointView[]>(`${id}/checkpoints`);
    expect(data.map(({ fromSequence }) => fromSequence)).toEqual(
      Array.from({ length: 101 }, (_, i) => i + 1),
    );
  });

  test("rejects more checkpoints than the limit allows", async () => {
    const { id } = await matchedBetween(world, client, worker);
    expect((await submit(id, await checkpointBody(1, 1))).status).toBe(201);
    const limits = (await (await fetch(`${world.url}/v1/limits`)).json()) as {
      data: { checkpoints: { perContract: number } };
    };
    const { perContract } = limits.data.checkpoints;
    const moveTo = (position: number) =>
      world.pool.query("update app.checkpoint set position = $2 where contract_id = $1", [id, position]);
    await moveTo(perContract - 1);
    const refused = await submit(id, await checkpointBody(2, 2));
    expect([refused.status, refused.error]).toMatchObject([
      409,
      { code: "conflict", details: { maximum: perContract } },
    ]);
    await moveTo(perContract - 2);
    expect((await submit(id, await checkpointBody(2, 2))).status).toBe(201);
  });

  test("rejects gaps, repeats and times out of order", async () => {
    const { id } = await matchedBetween(world, client, worker);
    const refused = async (body: unknown) => {
      const { status, error } = await submit(id, body);
      expect([status, error?.code]).toEqual([409, "conflict"]);
      return error;
    };
    expect(await refused(await checkpointBody(2, 3))).toMatchObject({
      details: { expectedFromSequence: 1, previousCheckpointedAt: null },
    });
    await refused(await checkpointBody(1, 3, { checkpointedAt: await world.inSeconds(HOUR) }));
    const body = await checkpointBody(1, 3);
    expect((await submit(id, body)).status).toBe(201);
    expect(await refused(body)).toMatchObject({ details: { expectedFromSequence: 4 } });
    await refused(await checkpointBody(5, 6));
    await refused(await checkpointBody(3, 6));
    await refused(await checkpointBody(4, 6, { checkpointedAt: body.checkpointedAt }));
    await refused(await checkpointBody(4, 6, { checkpointedAt: await world.inSeconds(-2 * HOUR) }));
    const soon = await submit(
      id,
      await checkpointBody(4, 6, { checkpointedAt: await world.inSeconds(4 * 60) }),
    );
    expect(soon.status).toBe(201);
  });

  test("rejects malformed bodies", async () => {
    const { id } = await matchedBetween(world, client, worker);
    const fields = Object.keys(await checkpointBody(1, 2));
    const wrong: [string, unknown][] = [
      ...fields.map((field): [string, unknown] => [field, undefined]),
      ...fields.map((field): [string, unknown] => [field, null]),
      ["fromSequence", "1"],
      ["fromSequence", 0],
      ["fromSequence", 1.5],
      ["toSequence", 0],
      ["toSequence", 2 ** 53],
      ["merkleRoot", ""],
      ["merkleRoot", 5],
      ["lastReceiptHash", "é".repeat(1025)],
      ["checkpointedAt", "yesterday"],
      ["checkpointedAt", "2026-01-31T12:00:00"],
      ["checkpointedAt", "0000-01-01T00:00:00Z"],
      ["checkpointedAt", 1_700_000_000],
      ["data", []],
      ["data", "{}"],
      ["data", { text: "a".repeat(64 * 1024) }],
    ];
    for (const [field, value] of wrong) {
      const { status, error } = await submit(id, await checkpointBody(1, 2, { [field]: value }));
      expect([field, value, status, error?.code]).toEqual([field, value, 400, "invalid_request"]);
      expect(error?.details, `${field} ${value}`).toContainEqual(
        expect.objectContaining({ path: expect.stringContaining(field) }),
      );
    }
    expect((await submit(id, await checkpointBody(2, 1))).status).toBe(400);
    expect((await submit(id, "{")).status).toBe(400);
    expect(
      (await worker.post(`/v1/contracts/${id}/checkpoint`, "{}", { "content-type": "text/plain" })).status,
    ).toBe(415);
    expect((await submit(id, await checkpointBody(1, 2, { note: "a".repeat(300_000) }))).status).toBe(413);
    const longest = { merkleRoot: "é".repeat(1024), data: { t: "a".repeat(64 * 1024 - 8) } };
    expect((await submit(id, await checkpointBody(1, 1, longest))).status).toBe(201);
  });

  test("takes checkpoints only from its worker", async () => {
    const { id } = await matchedBetween(world, client, worker);
    const body = await checkpointBody(1, 1);
    for (const stranger of [client, await world.newAgent()]) {
      const { status, error } = await submit(id, body, stranger);
      expect([status, error?.code]).toEqual([403, "forbidden"]);
    }
    const anonymous = await fetch(`${world.url}/v1/contracts/${id}/checkpoint`, {
      method: "POST",
      body: "nonsense",
    });
    expect(anonymous.status).toBe(401);
    const unknown = "0x00000000000000000000000000000000000000ff";
    expect((await submit(unknown, body)).status).toBe(404);
    expect((await read(`${unknown}/checkpoints`)).status).toBe(404);
    expect((await submit("0x12", body)).status).toBe(400);
  });

  test("accepts exactly one of many checkpoints for the same place", async () => {
    const { id } = await matchedBetween(world, client, worker);
    for (const [from, to] of [
      [1, 5],
      [6, 9],
    ] as const) {
      const bodies = await Promise.all(
        Array.from({ length: 12 }, (_, i) => checkpointBody(from, to, { data: { attempt: i } })),
      );
      const answers = await Promise.all(bodies.map((body) => submit(id, body)));
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 409)).toHaveLength(11);
    }
    expect((await read<unknown[]>(`${id}/checkpoints`)).data).toHaveLength(2);
  });
});

describe("a proof", () => {
  test("leads from the listed checkpoint to the root in the escrow's event", async () => {
    const { id } = await matchedBetween(world, client, worker);
    for (let i = 1; i <= 5; i++) {
      expect((await submit(id, await checkpointBody(i, i, { data: { i, text: "ü" } }))).status).toBe(201);
    }
    const { data: listed } = await read<CheckpointView[]>(`${id}/checkpoints`);
    const early = await read<CheckpointProof>(`${id}/checkpoints/${listed[0]?.id}/proof`);
    expect(early.data).toMatchObject({ leafCount: 5, anchoredRoot: null, anchored: false });

    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" })).status).toBe(
      200,
    );
    const root = await anchoredRoot(id);
    expect(root).toMatch(/^0x[0-9a-f]{64}$/);
    for (const { id: checkpointId, createdAt, ...content } of listed) {
      const { data: proof } = await read<CheckpointProof>(`${id}/checkpoints/${checkpointId}/proof`);
      const leaf = keccak256(stringToHex(canonicalize(content) ?? ""));
      expect(proof).toMatchObject({
        checkpointId,
        contractId: id,
        leaf,
        root,
        anchoredRoot: root,
        anchored: true,
      });
      expect(SimpleMerkleTree.verify(root as string, leaf, proof.proof)).toBe(true);
      const forged = keccak256(stringToHex(canonicalize({ ...content, data: { i: 0 } }) ?? ""));
      expect(SimpleMerkleTree.verify(root as string, forged, proof.proof)).toBe(false);
    }

    const late = await submit(id, await checkpointBody(6, 6));
    expect([late.status, late.error?.code]).toEqual([409, "conflict"]);
    expect((await read(`${id}/checkpoints/nonsense/proof`)).status).toBe(404);
    const other = await matchedBetween(world, client, worker);
    expect((await read(`${other.id}/checkpoints/${listed[0]?.id}/proof`)).status).toBe(404);
  });

  test("is the zero root if there are no checkpoints", async () => {
    const { id } = await matchedBetween(world, client, worker);
    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" })).status).toBe(
      200,
    );
    expect(await anchoredRoot(id)).toBe(`0x${"0".repeat(64)}`);
  });

  test("covers every accepted checkpoint, however they race with the delivery", async () => {
    for (let round = 0; round < 4; round++) {
      const { id } = await matchedBetween(world, client, worker);
      expect((await submit(id, await checkpointBody(1, 1))).status).toBe(201);
      const delivered = worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" });
      const statuses: number[] = [];
      let next = 2;
      for (let tries = 0; tries < 20; tries++) {
        const { status } = await submit(id, await checkpointBody(next, next));
        statuses.push(status);
        if (status === 201) next++;
        else break;
      }
      expect((await delivered).status).toBe(200);
      expect(statuses.at(-1)).toBe(409);
      const { data: listed } = await read<CheckpointView[]>(`${id}/checkpoints`);
      expect(listed).toHaveLength(next - 1);
      const root = await anchoredRoot(id);
      for (const checkpoint of listed) {
        const { data: proof } = await read<CheckpointProof>(`${id}/checkpoints/${checkpoint.id}/proof`);
        expect(proof).toMatchObject({ root, anchored: true, leafCount: listed.length });
      }
    }
  });
});

describe("outside of matched", () => {
  test("before the match no one is the matched worker", async () => {
    const { id } = await createdBy(world, client, { awardMethod: "direct_award", worker: worker.address });
    expect((await submit(id, await checkpointBody(1, 1))).status).toBe(403);
  });

  test("a checkpoint is rejected once the worker has withdrawn", async () => {
    const { id } = await matchedBetween(world, client, worker);
    expect((await worker.post(`/v1/contracts/${id}/withdraw`)).status).toBe(200);
    expect((await submit(id, await checkpointBody(1, 1))).error?.code).toBe("conflict");
  });

  test("a checkpoint is rejected from the delivery deadline on, before any clean-up", async () => {
    const { id } = await matchedBetween(world, client, worker);
    await world.increaseTime(2 * DAY + 60);
    await untilStatus(client, id, "cancelled-absent");
    const { status, error } = await submit(id, await checkpointBody(1, 1));
    expect([status, error?.code]).toEqual([409, "conflict"]);
    expect(error?.message).toContain("cancelled-absent");
  });
});
