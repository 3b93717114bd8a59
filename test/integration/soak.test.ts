/** A short soak test. `npm run soak` runs for as long as requested. */
import { expect, test } from "vitest";
import { soak } from "../../tools/soak/run.js";

test("random lifecycles under random faults leave the books right", async () => {
  const { checks, faults } = await soak({
    minutes: 0.2,
    agents: 4,
    seed: 11,
    faultPauseMs: [500, 2000],
    stepTimeoutMs: 90_000,
  });
  expect(faults.size).toBeGreaterThan(0);
  for (const { name, looked } of checks) expect(looked, name).toBeGreaterThan(0);
  expect(checks.flatMap(({ name, wrong }) => wrong.map((words) => `${name}: ${words}`))).toEqual([]);
}, 600_000);
