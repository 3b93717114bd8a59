import { ConnectionError, OutcomeUnknown, ServiceError } from "@working-contracts/client/errors";
import { toTheEnd, waitUntil } from "@working-contracts/client/wait";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const refusal = (status: number) =>
  new ServiceError({ code: "internal_error", status, message: `HTTP ${status}` });

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

  it("ends at once if the service refuses the request, or if the caller's check throws", async () => {
    await expect(waitUntil(readerOf(refusal(404)), () => true)).rejects.toThrow("HTTP 404");
    const check = () => {
      throw new Error("cannot happen any more");
    };
    await expect(waitUntil(readerOf("a"), check)).rejects.toThrow("cannot happen");
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
    const ending = toTheEnd(action, { onUnknown: (reason) => reasons.push(reason) });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await ending).toBe("paid");
    expect(count).toEqual({ begun: 1, resumed: 3 });
    expect(reasons).toEqual(["gone", "gone", "gone"]);
  });

  it("ends once the payment has expired", async () => {
    const ending = toTheEnd(paid(Number.POSITIVE_INFINITY).action).catch((error) => error);
    await vi.advanceTimersByTimeAsync(20 * 60_000);
    expect(await ending).toBeInstanceOf(OutcomeUnknown);
  });
});
