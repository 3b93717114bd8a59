import * as hex from "@working-contracts/protocol/hex";
import { encodeWords } from "@working-contracts/protocol/hex";
import fc from "fast-check";
import * as viem from "viem";
import { describe, expect, it } from "vitest";

const AGENT = "0x00000000000000000000000000000000000000aa";
const HASH: viem.Hex = `0x${"ab".repeat(32)}`;
const bytes = fc.uint8Array({ minLength: 2, maxLength: 100 });

describe("hexadecimal text", () => {
  it("is hashed, cut and joined as viem does", () => {
    fc.assert(
      fc.property(bytes, fc.string({ unit: "binary" }), (some, text) => {
        const value = hex.toHex(some);
        expect(value).toBe(viem.toHex(some));
        expect(hex.hexToBytes(value)).toEqual(some);
        expect(hex.keccak256(value)).toBe(viem.keccak256(some));
        expect(hex.sha256(some)).toBe(viem.sha256(some));
        expect(hex.stringToHex(text)).toBe(viem.stringToHex(text));
        expect(hex.size(value)).toBe(some.length);
        expect(hex.sliceHex(value, 1)).toBe(viem.slice(value, 1));
        expect(hex.concatHex([value, "0x", HASH])).toBe(viem.concatHex([value, "0x", HASH]));
      }),
    );
  });

  it("refuses what does not fit", () => {
    expect(hex.numberToHex(255n, { size: 1 })).toBe("0xff");
    for (const value of [256, 256n, -1, -1n, 1.5, Number.NaN])
      expect(() => hex.numberToHex(value, { size: 1 })).toThrow(RangeError);
    expect(() => hex.padHex("0x112233", { size: 2 })).toThrow(RangeError);
    expect(() => hex.sliceHex("0x1122", 1, 3)).toThrow(RangeError);
    for (const value of ["0x1", "0xzz"] as const) expect(() => hex.hexToBytes(value)).toThrow();
  });
});

it("words of calldata are padded on the left, and longer ones are refused", () => {
  expect(encodeWords(AGENT.toUpperCase().replace("X", "x") as viem.Hex, 1n)).toBe(
    `0x${"0".repeat(62)}aa${"0".repeat(63)}1`,
  );
  expect(() => encodeWords(`${HASH}00`)).toThrow(RangeError);
});
