/** Read access to the encrypted references over time. Also covers the change of the operator's master key. */
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "drizzle-orm";
import { compactDecrypt, decodeProtectedHeader, importJWK, type JWK } from "jose";
import { keccak256, stringToHex } from "viem";
import { describe, expect, test } from "vitest";
import { referenceKey } from "../../src/db/schema.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { KeyReleaseView, ReferenceJwk } from "../../src/features/references/routes.js";
import { deliveryOf, encryptWithNewKey, readReferenceKey } from "../../src/features/references/vault.js";
import { type MasterKeys, masterKeyId } from "../../src/master-key.js";
import type { Agent, ApiResponse } from "../support/agent.js";
import { alone } from "../support/chain.js";
import {
  created,
  DAY,
  disputed,
  laterThan,
  matched,
  newJuror,
  newPair,
  ok,
  untilStatus,
} from "../support/contracts.js";
import { waitingForLock } from "../support/database.js";
import { runOperator } from "../support/programs.js";
import { useWorld } from "../support/world.js";

/** Of the service. */
const MASTER_KEY = `0x${"11".repeat(32)}` as const;
const MATERIALS = "ipfs://materials";
const DELIVERY = "ipfs://output";

const world = await useWorld();
const { client, worker } = await newPair(world);
const stranger = await world.newAgent();

const keysOf = (agent: Agent, id: string): Promise<ApiResponse<{ keys: ReferenceJwk[] }>> =>
  agent.get<{ keys: ReferenceJwk[] }>(`/v1/contracts/${id}/keys`);

/** The fields that the agent's keys open, decrypted, or the status if it gets none. */
async function readable(agent: Agent, id: string): Promise<Record<string, string> | number> {
  const { status, data, headers } = await keysOf(agent, id);
  if (status !== 200) return status;
  expect(headers.get("cache-control")).toBe("no-store");
  const { data: workingContract } = await agent.get<ContractView>(`/v1/contracts/${id}`);
  const opened: Record<string, string> = {};
  for (const jwk of data.keys) {
    const jwe = workingContract[jwk.field] ?? "";
    expect(decodeProtectedHeader(jwe)).toMatchObject({ alg: "dir", enc: "A256GCM", kid: jwk.kid });
    const { plaintext } = await compactDecrypt(jwe, await importJWK(jwk as unknown as JWK));
    opened[jwk.field] = new TextDecoder().decode(plaintext);
  }
  return opened;
}

describe("the keys of a contract", () => {
  test("go to the parties, each at its time, and to no one else", async () => {
    const direct = { awardMethod: "direct_award", worker: worker.address, supplementaryMaterials: MATERIALS };
    const { id } = await created(world, client, direct);
    expect(await readable(client, id)).toEqual({ supplementaryMaterials: MATERIALS });
    expect(await readable(worker, id)).toEqual({ supplementaryMaterials: MATERIALS });
    expect(await readable(stranger, id)).toBe(403);
    const plain = await created(world, client);
    expect((await keysOf(client, plain.id)).data).toEqual({ keys: [] });

    expect((await worker.pay(`/v1/contracts/${id}/accept`, { accept: true })).status).toBe(200);
    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: DELIVERY })).status).toBe(200);
    const both = { supplementaryMaterials: MATERIALS, delivery: DELIVERY };
    expect(await readable(worker, id)).toEqual(both);
    expect(await readable(client, id)).toEqual(both);
    expect(await readable(stranger, id)).toBe(403);
  });

  test("do not go to the client before the delivery is on chain", async () => {
    const { id } = await matched(world, { client, worker }, { supplementaryMaterials: MATERIALS });
    // The state between storing a delivery and its transaction.
    await world.query(`insert into app.reference_key (contract_id, field, wrapped_key, master_key_id)
      values ('${id}', '${deliveryOf(worker.address)}', 'unreadable', 'unknown')`);
    expect(await readable(client, id)).toEqual({ supplementaryMaterials: MATERIALS });
  });

  test("open a delivery for which an earlier one, now lost, left a key", async () => {
    const { id } = await matched(world, { client, worker });
    const key = { contractId: id, field: deliveryOf(worker.address) } as const;
    const lost = await encryptWithNewKey({ ...key, masterKey: MASTER_KEY, reference: "ipfs://lost" });
    await world.db.insert(referenceKey).values({ ...key, ...lost });
    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: DELIVERY })).status).toBe(200);
    expect(await readable(client, id)).toEqual({ delivery: DELIVERY });
  });

  test("are those of the Worker's own delivery, if a reorg has made another agent the Worker", async () => {
    const { id } = await matched(world, { client, worker });
    // The former Worker delivered the same.
    await world.query(
      `insert into app.delivery (contract_id, worker, delivery_hash, encrypted) values ($1, $2, $3, 'unreadable')`,
      [id, stranger.address, keccak256(stringToHex(DELIVERY))],
    );
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: DELIVERY }));
    for (const agent of [client, worker]) expect(await readable(agent, id)).toEqual({ delivery: DELIVERY });
    await world.query("update app.reference_key set field = replace(field, $2, $3) where contract_id = $1", [
      id,
      worker.address,
      stranger.address,
    ]);
    for (const agent of [client, worker]) expect((await keysOf(agent, id)).data.keys).toEqual([]);
    // A rotation would find it damaged.
    await world.query("delete from app.reference_key where contract_id = $1", [id]);
  });

  test("go to eligible Backup Agents while the contract is disputed", async () => {
    const [eligible, leaving, left] = [await newJuror(world), await newJuror(world), await newJuror(world)];
    await (await alone(world, left)).unstake();
    await laterThan(world, new Date((await world.chainNow()) * 1000).toISOString());
    const { id } = await matched(world, { client, worker }, { supplementaryMaterials: MATERIALS });
    const late = await newJuror(world);
    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: DELIVERY })).status).toBe(200);
    expect(await readable(eligible, id)).toBe(403);

    ok(await client.pay(`/v1/contracts/${id}/dispute`));
    const both = { supplementaryMaterials: MATERIALS, delivery: DELIVERY };
    expect(await readable(eligible, id)).toEqual(both);
    expect(await readable(leaving, id)).toEqual(both);
    expect(await readable(late, id)).toBe(403);
    expect(await readable(stranger, id)).toBe(403);
    expect(await readable(left, id)).toBe(403);
    await (await alone(world, leaving)).unstake();
    await world.indexed();
    expect(await readable(leaving, id)).toEqual(both);

    await world.increaseTime(DAY + 60);
    await untilStatus(client, id, "settled-partial");
    expect(await readable(eligible, id)).toBe(403);
    expect(await readable(client, id)).toEqual(both);
  });

  test("go to no Backup Agent that neither voted nor was drawn once voting is closed", async () => {
    const [voter, eligible] = [await newJuror(world), await newJuror(world)];
    const { id } = await disputed(world, { client, worker }, { supplementaryMaterials: MATERIALS });
    const both = { supplementaryMaterials: MATERIALS, delivery: DELIVERY };
    // A vote that stays sealed: the contract is disputed for another day.
    ok(await voter.pay(`/v1/contracts/${id}/votes`, { commitment: keccak256("0x01") }));
    for (const agent of [voter, eligible]) expect(await readable(agent, id)).toEqual(both);
    await world.increaseTime(DAY + 60);
    await expect.poll(() => readable(eligible, id)).toBe(403);
    expect(await readable(voter, id)).toEqual(both);
    expect((await client.get<ContractView>(`/v1/contracts/${id}`)).data.status).toBe("disputed");
  });
});

describe("every release", () => {
  test("is logged for client and worker, newest first, page by page", async () => {
    const { id } = await matched(world, { client, worker }, { supplementaryMaterials: MATERIALS });
    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: DELIVERY })).status).toBe(200);
    for (const agent of [client, stranger, worker]) await keysOf(agent, id);

    const path = `/v1/contracts/${id}/keys/releases`;
    const { data, body } = await worker.get<KeyReleaseView[]>(path);
    expect(data.map(({ field, releasedTo, role }) => [field, releasedTo, role])).toEqual([
      ["delivery", worker.address, "worker"],
      ["supplementaryMaterials", worker.address, "worker"],
      ["delivery", client.address, "client"],
      ["supplementaryMaterials", client.address, "client"],
    ]);
    expect(body).toMatchObject({ nextCursor: null });
    const page = (await client.get(`${path}?limit=3`)).body as { data: unknown[]; nextCursor: string };
    expect(page.data).toEqual(data.slice(0, 3));
    const rest = (await client.get(`${path}?cursor=${page.nextCursor}`)).body;
    expect(rest).toEqual({ data: data.slice(3), nextCursor: null });

    expect((await world.call("GET", path)).status).toBe(401);
    expect((await stranger.get(path)).error?.code).toBe("forbidden");
    for (const query of ["cursor=x", "cursor=99999999999999999999", "limit=0", "limit=201"]) {
      expect((await client.get(`${path}?${query}`)).error?.code).toBe("invalid_request");
    }
  });
});

describe("a release that is repeated", () => {
  const logOf = async (id: string) => {
    const { data } = await client.get<KeyReleaseView[]>(`/v1/contracts/${id}/keys/releases`);
    return data.map(({ field, releasedTo }) => [field, releasedTo]);
  };
  const eventsOf = async (id: string) => {
    const { rowCount } = await world.pool.query(
      "select from app.event where type = 'key.released' and contract_id = $1",
      [id],
    );
    return rowCount;
  };

  test("adds neither a row nor an event within the hour, even concurrently", async () => {
    const { id } = await matched(world, { client, worker }, { supplementaryMaterials: MATERIALS });
    const reads = Array.from({ length: 8 }, (_, i) => keysOf(i % 2 === 0 ? client : worker, id));
    for (const { data } of await Promise.all(reads)) expect(data.keys).toHaveLength(1);
    const materials = [client.address, worker.address].map((reader) => ["supplementaryMaterials", reader]);
    expect((await logOf(id)).sort()).toEqual(materials.sort());
    expect(await eventsOf(id)).toBe(2);

    expect((await worker.post(`/v1/contracts/${id}/delivery`, { delivery: DELIVERY })).status).toBe(200);
    for (const _ of [1, 2]) await keysOf(client, id);
    const [newest, ...rest] = await logOf(id);
    expect(newest).toEqual(["delivery", client.address]);
    expect(rest).toHaveLength(2);
    expect(await eventsOf(id)).toBe(3);
  });

  test("is logged again in a later hour", async () => {
    const { id } = await matched(world, { client, worker }, { supplementaryMaterials: MATERIALS });
    await keysOf(client, id);
    await world.pool.query(
      "update app.key_release set released_at = date_trunc('hour', now()) - interval '1 second' where contract_id = $1",
      [id],
    );
    await keysOf(client, id);
    expect(await logOf(id)).toHaveLength(2);
    expect(await eventsOf(id)).toBe(2);
  });
});

describe("rotating the master key", () => {
  const current = MASTER_KEY;
  const next = `0x${"22".repeat(32)}` as const;

  const rotate = (env: Record<string, string>) =>
    runOperator(["master-key", "rotate"], { DATABASE_URL: world.info.databaseUrl, ...env });

  test("rewraps every key, in both directions, and reports the keys that it could not rewrap", async () => {
    const { id } = await created(world, client, { supplementaryMaterials: MATERIALS });
    const before = (await keysOf(client, id)).data.keys[0]?.k;
    const read = async (keys: MasterKeys) => {
      const key = await readReferenceKey(world.db, {
        contractId: id,
        field: "supplementaryMaterials",
        ...keys,
      });
      return Buffer.from(key ?? []).toString("base64url");
    };
    await world.query("delete from app.reference_key where master_key_id = 'unknown'");

    const withoutOld = await rotate({ MASTER_KEY: next });
    expect(withoutOld.code).toBe(1);
    expect(withoutOld.stderr).toContain(`${id} supplementaryMaterials: no master key with the id`);
    // Long enough to be in no address by chance.
    for (const key of [current, next]) expect(withoutOld.stderr).not.toContain(key.slice(2, 18));
    expect(await read({ masterKey: current, masterKeysOld: [] })).toBe(before);

    expect(await rotate({ MASTER_KEY: next, MASTER_KEYS_OLD: current })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("nothing left under another master key"),
    });
    expect(await read({ masterKey: next, masterKeysOld: [] })).toBe(before);
    expect(await read({ masterKey: current, masterKeysOld: [next] })).toBe(before);
    await expect(read({ masterKey: current, masterKeysOld: [] })).rejects.toThrow();

    const again = await rotate({ MASTER_KEY: next, MASTER_KEYS_OLD: current });
    expect(again.stdout).toContain("Done: rewrapped 0,");
    const listed = await rotate({ MASTER_KEY: next, MASTER_KEYS_OLD: `${next},${current}` });
    expect(listed.stdout).toContain(
      `No longer needed by this database: MASTER_KEYS_OLD (id ${masterKeyId(current)}).`,
    );
    // The last look before the old key is put away.
    expect(await rotate({ MASTER_KEY: next })).toMatchObject({
      code: 1,
      stderr: `MASTER_KEYS_OLD: is empty, so nothing was rotated. MASTER_KEY (id ${masterKeyId(next)}) reads every secret of this database; earlier backups need the key of their time.\n`,
    });
    // As in a container that still has the settings from before the rotation.
    expect((await rotate({ MASTER_KEY: current })).stderr).toContain("keys could not be rewrapped");
    expect((await rotate({ MASTER_KEY: current, MASTER_KEYS_OLD: next })).code).toBe(0);
    expect((await keysOf(client, id)).data.keys[0]?.k).toBe(before);
  });

  test("has longer for a statement than the service, as for a table of millions of keys", async () => {
    const rotation = await world.db.transaction(async (tx) => {
      await tx.execute(sql`lock table app.reference_key in access exclusive mode`);
      const rotating = rotate({ MASTER_KEY: current, MASTER_KEYS_OLD: next });
      await expect.poll(() => waitingForLock(world.db.$client), { timeout: 20_000 }).toBeGreaterThan(0);
      await delay(16_000);
      return { rotating };
    });
    expect(await rotation.rotating).toMatchObject({ code: 0, stderr: "" });
  });

  test("needs its keys", async () => {
    const { code, stderr } = await rotate({ MASTER_KEY: "secret", MASTER_KEYS_OLD: current });
    expect([code, stderr]).toEqual([1, "MASTER_KEY: must be 32 bytes in hex\n"]);
  });
});
