import { expect, it } from "vitest";
// @ts-expect-error A plain module: it runs before anything is installed.
import { closingLine } from "../../tools/test.mjs";

it("names skipped tests in the line of totals, if there are any", () => {
  expect(closingLine({ passed: 2, failed: 1, skipped: 0 })).toBe("2 passed, 1 failed");
  expect(closingLine({ passed: 2, failed: 1, skipped: 3 })).toBe("2 passed, 1 failed, 3 skipped");
});
