/**
 * `npm run soak -- --minutes N --agents M [--seed S]`: agents live random lives against real processes while random
 * faults are injected. Then all faults are healed, time passes until every contract has ended, and the books are
 * checked. Exits with code 1 if something was wrong.
 */
import { parseArgs } from "node:util";
import { soak } from "./run.js";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    agents: { type: "string", default: "12" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const [minutes, agents, seed] = [Number(values.minutes), Number(values.agents), Number(values.seed)];
if (!(minutes > 0) || !(agents >= 3) || !Number.isInteger(seed)) {
  console.error("Usage: npm run soak -- --minutes <number> --agents <3 or more> [--seed <whole number>]");
  process.exit(2);
}
const { checks } = await soak({ minutes, agents, seed });
process.exit(checks.every(({ wrong }) => wrong.length === 0) ? 0 : 1);
