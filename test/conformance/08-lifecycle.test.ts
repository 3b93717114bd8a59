/** Accept, delivery, approve, dispute, withdraw and cancel: roles, states, responses, races. */
import { expect } from "vitest";
import type { Agent, ApiResponse } from "../support/agent.js";
import {
  created,
  delivered,
  eventually,
  type Json,
  matched,
  newPair,
  ok,
  type Pair,
  quoteFor,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, codes, refusal, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const stranger = lazy(() => scene.newAgent({ usd: "100" }));
const open = lazy(async () => created(scene, (await pair()).client));
const match = lazy(async () => matched(scene, await pair()));

const award = ({ worker }: Pair) => ({ awardMethod: "direct_award", worker: worker.address });
type Response = Promise<ApiResponse>;
const accepting = (by: Agent, path: string): Response => by.pay(`${path}/accept`, { accept: true });

chapter("POST /v1/contracts/{id}/accept", () => {
  withMoney("Body: `accept` boolean required.", async () => {
    const { worker } = await pair();
    const { id } = await open();
    for (const body of [{}, { accept: "true" }, { accept: 1 }, { accept: null }, { accepted: true }]) {
      expect(refusal(await worker.post(`/v1/contracts/${id}/accept`, body))).toBe("400 invalid_request");
    }
  });

  withMoney(
    "`open_tender`: any qualifying agent may call with accept=true; the call whose Worker Stake payment settles first is matched atomically; every other caller, concurrent or later, gets 409 `conflict`.",
    async () => {
      const { client } = await pair();
      const { id } = await created(scene, client);
      const racers = await Promise.all([1, 2, 3].map(() => scene.newAgent({ usd: "2.5" })));
      const path = `/v1/contracts/${id}/accept`;
      const answers = await Promise.all(racers.map((agent) => agent.pay<Json>(path, { accept: true })));
      expect(codes(answers)).toEqual([200, "conflict", "conflict"]);
      const winner = answers.findIndex(({ status }) => status === 200);
      const { data } = await client.get<Json>(`/v1/contracts/${id}`);
      expect(data.worker).toBe(racers[winner]?.address);
      expect(refusal(await (await stranger()).pay(path, { accept: true }))).toBe("409 conflict");
      // The losers keep their money.
      const balances = await Promise.all(racers.map(({ address }) => scene.usdOf(address)));
      expect(balances).toEqual(racers.map((_, i) => (i === winner ? 0n : 2_500_000n)));
    },
  );

  withMoney(
    [
      "accept=false moves no money and completes at once.",
      "accept=false: status `cancelled-unmatched`, Escrowed Funds refunded to the Client.",
      "States and transitions > | created | Accept with accept=false | direct_award only, caller is the named worker | cancelled-unmatched | Escrowed Funds refunded to the Client. |",
    ],
    async () => {
      const [client, worker] = await Promise.all([
        scene.newAgent({ usd: "50" }),
        scene.newAgent({ usd: "2.5" }),
      ]);
      const { id } = await created(scene, client, award({ client, worker }));
      const declined = await worker.post<Json>(`/v1/contracts/${id}/accept`, { accept: false });
      expect([declined.status, declined.data?.status]).toEqual([200, "cancelled-unmatched"]);
      expect(await scene.usdOf(worker.address)).toBe(2_500_000n);
      await eventually(() => scene.usdOf(client.address), 50_000_000n);

      const listing = await created(scene, worker, { initiator: "worker", client: client.address });
      const left = await client.post<Json>(`/v1/contracts/${listing.id}/accept`, { accept: false });
      const nothing = { client: null, escrowedFunds: null, workerStake: "2.5" };
      expect(ok(left)).toMatchObject({ status: "cancelled-unmatched", ...nothing });
      expect(await scene.usdOf(client.address)).toBe(50_000_000n);
      await eventually(() => scene.usdOf(worker.address), 2_500_000n);
    },
  );
});

chapter("POST /v1/contracts/{id}/delivery", () => {
  withMoney("Body: `delivery` string required.", async () => {
    const { worker } = await pair();
    for (const body of [{}, { delivery: "" }, { delivery: 5 }, { delivery: null }, { delivery: ["x"] }]) {
      const refused = await worker.post(`/v1/contracts/${(await match()).id}/delivery`, body);
      expect(refusal(refused)).toBe("400 invalid_request");
    }
  });

  withMoney(
    [
      "Response 200: Contract with status `under-review` and delivery set; reviewDeadline unchanged.",
      "Resources and their fields / Contract > | reviewDeadline | string (timestamp) | By which the Client must approve or dispute. Never moved by delivery. |",
      "What the service does > The Worker submits a delivery (an encrypted reference).",
      "Releases the Delivery decryption key to the Client.",
      "Resources and their fields / Contract > the Delivery decryption key is released to the Client on delivery",
    ],
    async () => {
      const { client, worker } = await pair();
      const before = await matched(scene, { client, worker });
      const path = `/v1/contracts/${before.id}`;
      const fields = async () =>
        ok(await client.get<Json>(`${path}/keys`)).keys.map(({ field }: Json) => field);
      expect(await fields()).toEqual([]);
      const after = ok(await worker.post<Json>(`${path}/delivery`, { delivery: "ipfs://x" }));
      expect(after).toEqual({ ...before, status: "under-review", delivery: expect.any(String) });
      expect(after.delivery).not.toContain("ipfs://x");
      expect(await fields()).toEqual(["delivery"]);
    },
  );

  withMoney("two deliveries at the same moment: one counts", async () => {
    const { worker } = await pair();
    const { id } = await matched(scene, await pair());
    const deliver = (delivery: string) => worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery });
    expect(codes(await Promise.all([deliver("ipfs://one"), deliver("ipfs://two")]))).toEqual([
      200,
      "conflict",
    ]);
  });
});

chapter("POST /v1/contracts/{id}/approve", () => {
  withMoney(
    [
      "No body, no payment.",
      "Response 200: Contract with status `resolved` and criteriaMet all `met` (for the usage-ticket application the result computed at delivery is used).",
      "States and transitions / Rows > | under-review | Approve | caller is the Client, before reviewDeadline | resolved | criteriaMet set to `met` for every criterion (for the usage-ticket application the criteriaMet computed at delivery is kept). |",
    ],
    async () => {
      const parties = await newPair(scene);
      const plain = await delivered(scene, parties);
      const before = await scene.usdOf(parties.client.address);
      const approved = ok(await parties.client.post<Json>(`/v1/contracts/${plain.id}/approve`));
      expect(approved).toEqual({ ...plain, status: "resolved", criteriaMet: ["met", "met", "met"] });
      expect(await scene.usdOf(parties.client.address)).toBe(before);

      const criteria = [{ metric: "tokens", op: ">=", target: 1 }, null, null];
      const ticket = await delivered(scene, parties, {
        application: "usageticket",
        applicationTerms: { criteria },
      });
      const outcome = ok(await parties.client.post<Json>(`/v1/contracts/${ticket.id}/approve`));
      expect(outcome.status).toBe("resolved");
      expect(outcome.criteriaMet).toEqual(ticket.criteriaMet);
      expect(outcome.criteriaMet).toEqual(["not met", "unclear", "unclear"]);
    },
  );
});

chapter("POST /v1/contracts/{id}/dispute", () => {
  withMoney(
    [
      "Response 200: Contract with status `disputed`, disputeBond set, backupAgents starting empty and filling as agents stake through votes, up to baRecruitCount.",
      "Requires payment of the Dispute Bond (402 quote then retry).",
      "States and transitions > | under-review | Dispute | caller is the Client, before reviewDeadline, Dispute Bond payment settled | disputed | disputeBond set; Backup Agent recruitment opens; backupAgents fills as agents vote. |",
      "What the service does > A dispute requires the Client to post a Dispute Bond.",
      "Resources and their fields / Contract > | disputeBond | string (decimal) or null | Set on dispute; equals price x disputeBondRatio (2.5 on 50.0). |",
    ],
    async () => {
      const { client } = await pair();
      const before = await delivered(scene, await pair());
      expect(before.disputeBond).toBeNull();
      const path = `/v1/contracts/${before.id}`;
      const quote = await quoteFor(client, `${path}/dispute`);
      expect(quote).toMatchObject({ maxAmountRequired: "2500000", payTo: before.id });
      expect(ok(await client.get(path))).toEqual(before);
      const after = ok(await client.pay<Json>(`${path}/dispute`));
      expect(after).toEqual({ ...before, status: "disputed", disputeBond: "2.5", backupAgents: [] });
    },
  );
});

chapter("POST /v1/contracts/{id}/cancel", () => {
  withMoney(
    [
      "Response 200: Contract with status `cancelled-by-initiator`; the Initiator's own commitment is refunded in full.",
      "States and transitions > | created | Cancel | caller is the Initiator | cancelled-by-initiator | Whatever the Initiator posted at creation is refunded in full. |",
    ],
    async () => {
      for (const [initiator, usd, deposit] of [
        ["client", "50", 50_000_000n],
        ["worker", "2.5", 2_500_000n],
      ] as const) {
        const agent = await scene.newAgent({ usd });
        const before = await created(scene, agent, { initiator });
        const after = ok(await agent.post<Json>(`/v1/contracts/${before.id}/cancel`));
        expect(after).toEqual({ ...before, status: "cancelled-by-initiator" });
        await eventually(() => scene.usdOf(agent.address), deposit);
      }
    },
  );

  const races: [string, (parties: Pair) => Promise<Json>, (parties: Pair, path: string) => Response[]][] = [
    [
      "POST /v1/contracts/{id}/accept > accepting and declining",
      (parties) => created(scene, parties.client, award(parties)),
      ({ worker }, path) => [accepting(worker, path), worker.post(`${path}/accept`, { accept: false })],
    ],
    [
      "POST /v1/contracts/{id}/dispute > approving and disputing",
      (parties) => delivered(scene, parties),
      ({ client }, path) => [client.post(`${path}/approve`), client.pay(`${path}/dispute`)],
    ],
    [
      "cancelling and accepting",
      ({ client }) => created(scene, client),
      ({ client, worker }, path) => [client.post(`${path}/cancel`), accepting(worker, path)],
    ],
  ];
  for (const [actions, prepare, race] of races) {
    withMoney(`${actions} at the same moment: one of them happens`, async () => {
      const parties = await newPair(scene);
      const { id } = await prepare(parties);
      const answers = await Promise.all(race(parties, `/v1/contracts/${id}`));
      expect(codes(answers)).toEqual([200, "conflict"]);
    });
  }
});
