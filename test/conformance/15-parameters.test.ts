/** The meaning of the protocol parameters, shown by the money that they move, and the transitions that apply them. */
import { expect } from "vitest";
import {
  ballot,
  checkpointBody,
  delivered,
  disputed,
  eventually,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  type Pair,
  quoteFor,
  untilStatus,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, refusal, says, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const PRICE = { budgetOrPrice: "12.3", acceptanceCriteria: ["One", "Two"] };

interface Leg {
  to: string;
  amount: string;
}

/** The payouts of each party, by its role. */
async function payouts({ client }: Pair, id: string): Promise<Record<string, string[]>> {
  const { legs } = ok(await client.get<{ legs: Leg[] }>(`/v1/contracts/${id}/settlement`));
  const paid: Record<string, string[]> = {};
  for (const { to, amount } of legs) paid[to] = [...(paid[to] ?? []), amount];
  return paid;
}

chapter("Protocol parameters / Meaning", () => {
  withMoney(
    [
      "Fraction of contract value taken from every settlement payout into the Treasury.",
      "States and transitions / Rules > Every settlement payout takes protocolFee into the Treasury.",
      "States and transitions > Statuses of the form `settled-*` also exist",
    ],
    async () => {
      const parties = await newPair(scene);
      const { client, worker } = parties;
      const { id } = await delivered(scene, parties, PRICE);
      const before = await scene.usdOf(worker.address);
      ok(await client.post(`/v1/contracts/${id}/approve`));
      await untilStatus(client, id, "settled-all-met");
      expect(await payouts(parties, id)).toEqual({ treasury: ["0.615"], worker: ["11.685", "0.615"] });
      const { legs } = ok(await client.get<Json>(`/v1/contracts/${id}/settlement`));
      expect(legs.find(({ to }: Json) => to === "treasury").state).toBe("confirmed");
      expect(await scene.usdOf(worker.address)).toBe(before + 12_300_000n);
    },
  );

  withMoney("Dispute Bond as fraction of contract value.", async () => {
    const parties = await pair();
    const { id } = await delivered(scene, parties, PRICE);
    const quote = await quoteFor(parties.client, `/v1/contracts/${id}/dispute`);
    expect(quote.maxAmountRequired).toBe("615000");
  });

  withJury("Per-criterion Backup Agent bond as fraction of contract value.", async () => {
    const juror = await newJuror(scene);
    const { id } = await disputed(scene, await pair(), PRICE);
    const quote = await quoteFor(juror, `/v1/contracts/${id}/votes`, ballot("met", "met"));
    expect(quote.maxAmountRequired).toBe("1230000");
  });

  withMoney(
    "Fraction of the slashed Worker Stake that goes to the Client (rest to the Treasury) when the Worker is absent or no criterion is met.",
    async () => {
      const parties = await pair();
      const criteria = [1, 2].map(() => ({ metric: "tokens", op: ">=", target: 1 }));
      const ticket = { ...PRICE, application: "usageticket", applicationTerms: { criteria } };
      const { id } = await delivered(scene, parties, ticket);
      ok(await parties.client.post(`/v1/contracts/${id}/approve`));
      await untilStatus(parties.client, id, "settled-none-met");
      expect(await payouts(parties, id)).toEqual({ client: ["12.3", "0.492"], treasury: ["0.123"] });
    },
  );

  withJury("Flat token amount a Backup Agent must keep staked to be eligible for selection.", async () => {
    const agent = await scene.newAgent({ tokens: 1000 });
    const quote = await quoteFor(agent, "/v1/agents/me/stake", {});
    expect(quote.maxAmountRequired).toBe((1000n * 10n ** 18n).toString());
  });
});

chapter("States and transitions / Rows", () => {
  says(
    "Contract `status` values: `created`, `matched`, `under-review`, `disputed`, `resolved`, `cancelled-unmatched`, `cancelled-withdrawn`, `cancelled-by-initiator`, `cancelled-absent`.",
    async () => {
      const statuses = [
        ...["created", "matched", "under-review", "disputed", "resolved", "settled-*"],
        ...["cancelled-unmatched", "cancelled-withdrawn", "cancelled-by-initiator", "cancelled-absent"],
      ];
      const agent = await scene.newAgent();
      for (const status of statuses) {
        expect((await agent.get(`/v1/contracts?limit=1&status=${status}`)).status, status).toBe(200);
      }
      const { components } = (await scene.call<Json>("GET", "/openapi.json")).body as Json;
      const published = components.schemas.Contract.properties.status.enum as string[];
      const named = published.filter((status) => !status.startsWith("settled-"));
      expect(named.sort()).toEqual(statuses.filter((status) => status !== "settled-*").sort());
    },
  );

  withMoney(
    [
      "| matched | Withdraw | caller is the matched worker, before withdrawalDeadline | cancelled-withdrawn | Escrowed Funds refunded to the Client in full; Worker Stake split: earlyWithdrawalSlashRatio of it to the Client, remainder to the Worker. |",
      "POST /v1/contracts/{id}/withdraw > Response 200: Contract with status `cancelled-withdrawn`; workerStake keeps its original value.",
      "Resources and their fields / Contract > Keeps the original amount after a withdrawal.",
    ],
    async () => {
      const parties = await newPair(scene);
      const { client, worker } = parties;
      const before = await matched(scene, parties, PRICE);
      const balance = await scene.usdOf(worker.address);
      const after = ok(await worker.post<Json>(`/v1/contracts/${before.id}/withdraw`));
      expect(after).toEqual({ ...before, status: "cancelled-withdrawn" });
      const later = await untilStatus(client, before.id, "cancelled-withdrawn");
      expect([after.workerStake, later.workerStake]).toEqual(["0.615", "0.615"]);
      expect(await payouts(parties, before.id)).toEqual({ client: ["12.3", "0.1845"], worker: ["0.4305"] });
      await eventually(() => scene.usdOf(worker.address), balance + 430_500n);
    },
  );

  withMoney(
    [
      "| matched | Submit Checkpoint | caller is the matched worker | matched | No status change; any number allowed. |",
      "What the service does > A contract that delivers continuously can receive periodic checkpoints from its Worker without ending.",
      "POST /v1/contracts/{id}/checkpoint > Valid while status is `matched`; never changes status.",
    ],
    async () => {
      const parties = await pair();
      const contract = await matched(scene, parties, PRICE);
      const path = `/v1/contracts/${contract.id}`;
      const submit = async (i: number) => {
        const body = await checkpointBody(scene, { fromSequence: i, toSequence: i });
        return parties.worker.post(`${path}/checkpoint`, body);
      };
      for (let i = 1; i <= 12; i++) ok(await submit(i), 201);
      expect((await parties.client.get(path)).data).toEqual(contract);
      ok(await parties.worker.post(`${path}/delivery`, { delivery: "x" }));
      expect(refusal(await submit(13))).toBe("409 conflict");
    },
  );
});
