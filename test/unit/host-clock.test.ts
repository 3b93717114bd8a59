/** The host's clock can be set back; a limit of time must not grow by that. */
import { afterEach, expect, it, vi } from "vitest";
import { type Database, databaseOn } from "../../src/db/client.js";
import { waitForIndexed } from "../../src/db/onchain.js";
import { awaitOutcome } from "../../src/payments/relayed-call.js";
import { createMemory, type SignerContext } from "../../src/relayer/context.js";
import { followBatches } from "../../src/relayer/follow.js";
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

it("a call whose block the index does not show is answered in time", async () => {
  const deps = {
    // Errors of the database count as "not yet".
    db: {},
    config: { settlementWaitMs: 100 },
    outbox: { waitFor: async () => ({ state: "mined", response: null, blockNumber: 1n }) },
  };
  setBack();
  const outcome = awaitOutcome(deps as never, { response: null } as never, async () => ({ data: null }));
  await expect(outcome).rejects.toMatchObject({ code: "settlement_pending" });
});

it("a signer looks at the same block again, for receipts that its node had not shown", async () => {
  const query = vi.fn(async () => ({ rows: [] }));
  const context = {
    db: databaseOn({ query } as never),
    publicClient: { getTransactionCount: async () => 0 },
    options: { confirmations: 1 },
    memory: createMemory(),
  } as unknown as SignerContext;
  const head = { number: 1n, hash: "0x1", timestamp: 0, gasLimit: 0n, baseFeePerGas: 0n } as const;
  setBack();
  const monotonic = vi.spyOn(performance, "now");
  for (const [now, isLookedAt] of [
    [10_000, true],
    [10_400, false],
    [10_600, true],
  ] as const) {
    monotonic.mockReturnValue(now);
    query.mockClear();
    await followBatches(context, head);
    expect(query.mock.calls.length > 0).toBe(isLookedAt);
  }
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
