import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  batchGas,
  batchGasLimit,
  estimateFees,
  operationGas,
  replacementFees,
} from "../../../src/relayer/transaction.js";

describe("a batch's gas", () => {
  it("stays below the limit of one transaction, and of a block", () => {
    expect(batchGasLimit({ gasLimit: 240_000_000n })).toBeLessThan(2 ** 24);
    expect(batchGasLimit({ gasLimit: 10_000_000n })).toBeLessThan(9_000_000);
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
  const caps = { maxFeePerGas: 10_000n, maxPriorityFeePerGas: 1_000n };
  /** A node that names this tip. */
  const nodeOf = (tip: bigint) => ({ estimateMaxPriorityFeePerGas: async () => tip });
  /** The fees once replacements have been tried a hundred times. */
  const afterReplacements = (first: typeof caps, market: typeof caps, limits: typeof caps) => {
    let previous = first;
    for (let tries = 0; tries < 100; tries++)
      previous = replacementFees({ previous, market, caps: limits }) ?? previous;
    return previous;
  };

  it("never tip more than their cap, whatever the node says", async () => {
    expect(await estimateFees(nodeOf(9_999n), { baseFeePerGas: 0n }, caps)).toEqual({
      maxFeePerGas: 1_000n,
      maxPriorityFeePerGas: 1_000n,
    });
    expect(await estimateFees(nodeOf(3n), { baseFeePerGas: 100n }, caps)).toEqual({
      maxFeePerGas: 203n,
      maxPriorityFeePerGas: 3n,
    });
  });

  it("end at eight times the tip's cap if a node shows no block and a base fee without end", () => {
    const lie = { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1_000n };
    const last = afterReplacements(
      lie,
      { ...lie, maxFeePerGas: 10n ** 12n },
      { ...caps, maxFeePerGas: 10n ** 12n },
    );
    expect(last.maxPriorityFeePerGas).toBeLessThanOrEqual(8_000n);
  });

  it.each([
    [1000n, { maxFeePerGas: 210n, maxPriorityFeePerGas: 10n }],
    [150n, { maxFeePerGas: 150n, maxPriorityFeePerGas: 10n }],
    [121n, null],
  ])(
    "offers the doubled base fee and the tip, at most the cap, or nothing (%d)",
    async (maxFeePerGas, fees) => {
      const head = { baseFeePerGas: 100n };
      expect(await estimateFees(nodeOf(10n), head, { ...caps, maxFeePerGas })).toEqual(fees);
    },
  );

  it("replaces with at least a quarter more in both fields, or what the market asks for if that is more", () => {
    const previous = { maxFeePerGas: 1000n, maxPriorityFeePerGas: 100n };
    const fees = replacementFees({ previous, market: null, caps });
    expect(fees?.maxFeePerGas).toBeGreaterThanOrEqual(1250n);
    expect(fees?.maxPriorityFeePerGas).toBeGreaterThanOrEqual(125n);
    const market = { maxFeePerGas: 5000n, maxPriorityFeePerGas: 300n };
    expect(replacementFees({ previous, market, caps })).toEqual(market);
  });

  it("ends at a small multiple of the market, because then another reason holds the transaction up", () => {
    const market = { maxFeePerGas: 1000n, maxPriorityFeePerGas: 100n };
    const high = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n };
    const last = afterReplacements(market, market, high);
    expect(last.maxFeePerGas).toBeGreaterThan(4_000n);
    expect(last.maxFeePerGas).toBeLessThan(11_000n);
    expect(last.maxPriorityFeePerGas).toBeLessThan(1_100n);
  });

  it("never exceeds the cap, and never goes below the increase that nodes accept", () => {
    const fee = fc.bigInt({ min: 1n, max: 10n ** 13n });
    let replaced = 0;
    fc.assert(
      fc.property(fee, fee, fee, (max, tip, cap) => {
        fc.pre(tip <= max);
        const previous = { maxFeePerGas: max, maxPriorityFeePerGas: tip };
        const caps = { maxFeePerGas: cap, maxPriorityFeePerGas: cap / 8n };
        const fees = replacementFees({ previous, market: null, caps });
        if (fees === null) return;
        replaced++;
        expect(fees.maxFeePerGas <= cap).toBe(true);
        expect(fees.maxPriorityFeePerGas <= cap).toBe(true);
        expect(fees.maxPriorityFeePerGas <= fees.maxFeePerGas).toBe(true);
        expect(fees.maxFeePerGas * 1000n >= previous.maxFeePerGas * 1125n).toBe(true);
        expect(fees.maxPriorityFeePerGas * 1000n >= previous.maxPriorityFeePerGas * 1125n).toBe(true);
      }),
    );
    expect(replaced).toBeGreaterThan(0);
  });
});
