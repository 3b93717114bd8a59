import { allMet, packOutcomes } from "@working-contracts/protocol/outcomes";
import {
  effectiveOutcomes,
  endedAt,
  endingOf,
  payingTally,
  STATUS_GROUPS,
  STATUSES,
  type StatusFacts,
  settlementLegs,
  settlementOf,
  statusOf,
} from "@working-contracts/protocol/status";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import { describe, expect, it } from "vitest";

const MATCH = 1_000;
const DELIVERY = 2_000;
const REVIEW = 3_000;
const FAR = 1_000_000;

const facts: StatusFacts = {
  phase: "created",
  settled: false,
  outcomes: 0,
  price: 50_000_000n,
  criteriaCount: 3,
  computedCriteria: false,
  matchDeadline: MATCH,
  deliveryDeadline: DELIVERY,
  reviewDeadline: REVIEW,
};

const mixed = packOutcomes(["met", "met", "not met"]);

it.each([
  ["created", "cancelled-unmatched"],
  ["matched", "cancelled-absent"],
  ["delivered", "settled-all-met"],
] as const)("%s and settled is %s, even by a clock behind its deadline", (phase, status) => {
  expect(statusOf({ ...facts, phase, settled: true }, 0)).toBe(status);
});

it("derives a settlement's status from the money, not the votes: a price too small to share goes to the Client", () => {
  const outcomes = packOutcomes(["met", "not met", "not met"]);
  expect(statusOf({ ...facts, phase: "tallied", price: 2n, outcomes, settled: true }, FAR)).toBe(
    "settled-none-met",
  );
});

describe("criteria that could not be computed", () => {
  const unclear = packOutcomes(["met", "met", "unclear"]);
  const ended = { ...facts, computedCriteria: true, outcomes: unclear, settled: true };

  it.each(["approved", "delivered"] as const)("pay as met if the Client accepted: %s", (phase) => {
    expect(payingTally({ ...ended, phase }, REVIEW)).toEqual({ met: 3, notMet: 0, unclear: 0 });
    expect(statusOf({ ...ended, phase }, REVIEW)).toBe("settled-all-met");
    expect(effectiveOutcomes({ ...ended, phase }, REVIEW), "still unclear to readers").toBe(unclear);
  });

  it("stay as computed until the votes replace them", () => {
    const disputed = { ...ended, phase: "disputed", settled: false } as const;
    expect(effectiveOutcomes(disputed, FAR)).toBe(unclear);
  });

  it("split the price if they were voted on", () => {
    expect(payingTally({ ...ended, phase: "tallied" }, FAR)).toEqual({ met: 2, notMet: 0, unclear: 1 });
    expect(statusOf({ ...ended, phase: "tallied" }, FAR)).toBe("settled-partial");
  });
});

describe("endedAt and endingOf", () => {
  it.each([
    ["created", MATCH, "unmatched"],
    ["matched", DELIVERY, "absent"],
    ["delivered", REVIEW, "review-timeout"],
  ] as const)("%s ends by time, at the deadline itself", (phase, deadline, ending) => {
    const open = { ...facts, phase, endedAt: null };
    expect([endedAt(open, deadline - 1), endingOf(open, deadline - 1)]).toEqual([null, null]);
    expect([endedAt(open, deadline), endingOf(open, FAR)]).toEqual([deadline, ending]);
    expect([endedAt({ ...open, settled: true }, 0), endingOf({ ...open, settled: true }, 0)]).toEqual([
      deadline,
      ending,
    ]);
  });

  it("a dispute has no end before its tally", () => {
    expect(endedAt({ ...facts, phase: "disputed", endedAt: null }, FAR)).toBeNull();
    expect(endingOf({ ...facts, phase: "disputed" }, FAR)).toBeNull();
  });
});

describe("settlementLegs", () => {
  const base = { ...facts, workerInitiated: false, juryLeftover: 5n, parameters: DEFAULT_PARAMETERS };
  const names = (changed: Partial<typeof base>, now: number) =>
    settlementLegs({ ...base, ...changed }, now)?.map((leg) => `${leg.name} ${leg.amount}`);

  it("refund the deposit of a contract that no one accepted", () => {
    expect(names({ phase: "created" }, MATCH)).toEqual(["deposit-refund 50000000"]);
    expect(names({ phase: "cancelled", workerInitiated: true }, 0)).toEqual(["deposit-refund 2500000"]);
  });
});

describe("settlementOf", () => {
  const ENDED = 500;
  const HOLD = 100;
  const [client, worker, treasury, voter] = ["0xc1", "0x30", "0x7e", "0xba"] as const;
  const [SETTLEMENT, CLAIM, LATE] = ["0x5e", "0xc0", "0x1a"] as const;
  const base: Parameters<typeof settlementOf>[0] = {
    ...facts,
    phase: "approved",
    outcomes: allMet(3),
    endedAt: ENDED,
    workerInitiated: false,
    parameters: { ...DEFAULT_PARAMETERS, payoutHold: HOLD },
    payees: { client, worker, treasury },
    settledBy: undefined,
    ballots: [],
    refused: new Set(),
    late: new Map(),
  };
  const settled = { settled: true, settledBy: SETTLEMENT };
  const progressOf = (changed: Partial<typeof base>, now = FAR) =>
    settlementOf({ ...base, ...changed }, now).legs.map(({ name, state, transactionHash }) =>
      `${name} ${state} ${transactionHash ?? ""}`.trim(),
    );

  it("is empty while the Working Contract has not ended", () => {
    const none = { ending: null, endedAt: null, heldUntil: null, legs: [] };
    const open = { ...base, endedAt: null };
    expect(settlementOf({ ...open, phase: "delivered" }, REVIEW - 1)).toEqual(none);
    expect(settlementOf({ ...open, phase: "disputed" }, FAR)).toEqual(none);
  });

  it("holds every payment until the payout hold ends, and queues it from that second on", () => {
    const ends = { ending: "approved", endedAt: ENDED, heldUntil: ENDED + HOLD };
    expect(settlementOf(base, ENDED + HOLD - 1)).toMatchObject(ends);
    expect(settlementOf(base, ENDED + HOLD)).toMatchObject(ends);
    expect(progressOf({}, ENDED + HOLD - 1)).toEqual([
      "worker-pay held",
      "protocol-fee held",
      "stake-back held",
    ]);
    expect(progressOf({}, ENDED + HOLD)).toEqual([
      "worker-pay queued",
      "protocol-fee queued",
      "stake-back queued",
    ]);
  });

  it("counts the payout hold from the deadline that ended it, and queues at once without a hold", () => {
    const timedOut = { ...base, phase: "delivered", endedAt: null } as const;
    expect(settlementOf(timedOut, REVIEW)).toMatchObject({ endedAt: REVIEW, heldUntil: REVIEW + HOLD });
    const unheld = { parameters: { ...base.parameters, payoutHold: 0 } };
    expect(settlementOf({ ...base, ...unheld }, ENDED).heldUntil).toBeNull();
    expect(progressOf(unheld, ENDED)).toContain("worker-pay queued");
  });

  it("confirms what was paid, but to a payee that the token refused only once a later attempt succeeds", () => {
    expect(settlementOf({ ...base, ...settled }, FAR).legs[0]).toEqual({
      ...{ name: "worker-pay", to: "worker", address: worker, amount: 47_500_000n },
      ...{ paid: true, state: "confirmed", transactionHash: SETTLEMENT },
    });
    const refused = { ...settled, refused: new Set([worker]) };
    expect(progressOf(refused)).toEqual([
      "worker-pay queued",
      "protocol-fee confirmed 0x5e",
      "stake-back queued",
    ]);
    expect(settlementOf({ ...base, ...refused }, FAR).legs[0]?.paid, "by the escrow").toBe(true);
    expect(progressOf({ ...settled, late: new Map([[worker, LATE]]) })).toEqual([
      "worker-pay confirmed 0x1a",
      "protocol-fee confirmed 0x5e",
      "stake-back confirmed 0x1a",
    ]);
  });

  it("goes by the facts if the transactions were read at another block", () => {
    expect(progressOf({ settled: true })).toContain("worker-pay confirmed");
    expect(progressOf({ settledBy: SETTLEMENT })).toContain("worker-pay queued");
  });

  it("pays each Backup Agent by its own claim, once the dispute is tallied, and omits those who get nothing", () => {
    const ballot = { votes: mixed, claimed: false, claimedBy: undefined };
    const ballots = [
      { ...ballot, backupAgent: voter, claimed: true, claimedBy: CLAIM },
      { ...ballot, backupAgent: client },
      { ...ballot, backupAgent: worker, votes: null },
    ];
    const payoutsOf = (changed: Partial<typeof base>, now?: number) =>
      progressOf({ phase: "tallied", outcomes: mixed, ballots, ...changed }, now).filter((leg) =>
        leg.startsWith("jury-payout"),
      );
    expect(payoutsOf({}, ENDED)).toEqual(["jury-payout confirmed 0xc0", "jury-payout held"]);
    expect(payoutsOf(settled)).toEqual(["jury-payout confirmed 0xc0", "jury-payout queued"]);
    expect(payoutsOf({ refused: new Set([voter]) }, ENDED)).toEqual([
      "jury-payout queued",
      "jury-payout held",
    ]);
    expect(payoutsOf({ phase: "approved" })).toEqual([]);
  });
});

it("the status groups contain every status once", () => {
  expect(Object.values(STATUS_GROUPS).flat().sort()).toEqual([...STATUSES].sort());
});
