import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import { isoDuration } from "@working-contracts/protocol/time";
import { expect, it } from "vitest";
import {
  createParameterReader,
  presentLimits,
  presentParameters,
} from "../../../../src/features/protocol/routes.js";

it("shows a recruit count if there is one, and ratios to the basis point", () => {
  const view = presentParameters({
    ...DEFAULT_PARAMETERS,
    baRecruitCount: 5,
    protocolFee: 1,
    baVotingWindow: 90,
  });
  expect(view).toMatchObject({ baRecruitCount: 5, protocolFee: 0.0001, baVotingWindow: "PT1M30S" });
});

it.each([
  [0, "PT0S"],
  [1, "PT1S"],
  [60, "PT1M"],
  [300, "PT5M"],
  [3661, "PT1H1M1S"],
  [86_400, "PT24H"],
  [31_536_000, "PT8760H"],
])("writes %i seconds as %s", (seconds, text) => {
  expect(isoDuration(seconds)).toBe(text);
});

it("serves switched-off rates as null, and the minimum price as a decimal", () => {
  const rateLimits = { reads: 300, writes: 60, anonymous: 0, challenges: 10, pages: 120 };
  const gasPolicy = { allowance: 20_000_000, budget: 0, perFee: 7 };
  const limits = presentLimits({ minimumPrice: 10_000n, rateLimits, gasPolicy }, { payoutHold: 3600 });
  expect(limits.gas).toEqual({ allowance: 20_000_000, budget: null, perFee: 7 });
  expect(limits.requests).toMatchObject({
    readsPerMinute: 300,
    anonymousPerMinute: null,
    pagesPerMinute: 120,
  });
  expect(limits.contracts).toMatchObject({ minimumPrice: "0.01", payoutHold: "PT1H" });
});

it("reads the factory once for many callers, again when stale, and at once after a failure", async () => {
  let now = 0;
  let reads = 0;
  let failing = false;
  const publicClient = {
    readContract: async () => {
      reads++;
      if (failing) throw new Error("down");
      return DEFAULT_PARAMETERS;
    },
  };
  const read = createParameterReader({ publicClient, deployment: {} } as never, {
    freshForMs: 100,
    now: () => now,
  });
  await Promise.all([read(), read(), read()]);
  expect(reads).toBe(1);
  now = 99;
  await read();
  expect(reads).toBe(1);
  now = 100;
  failing = true;
  await expect(read()).rejects.toThrow("down");
  failing = false;
  await expect(read()).resolves.toEqual(DEFAULT_PARAMETERS);
  expect(reads).toBe(3);
});
