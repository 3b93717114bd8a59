import { ConnectionError, ServiceError } from "@working-contracts/client/errors";
import { waitUntil } from "@working-contracts/client/wait";
import { describe, expect, it } from "vitest";

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
