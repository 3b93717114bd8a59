import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  batchGas,
  cappedFees,
  gasBudget,
  operationGas,
  replacementFees,
} from "../../../src/relayer/transaction.js";

describe("a batch's gas", () => {
  it("stays below the limit of one transaction, and of a block", () => {
    expect(gasBudget({ gasLimit: 240_000_000n })).toBeLessThan(2 ** 24);
    expect(gasBudget({ gasLimit: 10_000_000n })).toBeLessThan(9_000_000);
  });

  it("covers the gas that the Relay requires before each operation, whatever the others used", () => {
    const call = fc.record({
      gasLimit: fc.integer({ min: 50_000, max: 3_000_000 }),
      bytes: fc.integer({ min: 4, max: 4000 }),
    });
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 150 }), (calls) => {
        fc.pre(
          calls.reduce(
            (sum, { gasLimit, bytes }) => sum + operationGas({ gasLimit, dataLength: bytes }),
            60_000,
          ) <
            2 ** 24,
        );
        const gas = batchGas(
          calls.map(({ gasLimit, bytes }) => ({ target: "0x", gasLimit, data: `0x${"00".repeat(bytes)}` })),
        );
        let left = Number(gas) - 21_000 - calls.reduce((sum, { bytes }) => sum + 16 * (bytes + 160), 0);
        for (const { gasLimit } of calls) {
          expect(left).toBeGreaterThanOrEqual(Math.floor((gasLimit * 64) / 63) + 12_000);
          left -= gasLimit + 12_000;
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("fees", () => {
  it("offers the doubled base fee and the tip, or the cap if that is less", () => {
    expect(cappedFees({ baseFeePerGas: 100n, tip: 10n, cap: 1000n })).toEqual({
      maxFeePerGas: 210n,
      maxPriorityFeePerGas: 10n,
    });
    expect(cappedFees({ baseFeePerGas: 100n, tip: 10n, cap: 150n })).toEqual({
      maxFeePerGas: 150n,
      maxPriorityFeePerGas: 10n,
    });
  });

  it("offers nothing if the cap cannot pay for the next block", () => {
    expect(cappedFees({ baseFeePerGas: 100n, tip: 10n, cap: 121n })).toBeNull();
  });

  it("replaces with at least a quarter more in both fields", () => {
    const previous = { maxFeePerGas: 1000n, maxPriorityFeePerGas: 100n };
    const fees = replacementFees({ previous, market: null, cap: 10_000n });
    expect(fees?.maxFeePerGas).toBeGreaterThanOrEqual(1250n);
    expect(fees?.maxPriorityFeePerGas).toBeGreaterThanOrEqual(125n);
  });

  it("follows the market if it asks for more", () => {
    const previous = { maxFeePerGas: 1000n, maxPriorityFeePerGas: 100n };
    const market = { maxFeePerGas: 5000n, maxPriorityFeePerGas: 300n };
    expect(replacementFees({ previous, market, cap: 10_000n })).toEqual(market);
  });

  it("ends at a small multiple of the market, because then another reason holds the transaction up", () => {
    const market = { maxFeePerGas: 1000n, maxPriorityFeePerGas: 100n };
    let previous = market;
    for (let tries = 0; tries < 100; tries++)
      previous = replacementFees({ previous, market, cap: 10n ** 12n }) ?? previous;
    expect(previous.maxFeePerGas).toBeGreaterThan(4_000n);
    expect(previous.maxFeePerGas).toBeLessThan(11_000n);
    expect(previous.maxPriorityFeePerGas).toBeLessThan(1_100n);
  });

  it("never exceeds the cap, and never goes below the increase that nodes accept", () => {
    const fee = fc.bigInt({ min: 1n, max: 10n ** 13n });
    fc.assert(
      fc.property(fee, fee, fee, (max, tip, cap) => {
        fc.pre(tip <= max);
        const previous = { maxFeePerGas: max, maxPriorityFeePerGas: tip };
        const fees = replacementFees({ previous, market: null, cap });
        if (fees === null) return;
        expect(fees.maxFeePerGas <= cap).toBe(true);
        expect(fees.maxPriorityFeePerGas <= fees.maxFeePerGas).toBe(true);
        expect(fees.maxFeePerGas * 1000n >= previous.maxFeePerGas * 1125n).toBe(true);
        expect(fees.maxPriorityFeePerGas * 1000n >= previous.maxPriorityFeePerGas * 1125n).toBe(true);
      }),
    );
  });
});
