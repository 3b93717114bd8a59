/** Continuous work: checkpoints from the first one to the root on chain. */
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { LIMITS } from "@working-contracts/protocol/limits";
import canonicalize from "canonicalize";
import { keccak256, stringToHex } from "viem";
import { describe, expect, test } from "vitest";
import {
  type CheckpointProof,
  type CheckpointView,
  checkpointCapacity,
} from "../../src/features/checkpoints/routes.js";
import { until } from "../../tools/local/processes.js";
import type { ApiResponse } from "../support/agent.js";
import { checkpointBody, HOUR, type Json, matched, newPair } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

/** A checkpoint of the sequences `from` to `to`, `from` seconds after an hour ago. */
const checkpoint = async (fromSequence: number, toSequence: number, overrides: Json = {}) =>
  checkpointBody(world, {
    fromSequence,
    toSequence,
    checkpointedAt: await world.inSeconds(fromSequence - HOUR),
    ...overrides,
  });

const submit = (id: string, body: unknown, agent = worker): Promise<ApiResponse<CheckpointView>> =>
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
  test("stores data as it was given, to the byte, and the largest sequence", async () => {
    const { id } = await matched(world, { client, worker });
    const data = { z: 1.5, a: [null, { "": "é" }], "0": -3, deep: { big: 1e21, small: 5e-324 } };
    const time = new Date(Date.parse(await world.inSeconds(-HOUR)) + 123).toISOString();
    const checkpointedAt = time.replace("Z", "+00:00");
    const body = await checkpoint(1, Number.MAX_SAFE_INTEGER, { data, checkpointedAt });
    const { status, data: stored } = await submit(id, body);
    expect([status, stored]).toEqual([201, expect.objectContaining({ ...body, checkpointedAt: time })]);
    const { rows } = await world.pool.query("select data::text from app.checkpoint where id = $1", [
      stored.id,
    ]);
    // A number of seven characters can stand for one of three hundred digits.
    expect(rows).toEqual([{ data: JSON.stringify(data) }]);
    expect(await read(`${id}/checkpoints`)).toEqual({ status: 200, data: [stored] });
  });

  test("are the Worker's alone, if a reorg has made another agent the Worker", async () => {
    const { id } = await matched(world, { client, worker });
    const other = (await submit(id, await checkpoint(1, 5))).data;
    await world.query("update app.checkpoint set worker = $2 where contract_id = $1", [id, client.address]);
    expect(await read(`${id}/checkpoints`)).toEqual({ status: 200, data: [] });
    expect((await read(`${id}/checkpoints/${other.id}/proof`)).status).toBe(404);
    const first = await submit(id, await checkpoint(1, 2));
    expect(first.status).toBe(201);
    expect(await read(`${id}/checkpoints`)).toEqual({ status: 200, data: [first.data] });
  });

  test("bounds the bytes of a contract's checkpoints, of a page, and the whole lists of one client", {
    timeout: 300_000,
  }, async () => {
    const { id } = await matched(world, { client, worker });
    expect(await read(`${id}/checkpoints`)).toEqual({ status: 200, data: [] });
    const large = (i: number) =>
      checkpoint(i, i, { data: { text: "a".repeat(60_000) } }).then((b) => submit(id, b));
    expect((await large(1)).status).toBe(201);
    // All but the last few as copies of the first, each with the two sequences longer by at most two digits.
    const copies = Math.floor(LIMITS.checkpointBytesPerContract / 60_500) - 3;
    await world.query(
      `insert into app.checkpoint (id, contract_id, worker, position, from_sequence, to_sequence, merkle_root,
          last_receipt_hash, tee_measurement, tee_signature, data, leaf, total_bytes, checkpointed_at)
        select gen_random_uuid()::text, contract_id, worker, i, i + 1, i + 1, merkle_root, last_receipt_hash, tee_measurement,
          tee_signature, data, '0x' || encode(sha256(i::text::bytea), 'hex'), (i + 1) * (total_bytes + 4),
          checkpointed_at + i * interval '1 second'
        from app.checkpoint, generate_series(1, $2::int) as i where contract_id = $1`,
      [id, copies],
    );
    let filled: ApiResponse<CheckpointView>;
    let count = 1 + copies;
    do {
      filled = await large(++count);
    } while (filled.status === 201);
    expect(count).toBeGreaterThan(200);
    const maximum = LIMITS.checkpointBytesPerContract;
    expect([filled.status, filled.error]).toMatchObject([409, { code: "conflict", details: { maximum } }]);
    expect((await submit(id, await checkpoint(count, count))).status).toBe(201);

    const whole = await fetch(`${world.url}/v1/contracts/${id}/checkpoints`);
    const text = await whole.text();
    expect(text.length).toBeLessThanOrEqual(maximum + 2 * count + 100);
    const listed = (JSON.parse(text) as { data: CheckpointView[] }).data;
    expect(listed.map(({ fromSequence }) => fromSequence)).toEqual(
      Array.from({ length: count }, (_, i) => i + 1),
    );

    const paged: CheckpointView[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await read<CheckpointView[]>(
        `${id}/checkpoints?limit=200${cursor ? `&cursor=${cursor}` : ""}`,
      );
      expect(JSON.stringify(page.data).length).toBeLessThanOrEqual(LIMITS.checkpointPageBytes + 200);
      paged.push(...page.data);
      cursor = page.nextCursor;
    } while (cursor);
    expect(paged).toEqual(listed);

    const stalled = new AbortController();
    const url = `${world.url}/v1/contracts/${id}/checkpoints`;
    const open = await Promise.all(
      Array.from({ length: LIMITS.downloadsPerClient + 1 }, () => fetch(url, { signal: stalled.signal })),
    );
    expect(open.map(({ status }) => status).sort()).toEqual([
      ...Array(LIMITS.downloadsPerClient).fill(200),
      429,
    ]);
    expect((await read(`${id}/checkpoints?limit=1`)).status).toBe(200);
    stalled.abort();
    await until(
      "the aborted lists are counted down",
      async () => {
        const again = await fetch(url);
        await again.arrayBuffer();
        return again.ok;
      },
      { timeoutMs: 60_000 },
    );
  });

  test("can fill the disk no faster than its price allows", async () => {
    const { id } = await matched(world, { client, worker }, { budgetOrPrice: 0.01 });
    const large = async (i: number) =>
      submit(id, await checkpoint(i, i, { data: { t: "a".repeat(60_000) } }));
    const statuses: number[] = [];
    for (let i = 1; i <= 17; i++) statuses.push((await large(i)).status);
    expect(new Set(statuses)).toEqual(new Set([201]));
    const refused = await large(18);
    expect(refused).toMatchObject({ status: 409, error: { code: "conflict" } });
    expect(refused.error?.message).toContain("which grows each day");
    const contract = { price: 10_000n, matchedAt: 0n };
    const first = checkpointCapacity(contract, 86_399);
    expect(refused.error?.details).toMatchObject({ maximum: first });
    expect(checkpointCapacity(contract, 86_400)).toBeGreaterThan(1.9 * first);
    expect(checkpointCapacity(contract, 365 * 86_400)).toBe(LIMITS.checkpointBytesPerContract);
  });

  test("bounds the length of texts and data, and the sequence", async () => {
    const { id } = await matched(world, { client, worker });
    for (const [field, value] of [
      ["toSequence", 2 ** 53],
      ["merkleRoot", ""],
      ["lastReceiptHash", "é".repeat(1025)],
      ["data", { text: "a".repeat(64 * 1024) }],
    ] as const) {
      const { status, error } = await submit(id, await checkpoint(1, 2, { [field]: value }));
      expect([field, status, error?.code]).toEqual([field, 400, "invalid_request"]);
      expect(error?.details).toContainEqual(
        expect.objectContaining({ path: expect.stringContaining(field) }),
      );
    }
    const longest = { merkleRoot: "é".repeat(1024), data: { t: "a".repeat(64 * 1024 - 8) } };
    expect((await submit(id, await checkpoint(1, 1, longest))).status).toBe(201);
  });
});

describe("a proof", () => {
  test("leads from the listed checkpoint to the root in the escrow's event", async () => {
    const { id } = await matched(world, { client, worker });
    for (let i = 1; i <= 5; i++) {
      expect((await submit(id, await checkpoint(i, i, { data: { i, text: "ü" } }))).status).toBe(201);
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

    const late = await submit(id, await checkpoint(6, 6));
    expect([late.status, late.error?.code]).toEqual([409, "conflict"]);
    expect((await read(`${id}/checkpoints/nonsense/proof`)).status).toBe(404);
    const other = await matched(world, { client, worker });
    expect((await read(`${other.id}/checkpoints/${listed[0]?.id}/proof`)).status).toBe(404);
  });

  test("covers every accepted checkpoint, however they race with the delivery", async () => {
    for (let round = 0; round < 4; round++) {
      const { id } = await matched(world, { client, worker });
      expect((await submit(id, await checkpoint(1, 1))).status).toBe(201);
      const delivered = worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" });
      const statuses: number[] = [];
      let next = 2;
      for (let tries = 0; tries < 20; tries++) {
        const { status } = await submit(id, await checkpoint(next, next));
        statuses.push(status);
        if (status === 201) next++;
        else break;
      }
      expect((await delivered).status).toBe(200);
      expect(statuses.at(-1)).toBe(409);
      const { data: listed } = await read<CheckpointView[]>(`${id}/checkpoints`);
      expect(listed).toHaveLength(next - 1);
      const root = await anchoredRoot(id);
      for (const { id: checkpointId } of listed) {
        const { data: proof } = await read<CheckpointProof>(`${id}/checkpoints/${checkpointId}/proof`);
        expect(proof).toMatchObject({ root, anchored: true, leafCount: listed.length });
      }
    }
  });
});
