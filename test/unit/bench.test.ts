import { expect, test } from "vitest";
import { percentiles } from "../../tools/bench/load.js";

test("percentiles of benchmarks are nearest ranks", () => {
  const upTo = (count: number) => Array.from({ length: count }, (_, i) => count - i);
  expect(percentiles(upTo(20))).toEqual({ p50: 10, p95: 19, p99: 20, max: 20 });
  expect(percentiles(upTo(3))).toEqual({ p50: 2, p95: 3, p99: 3, max: 3 });
  expect(percentiles([])).toEqual({ p50: 0, p95: 0, p99: 0, max: 0 });
});
