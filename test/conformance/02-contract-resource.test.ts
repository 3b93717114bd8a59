/** Resources: Contract, its amounts and its encrypted references. */
import { compactDecrypt, importJWK } from "jose";
import { expect } from "vitest";
import {
  ballot,
  created,
  delivered,
  disputed,
  draft,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  posted,
  quoteFor,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
/** An open tender with every field that Create accepts, and the body with which it was posted. */
const open = lazy(async () =>
  posted(scene, (await pair()).client, {
    supplementaryMaterials: "ipfs://materials",
    taskDescription: "# Task\n\n* translate\r\n* `check`\n\n| a | b |\n|---|---|\n| 1 | <b>2</b> |",
  }),
);
const match = lazy(async () => matched(scene, await pair()));
const delivery = lazy(async () => delivered(scene, await pair()));
const dispute = lazy(async () => disputed(scene, await pair()));

chapter("Resources and their fields / Contract", () => {
  withMoney(
    [
      "| id | string | Contract identifier. |",
      "| createdAt | string (timestamp) | |",
      "| title | string | Short human-readable name shown in the contract feed. |",
      "| taskDescription | string | Full spec, plain text or Markdown. |",
      "| acceptanceCriteria | array of string | Up to 10 individually checkable conditions; index is 0-based. |",
      "| matchDeadline | string (timestamp) | By which the contract must reach `matched`. |",
      "| withdrawalDeadline | string (timestamp) | Until which the Worker may withdraw with a partial stake slash. |",
      "| deliveryDeadline | string (timestamp) | By which the matched Worker must deliver. |",
    ],
    async () => {
      const { client } = await pair();
      const { body, contract } = await open();
      expect(contract.id).toEqual(expect.any(String));
      expect((await client.get<Json>(`/v1/contracts/${contract.id}`)).data.id).toBe(contract.id);
      const { createdAt } = contract;
      expect(new Date(createdAt).toISOString()).toBe(createdAt);
      expect(Math.abs(Date.parse(createdAt) / 1000 - (await scene.now()))).toBeLessThan(300);
      for (const name of ["title", "taskDescription", "acceptanceCriteria"])
        expect(contract[name]).toEqual(body[name]);
      const feed = ok(await client.get<Json[]>(`/v1/contracts?client=${client.address}&limit=200`));
      expect(feed.find(({ id }) => id === contract.id)?.title).toBe(body.title);
      for (const name of ["matchDeadline", "withdrawalDeadline", "deliveryDeadline"])
        expect(Date.parse(contract[name])).toBe(Math.floor(Date.parse(body[name]) / 1000) * 1000);
    },
  );

  withMoney("| status | string | See States and transitions. |", async () => {
    expect((await open()).contract.status).toBe("created");
    expect((await match()).status).toBe("matched");
    expect((await delivery()).status).toBe("under-review");
  });

  withMoney(
    [
      "| client | address or null | null for a worker-initiated contract until a Buyer accepts. |",
      "| escrowedFunds | string (decimal) or null | Equals budgetOrPrice for a client-initiated contract once paid; null for a worker-initiated contract until a Buyer accepts. |",
      "| initiator | string | `client` or `worker`. Present in responses for worker-initiated contracts. |",
      "POST /v1/contracts > Worker-initiated: client null, worker = caller, escrowedFunds null, workerStake = budgetOrPrice x workerStakeRatio, initiator `worker`.",
      "POST /v1/contracts / Body > `worker`: caller pays the Worker Stake now and becomes worker; client stays null until a Buyer accepts.",
    ],
    async () => {
      const { client, worker } = await pair();
      // The initiator is always present: docs/rules.md 27.
      expect((await open()).contract).toMatchObject({ initiator: "client", escrowedFunds: "50.0" });
      const listed = await created(scene, worker, { initiator: "worker" });
      const staked = { initiator: "worker", worker: worker.address, workerStake: "2.5" };
      expect(listed).toMatchObject({ ...staked, client: null, escrowedFunds: null });
      const bought = ok(await client.pay<Json>(`/v1/contracts/${listed.id}/accept`, { accept: true }));
      expect(bought).toMatchObject({ ...staked, client: client.address, escrowedFunds: "50.0" });
    },
  );

  withMoney(
    "| criteriaMet | array or null | Per-criterion outcome (`met`, `not met`, `unclear`); null until decided. |",
    async () => {
      const { client } = await pair();
      for (const undecided of [(await open()).contract, await match(), await delivery(), await dispute()]) {
        expect(undecided.criteriaMet).toBeNull();
      }
      const { id } = await delivered(scene, await pair());
      const approved = ok(await client.post<Json>(`/v1/contracts/${id}/approve`));
      expect(approved.criteriaMet).toEqual(["met", "met", "met"]);
    },
  );

  withMoney(
    [
      "| supplementaryMaterials | string or null | Reference (hash or URI) to supporting data; encrypted and access-gated. |",
      "| delivery | string or null | Reference (hash or URI) to the Worker's output, encrypted the same way. |",
      "The values of `supplementaryMaterials` and `delivery` are encrypted references",
    ],
    async () => {
      const { client } = await pair();
      const stranger = await scene.newAgent();
      expect(await match()).toMatchObject({ supplementaryMaterials: null, delivery: null });
      for (const [contract, field, reference] of [
        [(await open()).contract, "supplementaryMaterials", "ipfs://materials"],
        [await delivery(), "delivery", "ipfs://output"],
      ] as const) {
        expect(contract[field]).not.toContain(reference);
        expect((await stranger.get(`/v1/contracts/${contract.id}/keys`)).status).toBe(403);
        const { keys } = ok(await client.get<Json>(`/v1/contracts/${contract.id}/keys`));
        expect(await decrypt(contract[field], keys)).toBe(reference);
      }
    },
  );

  withMoney(
    [
      "| contractType | string | Only `fixed`. |",
      "| verificationMode | string | Only `privacy-preserving`. |",
    ],
    async () => {
      const { client } = await pair();
      const only = { contractType: "fixed", verificationMode: "privacy-preserving" };
      expect((await open()).contract).toMatchObject(only);
      for (const other of [{ contractType: "hourly" }, { verificationMode: "standard" }])
        expect((await client.post("/v1/contracts", await draft(scene, other))).status).toBe(400);
    },
  );

  withMoney(
    "| awardMethod | string | `direct_award` (called FDP) or `open_tender` (called FOP). |",
    async () => {
      const { client, worker } = await pair();
      const award = await created(scene, client, { awardMethod: "direct_award", worker: worker.address });
      expect(award.awardMethod).toBe("direct_award");
      expect((await open()).contract.awardMethod).toBe("open_tender");
    },
  );

  withMoney(
    "| budgetOrPrice | string (decimal) in responses | Fixed price. Sent as a number or decimal value in requests. |",
    async () => {
      const { client } = await pair();
      const prices = await Promise.all(
        [12, 12.5, "12.50"].map(async (budgetOrPrice) => created(scene, client, { budgetOrPrice })),
      );
      expect(prices.map(({ budgetOrPrice }) => budgetOrPrice)).toEqual(["12.0", "12.5", "12.5"]);
    },
  );

  withJury(
    [
      "| backupAgents | array of address | Starts empty; fills as Backup Agents stake by voting. |",
      "Protocol parameters / Meaning > Reserved; number of Backup Agents recruited; null until set.",
    ],
    async () => {
      const { client } = await pair();
      const jurors = await Promise.all([newJuror(scene), newJuror(scene)]);
      const { id, backupAgents } = await disputed(scene, await pair());
      expect(backupAgents).toEqual([]);
      // Without a number every eligible agent can vote.
      for (const [i, juror] of jurors.entries()) {
        ok(await juror.pay(`/v1/contracts/${id}/votes`, ballot("met", "met", "met")));
        const { data } = await client.get<Json>(`/v1/contracts/${id}`);
        const voters = jurors.slice(0, i + 1).map(({ address }) => address);
        expect(data).toMatchObject({ status: "disputed", backupAgents: voters });
      }
    },
  );

  withMoney(
    [
      "Worker Stake = budgetOrPrice x workerStakeRatio (0.05 of price gives 2.5 on 50.0).",
      "Protocol parameters / Meaning > Worker Stake as fraction of contract value.",
    ],
    async () => {
      expect((await match()).workerStake).toBe("2.5");
      const { client, worker } = await pair();
      const { id } = await created(scene, client, { budgetOrPrice: "7.3" });
      const path = `/v1/contracts/${id}/accept`;
      expect((await quoteFor(worker, path, { accept: true })).maxAmountRequired).toBe("365000");
      expect(ok(await worker.pay<Json>(path, { accept: true })).workerStake).toBe("0.365");
    },
  );

  withMoney("Amounts in responses are decimal strings.", async () => {
    const { budgetOrPrice, escrowedFunds, workerStake, disputeBond } = await dispute();
    for (const amount of [budgetOrPrice, escrowedFunds, workerStake, disputeBond]) {
      expect(amount).toMatch(/^\d+\.\d+$/);
    }
  });
});

/** The text of a compact JWE, decrypted with the key that its header names. */
async function decrypt(jwe: string, keys: Json[]): Promise<string> {
  const { plaintext } = await compactDecrypt(jwe, async ({ kid }) => {
    const jwk = keys.find((key) => key.kid === kid);
    if (jwk === undefined) throw new Error(`The key ${kid} was not released.`);
    return importJWK(jwk, "A256GCM");
  });
  return new TextDecoder().decode(plaintext);
}
