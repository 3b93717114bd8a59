import { computeCriteria } from "@working-contracts/protocol/checkpoints";
import { describe, expect, test } from "vitest";

const outcome = (rule: unknown, metrics: Record<string, unknown> | null) =>
  computeCriteria({ criteriaCount: 1, applicationTerms: { criteria: [rule] }, metrics })[0];

describe("a valid rule", () => {
  test.each([
    [">=", 4.999, 5, "not met"],
    [">", 5.5, 5, "met"],
    ["==", 5.1, 5, "not met"],
  ])("value %s of %s against %s", (op, value, target, expected) => {
    expect(outcome({ metric: "tokens", op, target }, { tokens: value })).toBe(expected);
  });

  test("is not met without a checkpoint, or if its metric is not a number", () => {
    const rule = { metric: "tokens", op: ">=", target: 0 };
    expect(outcome(rule, null)).toBe("not met");
    expect(outcome(rule, {})).toBe("not met");
    expect(outcome(rule, { tokens: "7" })).toBe("not met");
  });

  test("does not read inherited properties", () => {
    expect(outcome({ metric: "constructor", op: ">=", target: 0 }, {})).toBe("not met");
  });
});

test.each([
  [undefined],
  [null],
  ["tokens >= 5"],
  [{ metric: "", op: ">=", target: 1 }],
  [{ metric: "tokens", op: "=>", target: 1 }],
  [{ metric: "tokens", op: "toString", target: 1 }],
  [{ metric: "tokens", op: ">=", target: "1" }],
  [{ metric: "tokens", op: ">=" }],
])("a malformed rule %j is unclear", (rule) => {
  expect(outcome(rule, { tokens: 10 })).toBe("unclear");
});

test("criteria without rules are unclear, and rules without criteria are ignored", () => {
  const metrics = { a: 1 };
  const rule = { metric: "a", op: "==", target: 1 };
  expect(computeCriteria({ criteriaCount: 2, applicationTerms: { criteria: [rule] }, metrics })).toEqual([
    "met",
    "unclear",
  ]);
  expect(
    computeCriteria({ criteriaCount: 1, applicationTerms: { criteria: [rule, rule] }, metrics }),
  ).toEqual(["met"]);
  expect(computeCriteria({ criteriaCount: 1, applicationTerms: null, metrics })).toEqual(["unclear"]);
});
