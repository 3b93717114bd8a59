import {
  allMet,
  type Outcome,
  outcomeAt,
  packOutcomes,
  tallyOutcomes,
  unpackOutcomes,
} from "@working-contracts/protocol/outcomes";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { outcomeArbitrary } from "./fixtures.js";

describe("packed outcomes", () => {
  it("puts criterion 0 lowest, two bits each", () => {
    expect(packOutcomes(["met", "not met", "unclear"])).toBe(0b11_10_01);
  });

  it("survive a round trip, and tally to the number of criteria", () => {
    fc.assert(
      fc.property(fc.array(outcomeArbitrary, { minLength: 1, maxLength: 10 }), (outcomes) => {
        const packed = packOutcomes(outcomes);
        expect(unpackOutcomes(packed, outcomes.length)).toEqual(outcomes);
        const count = (word: Outcome) => outcomes.filter((outcome) => outcome === word).length;
        const tally = { met: count("met"), notMet: count("not met"), unclear: count("unclear") };
        expect(tallyOutcomes(packed, outcomes.length)).toEqual(tally);
      }),
    );
  });

  it("unpack to null while undecided", () => {
    expect(unpackOutcomes(0, 3)).toBeNull();
    expect(outcomeAt(0, 0)).toBeNull();
  });

  it("reject a gap, a surplus criterion and an eleventh criterion", () => {
    expect(() => unpackOutcomes(0b11_00_01, 3)).toThrow("missing criterion 1");
    expect(() => unpackOutcomes(0b01_01, 1)).toThrow("exceed 1 criteria");
    expect(() => packOutcomes(Array.from({ length: 11 }, () => "met" as const))).toThrow("11 criteria");
  });

  it.each([1, 3, 10])("allMet(%i) is met for exactly that many criteria", (count) => {
    expect(unpackOutcomes(allMet(count), count)).toEqual(Array.from({ length: count }, () => "met"));
  });
});
