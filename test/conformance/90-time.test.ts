/**
 * The effects of time alone: one story over ten days, acted out first and judged afterwards. Files run one after
 * another, so it disturbs no other.
 */
import { beforeAll, describe, expect } from "vitest";
import type { Agent } from "../support/agent.js";
import {
  ballot,
  checkpointBody,
  created,
  DAY,
  delivered,
  disputed,
  eventually,
  HOUR,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  signedChallenge,
  untilStatus,
} from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { refusal, withJuryAndClock } from "./support/spec.js";

const scene = await openScene();
const MINUTE = 60;

const tell = lazy(async () => {
  const [parties, buyer, lister, jurors, idle, late] = await Promise.all([
    newPair(scene),
    scene.newAgent({ usd: "50" }),
    scene.newAgent({ usd: "2.5" }),
    Promise.all([newJuror(scene), newJuror(scene), newJuror(scene)]),
    newPair(scene),
    newJuror(scene),
  ]);
  const { client, worker } = parties;
  const criteria = [
    { metric: "tokens", op: ">=", target: 10 },
    { metric: "tokens", op: ">", target: 99 },
    null,
  ];
  const ticket = async (): Promise<Json> => {
    const terms = { application: "usageticket", applicationTerms: { criteria } };
    const { id } = await matched(scene, parties, terms);
    ok(
      await worker.post(
        `/v1/contracts/${id}/checkpoint`,
        await checkpointBody(scene, { data: { tokens: 12 } }),
      ),
      201,
    );
    return ok(await worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery: "x" }));
  };
  const [tender, listing, absent, kept, reviewed, computed, judged, judgedLate] = await Promise.all([
    created(scene, buyer),
    created(scene, lister, { initiator: "worker" }),
    matched(scene, idle),
    matched(scene, parties),
    delivered(scene, parties),
    ticket(),
    disputed(scene, parties),
    disputed(scene, parties),
  ]);
  const votes = [
    ["met", "met", "unclear"],
    ["met", "met", "unclear"],
    ["not met", "unclear", "met"],
  ];
  const votePath = `/v1/contracts/${judged.id}/votes`;
  for (const [i, juror] of jurors.entries()) ok(await juror.pay(votePath, ballot(...(votes[i] as string[]))));
  const sealed = ok(await client.get<Json[]>(votePath));
  const workload = async () => ok(await client.get<Json>(`/v1/agents/${jurors[2]?.address}/workload`));
  const pending = await workload();
  const stale = await signedChallenge(scene, client);
  const idleMoney = await scene.usdOf(idle.client.address);

  await scene.moveTime(5 * MINUTE);
  const keyPath = `/v1/agents/${client.address}/api-key`;
  const expired = await Promise.all(
    [keyPath, `${keyPath}/revoke`].map((path) => scene.call("POST", path, { body: stale })),
  );

  await scene.moveTime(HOUR);
  const unmatched = await Promise.all([
    untilStatus(client, tender.id, "cancelled-unmatched"),
    untilStatus(client, listing.id, "cancelled-unmatched"),
  ]);
  const acceptedLate = await worker.post(`/v1/contracts/${tender.id}/accept`, { accept: true });
  const cancelledLate = await buyer.post(`/v1/contracts/${tender.id}/cancel`);

  await scene.moveTime(DAY - 2 * HOUR);
  const votedInTime = await late.pay(`/v1/contracts/${judgedLate.id}/votes`, ballot("met", "met", "met"));

  await scene.moveTime(2 * HOUR);
  await untilStatus(client, judged.id, "settled-partial", "settled-all-met", "settled-none-met");
  const withdrawnLate = await worker.post(`/v1/contracts/${kept.id}/withdraw`);
  const votedLate = await late.post(votePath, ballot("met", "met", "met"));
  const tallied = ok(await client.get<Json[]>(votePath));
  const resolved = await workload();
  const listed = async (filter: string) => ok(await client.get<Json[]>(`/v1/votes?${filter}`));
  const decidedMet = await listed(`backupAgent=${jurors[0]?.address}&majorityOutcome=met`);
  const ofStrangers = await Promise.all(
    [`client=${worker.address}`, `worker=${client.address}`, `client=${client.address}&status=created`].map(
      listed,
    ),
  );
  const keptLate = ok(await worker.post<Json>(`/v1/contracts/${kept.id}/delivery`, { delivery: "in time" }));

  await scene.moveTime(DAY);
  await untilStatus(client, absent.id, "cancelled-absent");
  const deliveredLate = await idle.worker.post(`/v1/contracts/${absent.id}/delivery`, { delivery: "late" });
  const checkpointLate = await idle.worker.post(
    `/v1/contracts/${absent.id}/checkpoint`,
    await checkpointBody(scene),
  );

  await scene.moveTime(DAY);
  const approvedByTime = await untilStatus(client, reviewed.id, "settled-all-met");
  const computedByTime = await untilStatus(client, computed.id, "settled-partial");
  const disputedLate = await client.post(`/v1/contracts/${reviewed.id}/dispute`);
  const approvedLate = await client.post(`/v1/contracts/${reviewed.id}/approve`);
  const complain = (agent: Agent, id: string) =>
    agent.post(`/v1/contracts/${id}/complaints`, { evidence: {} });
  const complaints = await Promise.all(
    [reviewed.id, judged.id, kept.id].map(async (id) => (await complain(client, id)).status),
  );

  await scene.moveTime(7 * DAY);
  const complaintLate = await complain(client, reviewed.id);
  return {
    parties,
    idle,
    buyer,
    lister,
    jurors,
    judged,
    sealed,
    expired,
    unmatched,
    acceptedLate,
    cancelledLate,
    withdrawnLate,
    votedInTime,
    votedLate,
    pending,
    resolved,
    decidedMet,
    ofStrangers,
    tallied,
    keptLate,
    absent,
    deliveredLate,
    checkpointLate,
    idleMoney,
    reviewed,
    approvedByTime,
    computedByTime,
    disputedLate,
    approvedLate,
    complaints,
    complaintLate,
  };
});

// Ten days can take longer than one test's time-out.
beforeAll(async () => {
  const { can } = scene.target;
  if (can.includes("tokens") && can.includes("clock")) await tell();
});

describe("Time", () => {
  withJuryAndClock(
    "| Challenge validity | 5 minutes, single redemption | Key issuance and revocation |",
    async () => {
      const { expired } = await tell();
      expect(expired.map(refusal)).toEqual(["400 invalid_challenge", "400 invalid_challenge"]);
    },
  );

  withJuryAndClock(
    "| created | Match Deadline passes without match | - | the contract is cancelled; the status value is not shown | |",
    async () => {
      const { buyer, lister, unmatched, acceptedLate, cancelledLate } = await tell();
      expect(unmatched.map(({ status }) => status)).toEqual(["cancelled-unmatched", "cancelled-unmatched"]);
      await eventually(() => scene.usdOf(buyer.address), 50_000_000n);
      await eventually(() => scene.usdOf(lister.address), 2_500_000n);
      expect([acceptedLate, cancelledLate].map(refusal)).toEqual(["409 conflict", "409 conflict"]);
    },
  );

  withJuryAndClock(
    [
      "| matched | Delivery Deadline passes without delivery | - | cancelled-absent | Worker treated as absent (stake slashed; Client receives absentNoneMetClientShare of it, rest to the Treasury). |",
      "after the Delivery Deadline the contract has auto-cancelled and the call is rejected",
    ],
    async () => {
      const { idle, idleMoney, absent, deliveredLate, checkpointLate } = await tell();
      // The price is refunded, plus 80% of the stake.
      await eventually(() => scene.usdOf(idle.client.address), idleMoney + 52_000_000n);
      const { legs } = ok(await idle.client.get<Json>(`/v1/contracts/${absent.id}/settlement`));
      const to = (payee: string) =>
        legs.filter((leg: Json) => leg.to === payee).map(({ amount }: Json) => amount);
      expect([to("client"), to("treasury"), to("worker")]).toEqual([["50.0", "2.0"], ["0.5"], []]);
      expect([deliveredLate, checkpointLate].map(refusal)).toEqual(["409 conflict", "409 conflict"]);
    },
  );

  withJuryAndClock(
    "A Worker's withdrawal after withdrawalDeadline is not possible; the Worker must deliver by deliveryDeadline or be treated as absent.",
    async () => {
      const { withdrawnLate, keptLate } = await tell();
      expect(refusal(withdrawnLate)).toBe("409 conflict");
      expect(keptLate.status).toBe("under-review");
    },
  );

  withJuryAndClock(
    [
      "| under-review | Review Deadline passes with no dispute | - | treated as approved, same outcome as Approve | Disputing is no longer possible. |",
      "lets the Review Deadline pass, which counts as approval",
    ],
    async () => {
      const { parties, reviewed, approvedByTime, computedByTime, disputedLate, approvedLate } = await tell();
      expect(approvedByTime).toMatchObject({ status: "settled-all-met", criteriaMet: ["met", "met", "met"] });
      expect(computedByTime).toMatchObject({ criteriaMet: ["met", "not met", "unclear"] });
      expect([disputedLate, approvedLate].map(refusal)).toEqual(["409 conflict", "409 conflict"]);
      expect(disputedLate.error?.message).toContain("reviewDeadline");
      const settlement = ok(await parties.client.get<Json>(`/v1/contracts/${reviewed.id}/settlement`));
      expect(settlement.legs.map(({ name, amount }: Json) => [name, amount])).toEqual([
        ["worker-pay", "47.5"],
        ["protocol-fee", "2.5"],
        ["stake-back", "2.5"],
      ]);
    },
  );

  withJuryAndClock("and when the complaint window has closed.", async () => {
    const { complaints, complaintLate } = await tell();
    expect(complaints).toEqual([201, 201, 201]);
    expect(refusal(complaintLate)).toBe("409 conflict");
  });

  withJuryAndClock(
    [
      "majorityOutcome per criterion is resolved when every Backup Agent has submitted or baVotingWindow has closed; bondOutcome then becomes returned, slashed or partially slashed",
      "Time a Backup Agent has to respond before it counts as no vote; the same for every contract and criterion.",
    ],
    async () => {
      const { sealed, tallied, jurors, parties, judged, votedInTime, votedLate } = await tell();
      for (const vote of sealed) {
        expect(vote).toMatchObject({ vote: null, majorityOutcome: null, bondOutcome: null, reward: null });
      }
      const of = (juror: Agent | undefined, name: string) =>
        tallied.filter(({ backupAgent }) => backupAgent === juror?.address).map((vote) => vote[name]);
      const [first, second, third] = jurors;
      for (const juror of jurors) expect(of(juror, "majorityOutcome")).toEqual(["met", "met", "unclear"]);
      for (const juror of [first, second])
        expect(of(juror, "bondOutcome")).toEqual(["returned", "returned", "returned"]);
      expect(of(third, "bondOutcome")).toEqual(["slashed", "partially slashed", "returned"]);
      const { data } = await parties.client.get<Json>(`/v1/contracts/${judged.id}`);
      expect(data.criteriaMet).toEqual(["met", "met", "unclear"]);
      expect([votedInTime.status, refusal(votedLate)]).toEqual([200, "409 conflict"]);
      const voters = new Set(tallied.map(({ backupAgent }) => backupAgent));
      expect([...voters].sort()).toEqual(jurors.map(({ address }) => address).sort());
      const { pending, resolved, decidedMet, ofStrangers } = await tell();
      const vote = (criterionIndex: number) => ({ contractId: judged.id, criterionIndex });
      expect(pending.pendingBaVotes).toEqual([vote(0), vote(1), vote(2)]);
      expect([pending.resolvedBaVotes, resolved.pendingBaVotes]).toEqual([[], []]);
      expect(resolved.resolvedBaVotes).toEqual([
        { ...vote(0), vote: "not met", majorityOutcome: "met" },
        { ...vote(1), vote: "unclear", majorityOutcome: "met" },
        { ...vote(2), vote: "met", majorityOutcome: "unclear" },
      ]);
      expect(
        decidedMet
          .map(({ contractId, backupAgent, criterionIndex }) => [contractId, backupAgent, criterionIndex])
          .sort(),
      ).toEqual([
        [judged.id, jurors[0]?.address, 0],
        [judged.id, jurors[0]?.address, 1],
      ]);
      expect(ofStrangers).toEqual([[], [], []]);
    },
  );

  withJuryAndClock(
    [
      "reward is tokenMintRewardFull for matching a decisive majority and tokenMintRewardReduced for matching an `unclear` majority.",
      "Tokens minted for matching a decisive majority vote.",
      "Tokens minted for matching an `unclear` majority vote.",
    ],
    async () => {
      const { tallied, jurors } = await tell();
      const rewards = jurors.map((juror) =>
        tallied.filter(({ backupAgent }) => backupAgent === juror.address).map(({ reward }) => reward),
      );
      expect(rewards).toEqual([
        [10, 10, 4],
        [10, 10, 4],
        [0, 0, 0],
      ]);
    },
  );

  withJuryAndClock(
    [
      "A majority outcome per criterion drives bond returns, slashing and token rewards.",
      "`unclear` against a decisive majority slashes baUnclearSlashRatio of that criterion's bond",
    ],
    async () => {
      const { parties, judged, jurors } = await tell();
      const { legs } = ok(await parties.client.get<Json>(`/v1/contracts/${judged.id}/settlement`));
      const paid = jurors.map(({ address }) =>
        legs
          .filter((leg: Json) => leg.to === "backup-agent" && leg.address === address)
          .map(({ amount }: Json) => amount),
      );
      // The third gets 0 of its first bond, 70% of the second, all of the third. The two that matched share the rest.
      expect(paid).toEqual([["9.125"], ["9.125"], ["4.25"]]);
    },
  );

  withJuryAndClock(["Keys never expire.", "Keys do not expire."], async () => {
    const { parties } = await tell();
    const [key] = ok(await parties.client.get<Json[]>("/v1/agents/me/api-keys"));
    expect(Date.parse(key?.createdAt) / 1000).toBeLessThan((await scene.now()) - 10 * DAY);
    expect(key?.revokedAt).toBeNull();
  });
});
