/** Compares the Relay's gas limits with the last measurements of the forge gas tests. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { GAS_LIMITS, OPERATION_KINDS } from "../../../src/relayer/gas-limits.js";

/** Whole transactions with one operation each, by `kind` or `kind, variant`. */
const MEASURED: Record<string, string> = JSON.parse(
  readFileSync(new URL("../../contracts/snapshots/operations-alone.json", import.meta.url), "utf8"),
);
const INTRINSIC_GAS = 21_000;
const HEADROOM = 1.5;

describe("gas limits", () => {
  it.each(OPERATION_KINDS)("%s has 1.5 times its costliest measurement", (kind) => {
    const measurements = Object.entries(MEASURED)
      .filter(([name]) => name === kind || name.startsWith(`${kind}, `))
      .map(([, gas]) => Number(gas) - INTRINSIC_GAS);
    expect(measurements.length, "measured").toBeGreaterThan(0);
    expect(GAS_LIMITS[kind]).toBeGreaterThanOrEqual(HEADROOM * Math.max(...measurements));
  });
});
