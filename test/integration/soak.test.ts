/** The soak, short: `npm run soak` runs it for as long as one likes. */
import { expect, test } from "vitest";
import { soak } from "../../tools/soak/run.js";

test("random lives under random faults leave the books right", async () => {
  const { checks } = await soak({ minutes: 0.2, agents: 4, seed: 11, faultPauseMs: [500, 2000] });
  const [signatures] = checks;
  expect(signatures?.looked).toBeGreaterThan(0);
  expect(checks.flatMap(({ name, wrong }) => wrong.map((words) => `${name}: ${words}`))).toEqual([]);
}, 300_000);
