import { createUnfinishedCalls } from "@working-contracts/cli/mcp/write-tools";
import { expect, it } from "vitest";

const begin = async () => ({});

it("has a bound, and forgets no call that could still pay", () => {
  const calls = createUnfinishedCalls(2);
  const [pending, ended] = [calls.enter("one", begin), calls.enter("two", begin)];
  expect(() => calls.enter("three", begin)).toThrow("2 calls are pending");
  ended.isAbandoned = true;
  ended.expiry = setTimeout(() => {});
  calls.enter("three", begin);
  expect(calls.resume(ended.resumeId)).toBeUndefined();
  expect(calls.resume(pending.resumeId)).toBe(pending);
  expect(() => calls.enter("four", begin)).toThrow("2 calls are pending");
});
