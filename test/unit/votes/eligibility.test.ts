import { LIMITS } from "@working-contracts/protocol/limits";
import { parseEther } from "viem";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/errors.js";
import type { ContractRow } from "../../../src/features/contracts/view.js";
import { requireVoter, type VoterFacts } from "../../../src/features/votes/submit-votes.js";

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
  try {
    requireVoter(row, agent, { voter, now });
    return "allowed";
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
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
    expect(codeOf(dispute(), { ...eligible, stake })).toBe("forbidden");
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

  test("finds no seat if the escrow cannot count more", () => {
    expect(codeOf(dispute({ sealedVotes: 4094 }), eligible)).toBe("allowed");
    expect(codeOf(dispute({ sealedVotes: 4095 }), eligible)).toBe("conflict");
  });

  test("that has voted gets a conflict, even when its stake is being withdrawn", () => {
    expect(codeOf(dispute(), { stake: null, drawn: false, voted: true })).toBe("conflict");
  });
});
