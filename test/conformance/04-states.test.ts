/** States and transitions that no deadline drives. The chapter on time covers the others. */
import { expect } from "vitest";
import {
  ballot,
  checkpointBody,
  created,
  delivered,
  disputed,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  quoteFor,
  untilStatus,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, refusal, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));

chapter("States and transitions", () => {
  withMoney(
    [
      "| (none) | Create Contract | payment settled | created | Escrowed Funds locked (client-initiated) or Worker Stake locked (worker-initiated). |",
      "What the service does > A Worker can instead post a contract as the initiator by staking first (a worker-initiated listing).",
      "What the service does > The price is locked in a per-contract escrow by a payment made within the same call.",
    ],
    async () => {
      const [client, worker] = await Promise.all([
        scene.newAgent({ usd: "50" }),
        scene.newAgent({ usd: "2.5" }),
      ]);
      const [contract, listing] = await Promise.all([
        created(scene, client),
        created(scene, worker, { initiator: "worker" }),
      ]);
      expect([contract.status, listing.status]).toEqual(["created", "created"]);
      expect(contract.id).not.toBe(listing.id);
      expect(listing).toMatchObject({ initiator: "worker", worker: worker.address, workerStake: "2.5" });
      expect(await Promise.all([client, worker].map(({ address }) => scene.usdOf(address)))).toEqual([
        0n,
        0n,
      ]);
      expect(await Promise.all([contract, listing].map(({ id }) => scene.usdOf(id)))).toEqual([
        50_000_000n,
        2_500_000n,
      ]);
    },
  );

  withMoney(
    [
      "| created | Accept with accept=true | caller allowed (see Accept), Worker Stake payment settled | matched | workerStake set; for open tender, worker set to the first caller whose payment settles. |",
      "POST /v1/contracts/{id}/accept > accept=true: status `matched`, workerStake set (worker set for open tender).",
      "POST /v1/contracts/{id}/accept > accept=true requires payment of the Worker Stake (402 quote then retry).",
      "What the service does > The Worker posts a Worker Stake in the same escrow.",
      "What the service does > A Worker is matched either by direct award (named in the request) or by open tender (first qualifying agent whose stake payment settles).",
      "Resources and their fields / Contract > | worker | address or null | null for an open-tender contract until someone accepts. |",
      "Resources and their fields / Contract > Null until staked.",
      "Resources and their fields / Payment quote for a stake or bond > address of the per-contract escrow wallet",
    ],
    async () => {
      const { client, worker } = await pair();
      const open = await created(scene, client);
      expect(open).toMatchObject({ worker: null, workerStake: null });
      const path = `/v1/contracts/${open.id}/accept`;
      const quote = await quoteFor(worker, path, { accept: true });
      expect(quote).toMatchObject({ maxAmountRequired: "2500000", payTo: open.id });
      expect(await scene.usdOf(open.id)).toBe(50_000_000n);
      const match = ok(await worker.pay<Json>(path, { accept: true }));
      expect(match).toMatchObject({ status: "matched", workerStake: "2.5", worker: worker.address });
      expect(await scene.usdOf(open.id)).toBe(52_500_000n);
      const award = { awardMethod: "direct_award", worker: worker.address };
      const awarded = await matched(scene, { client, worker }, award);
      expect(awarded).toMatchObject({ status: "matched", worker: worker.address });
    },
  );
});

chapter("States and transitions / Rules", () => {
  withMoney(
    [
      "Every transition is rejected with `409 conflict` when the contract is not in the From state.",
      "POST /v1/contracts/{id}/accept > Contract not in `created`: 409 `conflict`.",
      "POST /v1/contracts/{id}/delivery > Only valid in `matched` (else 409 `conflict`)",
      "POST /v1/contracts/{id}/approve > Valid only in `under-review` before reviewDeadline (else 409).",
      "POST /v1/contracts/{id}/withdraw > Valid only in `matched` before withdrawalDeadline (else 409 `conflict`).",
      "POST /v1/contracts/{id}/cancel > Valid only in `created` (else 409).",
    ],
    async () => {
      const parties = await pair();
      const { client, worker } = parties;
      const juror = scene.target.can.includes("tokens") ? await newJuror(scene) : undefined;
      const award = { awardMethod: "direct_award", worker: worker.address };
      const [open, match, delivery, dispute, approved, cancelled, declined, withdrawn] = await Promise.all([
        created(scene, client, award),
        matched(scene, parties, award),
        delivered(scene, parties, award),
        disputed(scene, parties, award),
        delivered(scene, parties, award).then(async ({ id }) => {
          ok(await client.post(`/v1/contracts/${id}/approve`));
          return untilStatus(client, id, "settled-all-met");
        }),
        created(scene, client, award).then(async ({ id }) =>
          ok(await client.post<Json>(`/v1/contracts/${id}/cancel`)),
        ),
        created(scene, client, award).then(async ({ id }) =>
          ok(await worker.post<Json>(`/v1/contracts/${id}/accept`, { accept: false })),
        ),
        matched(scene, parties, award).then(async ({ id }) =>
          ok(await worker.post<Json>(`/v1/contracts/${id}/withdraw`)),
        ),
      ]);
      const acts = {
        accept: (id: string) => worker.post(`/v1/contracts/${id}/accept`, { accept: true }),
        decline: (id: string) => worker.post(`/v1/contracts/${id}/accept`, { accept: false }),
        cancel: (id: string) => client.post(`/v1/contracts/${id}/cancel`),
        deliver: (id: string) => worker.post(`/v1/contracts/${id}/delivery`, { delivery: "x" }),
        withdraw: (id: string) => worker.post(`/v1/contracts/${id}/withdraw`),
        approve: (id: string) => client.post(`/v1/contracts/${id}/approve`),
        dispute: (id: string) => client.post(`/v1/contracts/${id}/dispute`),
        vote: async (id: string) => juror?.post(`/v1/contracts/${id}/votes`, ballot("met", "met", "met")),
        checkpoint: async (id: string) =>
          worker.post(`/v1/contracts/${id}/checkpoint`, await checkpointBody(scene)),
      };
      const all = Object.keys(acts) as (keyof typeof acts)[];
      const refused: [Json, (keyof typeof acts)[]][] = [
        [open, ["deliver", "withdraw", "approve", "dispute", "vote", "checkpoint"]],
        [match, ["accept", "decline", "cancel", "approve", "dispute", "vote"]],
        [delivery, ["accept", "decline", "cancel", "deliver", "withdraw", "vote", "checkpoint"]],
        [dispute, ["accept", "decline", "cancel", "deliver", "withdraw", "approve", "dispute", "checkpoint"]],
        ...[approved, cancelled, declined, withdrawn].map((ended): [Json, typeof all] => [ended, all]),
      ];
      for (const [contract, names] of refused) {
        for (const name of names) {
          const answer = await acts[name](contract.id);
          if (answer !== undefined)
            expect(refusal(answer), `${name} in ${contract.status}`).toBe("409 conflict");
        }
        expect((await client.get<Json>(`/v1/contracts/${contract.id}`)).data.status).toBe(contract.status);
      }
    },
  );

  withMoney(
    [
      "Complaints can be filed once the contract has reached `matched` (both client and worker set), through a fixed window after the Review Deadline, whatever the status has become since.",
      "POST /v1/contracts/{id}/complaints > 409 `conflict` when the contract has no counterparty yet",
    ],
    async () => {
      const parties = await pair();
      const { client, worker } = parties;
      const file = (id: string, by = client) => by.post(`/v1/contracts/${id}/complaints`, { evidence: {} });
      const open = await created(scene, client);
      expect(refusal(await file(open.id))).toBe("409 conflict");
      expect(refusal(await file(open.id, worker))).toBe("403 forbidden");
      const award = await created(scene, client, { awardMethod: "direct_award", worker: worker.address });
      for (const party of [client, worker]) expect(refusal(await file(award.id, party))).toBe("409 conflict");
      ok(await worker.post(`/v1/contracts/${award.id}/accept`, { accept: false }));
      expect(refusal(await file(award.id))).toBe("409 conflict");

      const withdrawn = await matched(scene, parties);
      expect((await file(withdrawn.id)).status).toBe(201);
      ok(await worker.post(`/v1/contracts/${withdrawn.id}/withdraw`));
      expect((await file(withdrawn.id)).status).toBe(201);
      const disputing = await disputed(scene, parties);
      expect((await file(disputing.id)).status).toBe(201);
    },
  );
});
