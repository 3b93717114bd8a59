import {
  formatDecimal,
  MAX_AMOUNT,
  MAX_PRICE,
  parseDecimal,
  priceBand,
  share,
  TOKEN_DECIMALS,
} from "@working-contracts/protocol/amounts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("parseDecimal", () => {
  it.each([
    ["50", 50_000_000n],
    ["50.0", 50_000_000n],
    ["0.1", 100_000n],
    ["0.2", 200_000n],
    ["0.3", 300_000n],
    ["0.000001", 1n],
    ["12.345678", 12_345_678n],
    ["0", 0n],
    ["0.0", 0n],
    ["9007199254740993.000001", 9_007_199_254_740_993_000_001n],
    ["79228162514264337593543.950335", MAX_AMOUNT],
  ])("reads %s exactly", (text, amount) => {
    expect(parseDecimal(text)).toBe(amount);
  });

  it.each([
    ["the text of a float sum", "0.30000000000000004"],
    ["7 decimals", "1.0000001"],
    ["7 decimals, the last one zero", "1.0000000"],
    ["a negative exponent", "1e-6"],
    ["a negative amount", "-1"],
    ["negative zero", "-0"],
    ["a leading zero", "01"],
    ["leading zeros before a fraction", "00.5"],
    ["two points", "1.2.3"],
    ["the empty string", ""],
    ["a trailing line break", "1\n"],
    ["one unit above uint96", "79228162514264337593543.950336"],
    ["a very long number", "9".repeat(200_000)],
  ])("refuses %s", (_, text) => {
    expect(parseDecimal(text)).toBeNull();
  });
});

it.each([
  [1n, 1],
  [2n, 2],
  [3n, 2],
  [4n, 3],
  [10_000_000n, 24],
  [MAX_PRICE, 80],
])("the price %d is in band %d", (price, band) => {
  expect(priceBand(price)).toBe(band);
});

describe("formatDecimal", () => {
  it("handles the protocol token with 18 decimals, both ways", () => {
    for (const text of ["1000.0", "0.000000000000000001", "79228162514.264337593543950335"]) {
      expect(formatDecimal(parseDecimal(text, TOKEN_DECIMALS) ?? -1n, TOKEN_DECIMALS)).toBe(text);
    }
    expect(parseDecimal("1", TOKEN_DECIMALS)).toBe(10n ** 18n);
    expect(parseDecimal("0.0000000000000000001", TOKEN_DECIMALS)).toBeNull();
    expect(parseDecimal("79228162514.264337593543950336", TOKEN_DECIMALS)).toBeNull();
  });

  it("rejects a negative amount", () => {
    expect(() => formatDecimal(-1n)).toThrow(RangeError);
  });

  it("writes the shortest decimal with a fractional digit, which parseDecimal reads back to the same unit", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: MAX_AMOUNT }), (amount) => {
        expect(formatDecimal(amount)).toMatch(/^(0|[1-9]\d*)\.(\d|\d{1,5}[1-9])$/);
        expect(parseDecimal(formatDecimal(amount))).toBe(amount);
      }),
    );
  });
});

it("a share rounds down to the smallest unit", () => {
  expect([12_345_678n, 19n, 20n].map((amount) => share(amount, 500))).toEqual([617_283n, 0n, 1n]);
});
