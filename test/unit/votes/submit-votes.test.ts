import { LIMITS } from "@working-contracts/protocol/limits";
import { packOutcomes } from "@working-contracts/protocol/outcomes";
import { parseEther } from "viem";
import { describe, expect, test } from "vitest";
import type { VoterFacts } from "../../../src/db/onchain.js";
import { AppError } from "../../../src/errors.js";
import type { ContractRow } from "../../../src/features/contracts/view.js";
import { type BallotEntry, packBallot, requireVoter } from "../../../src/features/votes/ballots.js";

const MATCHED_AT = 900_000;
const DISPUTED_AT = 1_000_000;
const WINDOW = 86_400;
const AGENT = `0x${"aa".repeat(20)}` as const;
const CLIENT = `0x${"01".repeat(20)}` as const;
const WORKER = `0x${"02".repeat(20)}` as const;

/** Only the fields that the rule reads. */
const dispute = (changes: object = {}): ContractRow =>
  ({
    chain: {
      phase: "disputed",
      client: CLIENT,
      worker: WORKER,
      matchedAt: BigInt(MATCHED_AT),
      disputedAt: BigInt(DISPUTED_AT),
      baVotingWindow: WINDOW,
      baRecruitCount: 0,
      baEligibilityStake: 1000n,
      sealedVotes: 0,
      price: 50_000_000n,
      endedAt: null,
      ...changes,
    },
  }) as unknown as ContractRow;

const staked = (changes: Partial<NonNullable<VoterFacts["stake"]>> = {}) => ({
  amount: parseEther("1000"),
  since: BigInt(MATCHED_AT - 1),
  releasableAt: null,
  ...changes,
});

const releasableFrom = (requestedAt: number) => BigInt(requestedAt + LIMITS.unstakingDelay);

const eligible: VoterFacts = { stake: staked(), drawn: false, voted: false };

function codeOf(
  row: ContractRow,
  voter: VoterFacts,
  { now = DISPUTED_AT + 1, agent = AGENT as `0x${string}` } = {},
) {
  return refusalOf(() => requireVoter(row, agent, { voter, now }))?.code ?? "allowed";
}

describe("a Backup Agent", () => {
  test("can vote up to the last second of the window, but not at its end", () => {
    expect(codeOf(dispute(), eligible, { now: DISPUTED_AT + WINDOW - 1 })).toBe("allowed");
    expect(codeOf(dispute(), eligible, { now: DISPUTED_AT + WINDOW })).toBe("conflict");
  });

  test.each([
    ["no stake", null],
    ["a unit too little", staked({ amount: parseEther("1000") - 1n })],
    ["a stake made in the second of the match", staked({ since: BigInt(MATCHED_AT) })],
    ["a stake made between match and dispute", staked({ since: BigInt(DISPUTED_AT - 1) })],
    ["a stake that left before the match", staked({ releasableAt: releasableFrom(MATCHED_AT - 1) })],
  ])("is rejected with %s", (_, stake) => {
    const voter = { ...eligible, stake };
    expect(refusalOf(() => requireVoter(dispute(), AGENT, { voter, now: DISPUTED_AT + 1 }))).toMatchObject({
      code: "forbidden",
      message: expect.stringContaining("1000 protocol tokens"),
    });
  });

  test("can vote while its stake is being withdrawn, if it left after the match", () => {
    const stake = staked({ releasableAt: releasableFrom(MATCHED_AT) });
    expect(codeOf(dispute(), { ...eligible, stake })).toBe("allowed");
  });

  test("cannot be a party, whatever the state", () => {
    for (const agent of [CLIENT, WORKER]) {
      expect(codeOf(dispute(), eligible, { agent })).toBe("forbidden");
      expect(codeOf(dispute({ phase: "tallied", disputedAt: null }), eligible, { agent })).toBe("forbidden");
    }
  });

  test("needs a drawn seat in the first half of a recruited panel", () => {
    const recruited = dispute({ baRecruitCount: 2 });
    const half = DISPUTED_AT + WINDOW / 2;
    expect(codeOf(recruited, eligible, { now: half - 1 })).toBe("forbidden");
    expect(codeOf(recruited, { ...eligible, drawn: true }, { now: half - 1 })).toBe("allowed");
    expect(codeOf(recruited, eligible, { now: half })).toBe("allowed");
    expect(codeOf(dispute({ baRecruitCount: 2, sealedVotes: 2 }), eligible, { now: half })).toBe("conflict");
  });

  test("hears whether the panel has been drawn yet", () => {
    const refusalIn = (drawn: boolean) => {
      const row = dispute({ baRecruitCount: 2, drawn });
      return refusalOf(() => requireVoter(row, AGENT, { voter: eligible, now: DISPUTED_AT + 1 }))?.message;
    };
    expect(refusalIn(false)).toContain("The panel has not been drawn yet");
    expect(refusalIn(true)).toContain("You were not drawn for this panel");
  });

  test("finds no seat if the escrow cannot count more", () => {
    expect(codeOf(dispute({ sealedVotes: 4094 }), eligible)).toBe("allowed");
    expect(codeOf(dispute({ sealedVotes: 4095 }), eligible)).toBe("conflict");
  });

  test("gets a conflict if it has voted, even when its stake is being withdrawn", () => {
    expect(codeOf(dispute(), { stake: null, drawn: false, voted: true })).toBe("conflict");
  });
});

describe("a ballot", () => {
  const entry = (criterionIndex: number, vote: BallotEntry["vote"]): BallotEntry => ({
    criterionIndex,
    vote,
  });

  test("packs one entry per criterion, in any order", () => {
    const entries = [entry(2, "unclear"), entry(0, "met"), entry(1, "not met")];
    expect(packBallot(entries, 3)).toBe(packOutcomes(["met", "not met", "unclear"]));
  });

  test.each([
    ["a missing criterion", [entry(0, "met")], 2, ["votes"]],
    ["a criterion twice", [entry(0, "met"), entry(0, "met")], 2, ["votes.1.criterionIndex", "votes"]],
    ["one too many", [entry(0, "met"), entry(1, "met")], 1, ["votes.1.criterionIndex"]],
    ["an index out of range", [entry(1, "met")], 1, ["votes.0.criterionIndex", "votes"]],
  ])("rejects %s, naming it", (_, entries, criteriaCount, paths) => {
    const { code, options } = refusalOf(() => packBallot(entries, criteriaCount)) as AppError;
    expect(code).toBe("invalid_request");
    expect((options.details as { path: string }[]).map(({ path }) => path)).toEqual(paths);
  });
});

function refusalOf(act: () => unknown): AppError | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  return undefined;
}
