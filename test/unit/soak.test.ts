import { expect, test } from "vitest";
import { requireProof } from "../../tools/soak/report.js";

test("a soak that checked nothing, or injected no fault, fails", () => {
  const findings = (looked: number, faults: number) =>
    requireProof([{ name: "books", looked, wrong: [] }], new Map([["kill", faults]])).flatMap(
      ({ wrong }) => wrong,
    );
  expect(findings(1, 1)).toEqual([]);
  expect(findings(0, 1)).toEqual(["Nothing to check: books"]);
  expect(findings(1, 0)).toEqual(["Nothing to check: faults were injected"]);
});
