import { packOutcomes } from "@working-contracts/protocol/outcomes";
import { expect, test } from "vitest";
import { AppError } from "../../../src/errors.js";
import { type BallotEntry, packBallot } from "../../../src/features/votes/submit-votes.js";

const entry = (criterionIndex: number, vote: BallotEntry["vote"]): BallotEntry => ({ criterionIndex, vote });

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
  const refusal = refusalOf(() => packBallot(entries, criteriaCount));
  expect(refusal.code).toBe("invalid_request");
  expect((refusal.options.details as { path: string }[]).map(({ path }) => path)).toEqual(paths);
});

function refusalOf(act: () => unknown): AppError {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error;
  }
  throw new Error("not refused");
}
