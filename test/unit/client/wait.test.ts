import { ConnectionError, OutcomeUnknown, ServiceError } from "@working-contracts/client/errors";
import { untilOutcome, waitForStatus, waitUntil } from "@working-contracts/client/wait";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { agentOf } from "./fake-service.js";

const refusal = (status: number) =>
  new ServiceError({ code: "internal_error", status, message: `HTTP ${status}`, requestId: null });

/** Throws or returns the given values, one per call, and then the last one again and again. */
function readerOf(...outcomes: unknown[]): () => Promise<unknown> {
  return async () => {
    const outcome = outcomes.length > 1 ? outcomes.shift() : outcomes[0];
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
}

describe("waiting", () => {
  it("continues while the service does not respond", async () => {
    const seen: unknown[] = [];
    const read = readerOf("a", new ConnectionError("gone"), refusal(503), refusal(429), "a", "b");
    const onChange = (value: unknown) => seen.push(value);
    expect(await waitUntil(read, (value) => value === "b", { intervalMs: 1, onChange })).toBe("b");
    expect(seen).toEqual(["a", "b"]);
  });

  it("ends with the failure if the service does not respond when time runs out", async () => {
    const read = readerOf(new ConnectionError("gone"));
    await expect(waitUntil(read, () => true, { intervalMs: 1, timeoutMs: 20 })).rejects.toThrow("gone");
  });

  it("ends with the last value if nothing has changed when time runs out", async () => {
    const read = readerOf("a");
    await expect(waitUntil(read, () => false, { intervalMs: 1, timeoutMs: 20 })).rejects.toThrow(
      'Timed out: "a"',
    );
  });

  it("ends with the last value also if the next one does not come in time", async () => {
    const values = [Promise.resolve("a"), new Promise(() => {})];
    const read = () => values.shift() as Promise<unknown>;
    const waiting = waitUntil(read, () => false, { intervalMs: 1, timeoutMs: 50 });
    await expect(waiting).rejects.toThrow('Timed out: "a"');
  });

  it("reads once without any time", async () => {
    const read = () => new Promise((resolve) => setTimeout(resolve, 10, "a"));
    expect(await waitUntil(read, () => true, { timeoutMs: 0 })).toBe("a");
    await expect(waitUntil(read, () => false, { timeoutMs: 0 })).rejects.toThrow('Timed out: "a"');
  });

  it("ends at once if the service refuses the request, or if the caller's check throws", async () => {
    await expect(waitUntil(readerOf(refusal(404)), () => true)).rejects.toThrow("HTTP 404");
    const check = () => {
      throw new Error("cannot happen any more");
    };
    await expect(waitUntil(readerOf("a"), check)).rejects.toThrow("cannot happen");
  });

  it.each([
    ["cancelled-absent", "deliveryDeadline", "under-review"],
    ["cancelled-unmatched", "matchDeadline", "matched"],
  ])("takes %s for final only a minute after its deadline", async (closed, deadline, wanted) => {
    const seen = (status: string, msAgo: number) => ({
      id: "0x1",
      status,
      [deadline]: new Date(Date.now() - msAgo).toISOString(),
    });
    const wait = (...contracts: object[]) =>
      waitForStatus(readerOf(...contracts) as never, wanted as never, { intervalMs: 1 });
    expect(await wait(seen(closed, 500), seen(wanted, 600))).toMatchObject({ status: wanted });
    await expect(wait(seen(closed, 61_000))).rejects.toThrow("can no longer change");
    // Declined, long before the deadline.
    await expect(wait(seen(closed, -61_000))).rejects.toThrow("can no longer change");
  });

  it("takes resolved for final only a minute after the review deadline, or before it", async () => {
    const seen = (status: string, msAgo: number) => ({
      status,
      reviewDeadline: new Date(Date.now() - msAgo).toISOString(),
    });
    const wait = (...contracts: object[]) =>
      waitForStatus(readerOf(...contracts) as never, ["resolved", "disputed"], { intervalMs: 1 });
    expect(await wait(seen("resolved", 500), seen("disputed", 600))).toMatchObject({ status: "disputed" });
    for (const msAgo of [61_000, -61_000])
      expect(await wait(seen("resolved", msAgo))).toMatchObject({ status: "resolved" });
  });

  it("leaves no rejection behind if the read throws at once", async () => {
    const read = () => {
      throw new Error("not even a promise");
    };
    await expect(waitUntil(read, () => true)).rejects.toThrow("not even a promise");
  });

  it("compares values with amounts in them", async () => {
    const read = readerOf({ amount: 1n }, { amount: 1n }, { amount: 2n });
    const seen: unknown[] = [];
    const isDone = (value: unknown) => (value as { amount: bigint }).amount === 2n;
    await waitUntil(read, isDone, { intervalMs: 1, onChange: (value) => seen.push(value) });
    expect(seen).toEqual([{ amount: 1n }, { amount: 2n }]);
  });
});

describe("waiting for a service that does not respond", () => {
  const hanging = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));

  it("ends when time runs out or the caller aborts, with its requests", async () => {
    const signals: AbortSignal[] = [];
    const agent = await agentOf(
      (request, init) => {
        signals.push(init.signal as AbortSignal);
        return hanging(request, init);
      },
      { patienceMs: 120_000 },
    );
    const inTime = { timeoutMs: 20 };
    await expect(agent.waitFor("0x", "matched", inTime)).rejects.toThrow(ConnectionError);
    await expect(agent.waitForPayout("0x", inTime)).rejects.toThrow("no response in time");
    const signal = AbortSignal.timeout(20);
    await expect(agent.waitFor("0x", "matched", { signal })).rejects.toThrow("aborted due to timeout");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    await expect(agent.waitUntil(() => new Promise(() => {}), Boolean, inTime)).rejects.toThrow("in time");
  });

  it("ends the events when the caller aborts", { timeout: 5000 }, async () => {
    const agent = await agentOf(hanging, { patienceMs: 120_000 });
    const signal = AbortSignal.timeout(20);
    for await (const event of agent.events({ signal })) expect.unreachable(`${event}`);
    expect(signal.aborted).toBe(true);
  });
});

describe("a payment whose outcome is unknown", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  /** An action whose outcome stays unknown for so many attempts. It counts how often it was begun, and resumed. */
  function paid(unknown: number) {
    const count = { begun: 0, resumed: 0 };
    const attempt = async (): Promise<string> => {
      if (count.resumed === unknown) return "paid";
      throw new OutcomeUnknown(
        "not known",
        () => {
          count.resumed += 1;
          return attempt();
        },
        new ConnectionError("gone"),
      );
    };
    const action = () => {
      count.begun += 1;
      return attempt();
    };
    return { action, count };
  }

  it("is resumed, never begun again", async () => {
    const { action, count } = paid(3);
    const reasons: string[] = [];
    const ending = untilOutcome(action, { onUnknown: (reason) => reasons.push(reason) });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await ending).toBe("paid");
    expect(count).toEqual({ begun: 1, resumed: 3 });
    expect(reasons).toEqual(["gone", "gone", "gone"]);
  });

  it("ends once the payment has expired", async () => {
    const ending = untilOutcome(paid(Number.POSITIVE_INFINITY).action).catch((error) => error);
    await vi.advanceTimersByTimeAsync(20 * 60_000);
    expect(await ending).toBeInstanceOf(OutcomeUnknown);
  });
});
