/** The host's clock can be set back; a limit of time must not grow by that. */
import { afterEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/db/client.js";
import { waitForIndexed } from "../../src/db/onchain.js";
import { createMemory, type SignerContext } from "../../src/relayer/context.js";
import { sendNext } from "../../src/relayer/send.js";

afterEach(() => vi.restoreAllMocks());

/** From its second reading on, the clock is an hour late. */
function setBack(): void {
  const now = Date.now();
  vi.spyOn(Date, "now")
    .mockReturnValueOnce(now)
    .mockReturnValue(now - 3_600_000);
}

it("a wait for the index ends in time", async () => {
  setBack();
  // Errors of the database count as "not yet".
  expect(await waitForIndexed({} as Database, { blockNumber: 1n, timeoutMs: 50 })).toBe(false);
});

it("a signer that paused at the fee cap asks for the fees again", async () => {
  setBack();
  const monotonic = vi.spyOn(performance, "now");
  const estimateMaxPriorityFeePerGas = vi.fn(async () => 1n);
  const context = {
    publicClient: { estimateMaxPriorityFeePerGas },
    options: { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
    logger: { error() {} },
    memory: createMemory(),
  } as unknown as SignerContext;
  const head = { number: 1n, hash: "0x1", timestamp: 0, gasLimit: 0n, baseFeePerGas: 9n } as const;
  for (const [now, times] of [
    [10_000, 1],
    [14_000, 1],
    [16_000, 2],
  ] as const) {
    monotonic.mockReturnValue(now);
    expect(await sendNext(context, head)).toBe(false);
    expect(estimateMaxPriorityFeePerGas).toHaveBeenCalledTimes(times);
  }
});
