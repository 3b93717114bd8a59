/** States and transitions that no deadline drives. The chapter on time covers the others. */
import { describe, expect } from "vitest";
import type { Agent } from "../support/agent.js";
import {
  ballot,
  checkpointBody,
  created,
  delivered,
  disputed,
  eventually,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  UNKNOWN,
  untilStatus,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));

describe("States and transitions", () => {
  withMoney(
    "| (none) | Create Contract | payment settled | created | Escrowed Funds locked (client-initiated) or Worker Stake locked (worker-initiated). |",
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
    "| created | Accept with accept=true | caller allowed (see Accept), Worker Stake payment settled | matched | workerStake set; for open tender, worker set to the first caller whose payment settles. |",
    async () => {
      const { client, worker } = await pair();
      const { id, worker: nobody } = await created(scene, client);
      expect(nobody).toBeNull();
      const match = ok(await worker.pay<Json>(`/v1/contracts/${id}/accept`, { accept: true }));
      expect(match).toMatchObject({ status: "matched", workerStake: "2.5", worker: worker.address });
    },
  );

  withMoney(
    "| created | Accept with accept=false | direct_award only, caller is the named worker | cancelled-unmatched | Escrowed Funds refunded to the Client. |",
    async () => {
      const client = await scene.newAgent({ usd: "50" });
      const { worker } = await pair();
      const { id } = await created(scene, client, { awardMethod: "direct_award", worker: worker.address });
      const declined = ok(await worker.post<Json>(`/v1/contracts/${id}/accept`, { accept: false }));
      expect(declined.status).toBe("cancelled-unmatched");
      await eventually(() => scene.usdOf(client.address), 50_000_000n);
    },
  );

  withMoney(
    "| created | Cancel | caller is the Initiator | cancelled-by-initiator | Whatever the Initiator posted at creation is refunded in full. |",
    async () => {
      const [client, worker] = await Promise.all([
        scene.newAgent({ usd: "50" }),
        scene.newAgent({ usd: "2.5" }),
      ]);
      for (const [initiator, overrides, deposit] of [
        [client, {}, 50_000_000n],
        [worker, { initiator: "worker" }, 2_500_000n],
      ] as [Agent, Json, bigint][]) {
        const { id } = await created(scene, initiator, overrides);
        const cancelled = ok(await initiator.post<Json>(`/v1/contracts/${id}/cancel`));
        expect(cancelled.status).toBe("cancelled-by-initiator");
        await eventually(() => scene.usdOf(initiator.address), deposit);
      }
    },
  );

  withMoney(
    "| matched | Submit Delivery | caller is the matched worker, Delivery Deadline not passed | under-review | delivery set; Review Deadline unchanged; for the usage-ticket application criteriaMet is computed at this moment. |",
    async () => {
      const { worker } = await pair();
      const ticket = await usageTicket(await pair());
      expect(ticket.criteriaMet).toEqual(["met", "not met", "unclear"]);
      const { id, reviewDeadline } = await matched(scene, await pair());
      const plain = ok(await worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery: "x" }));
      expect(plain).toMatchObject({ status: "under-review", reviewDeadline, criteriaMet: null });
      expect(plain.delivery).toEqual(expect.any(String));
    },
  );

  withMoney("caller is the matched worker", async () => {
    const { client, worker } = await pair();
    const { id } = await matched(scene, { client, worker });
    expect((await client.post(`/v1/contracts/${id}/delivery`, { delivery: "x" })).error?.code).toBe(
      "forbidden",
    );
  });

  withMoney(
    "| under-review | Dispute | caller is the Client, before reviewDeadline, Dispute Bond payment settled | disputed | disputeBond set; Backup Agent recruitment opens; backupAgents fills as agents vote. |",
    async () => {
      const { client, worker } = await pair();
      const { id } = await delivered(scene, { client, worker });
      const disputing = ok(await client.pay<Json>(`/v1/contracts/${id}/dispute`));
      expect(disputing).toMatchObject({ status: "disputed", disputeBond: "2.5", backupAgents: [] });
    },
  );

  withMoney("`cancelled-*` statuses count as closed", async () => {
    const { client } = await pair();
    const { id } = await created(scene, client);
    ok(await client.post(`/v1/contracts/${id}/cancel`));
    const closed = ok(
      await client.get<Json[]>(`/v1/contracts?client=${client.address}&status=closed&limit=200`),
    );
    expect(closed.map((contract) => contract.id)).toContain(id);
  });

  withMoney("Statuses of the form `settled-*` also exist", async () => {
    const { client } = await pair();
    const { id } = await delivered(scene, await pair());
    ok(await client.post(`/v1/contracts/${id}/approve`));
    expect((await untilStatus(client, id, "settled-all-met")).status).toBe("settled-all-met");
  });
});

describe("States and transitions / Rules", () => {
  withJury(
    "Every transition is rejected with `409 conflict` when the contract is not in the From state.",
    async () => {
      const parties = await pair();
      const { client, worker } = parties;
      const juror = await newJuror(scene);
      const award = { awardMethod: "direct_award", worker: worker.address };
      const [open, match, delivery, dispute, cancelled] = await Promise.all([
        created(scene, client, award),
        matched(scene, parties, award),
        delivered(scene, parties, award),
        disputed(scene, parties, award),
        created(scene, client, award).then(async ({ id }) =>
          ok(await client.post<Json>(`/v1/contracts/${id}/cancel`)),
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
        vote: (id: string) => juror.post(`/v1/contracts/${id}/votes`, ballot("met", "met", "met")),
        checkpoint: async (id: string) =>
          worker.post(`/v1/contracts/${id}/checkpoint`, await checkpointBody(scene)),
      };
      const refused: [Json, (keyof typeof acts)[]][] = [
        // Before a match there is no matched worker: those calls are 403.
        [open, ["approve", "dispute", "vote"]],
        [match, ["accept", "decline", "cancel", "approve", "dispute", "vote"]],
        [delivery, ["accept", "decline", "cancel", "deliver", "withdraw", "vote", "checkpoint"]],
        [dispute, ["accept", "decline", "cancel", "deliver", "withdraw", "approve", "dispute", "checkpoint"]],
        [cancelled, ["accept", "decline", "cancel", "approve", "dispute", "vote"]],
      ];
      for (const [contract, names] of refused) {
        for (const name of names) {
          const { status, error } = await acts[name](contract.id);
          expect([status, error?.code], `${name} in ${contract.status}`).toEqual([409, "conflict"]);
        }
        expect((await client.get<Json>(`/v1/contracts/${contract.id}`)).data.status).toBe(contract.status);
      }
    },
  );

  withMoney("Every settlement payout takes protocolFee into the Treasury.", async () => {
    const { client, worker } = await newPair(scene);
    const { id } = await delivered(scene, { client, worker });
    const before = await scene.usdOf(worker.address);
    ok(await client.post(`/v1/contracts/${id}/approve`));
    await untilStatus(client, id, "settled-all-met");
    const { legs } = ok(await client.get<Json>(`/v1/contracts/${id}/settlement`));
    const fee = legs.find(({ to }: Json) => to === "treasury");
    expect(fee).toMatchObject({ amount: "2.5", state: "confirmed" });
    // 47.5 of the price, and the stake.
    expect(await scene.usdOf(worker.address)).toBe(before + 50_000_000n);
  });

  withMoney(
    "Complaints can be filed once the contract has reached `matched` (both client and worker set), through a fixed window after the Review Deadline, whatever the status has become since.",
    async () => {
      const parties = await pair();
      const { client, worker } = parties;
      const file = (id: string) => client.post(`/v1/contracts/${id}/complaints`, { evidence: {} });
      const open = await created(scene, client);
      expect((await file(open.id)).error?.code).toBe("conflict");

      const withdrawn = await matched(scene, parties);
      expect((await file(withdrawn.id)).status).toBe(201);
      ok(await worker.post(`/v1/contracts/${withdrawn.id}/withdraw`));
      expect((await file(withdrawn.id)).status).toBe(201);
      const disputing = await disputed(scene, parties);
      expect((await file(disputing.id)).status).toBe(201);
    },
  );

  withJury("each Backup Agent votes once per contract on all criteria", async () => {
    const juror = await newJuror(scene);
    const { id } = await disputed(scene, await pair());
    const path = `/v1/contracts/${id}/votes`;
    expect((await juror.post(path, ballot("met", "met"))).status).toBe(400);
    expect(ok(await juror.pay<Json[]>(path, ballot("met", "met", "met")))).toHaveLength(3);
    expect((await juror.post(path, ballot("not met", "met", "met"))).error?.code).toBe("conflict");
  });

  withMoney("404 `not_found` for a contract that was never created", async () => {
    const { client } = await pair();
    for (const [method, path] of [
      ["get", ""],
      ["get", "/checkpoints"],
      ["get", "/complaints"],
      ["post", "/approve"],
      ["post", "/cancel"],
    ] as const) {
      expect((await client[method](`/v1/contracts/${UNKNOWN}${path}`)).error?.code).toBe("not_found");
    }
  });
});

/** A delivered usage ticket whose three criteria come out met, not met and unclear. */
async function usageTicket(parties: Awaited<ReturnType<typeof newPair>>): Promise<Json> {
  const criteria = [
    { metric: "tokens", op: ">=", target: 10 },
    { metric: "tokens", op: ">", target: 1000 },
    null,
  ];
  const { id } = await matched(scene, parties, {
    application: "usageticket",
    applicationTerms: { criteria },
  });
  const checkpoint = await checkpointBody(scene, { data: { tokens: 12 } });
  ok(await parties.worker.post(`/v1/contracts/${id}/checkpoint`, checkpoint), 201);
  return ok(await parties.worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery: "x" }));
}
