/** Compares the simulator with the worked results of docs/rules.md 52, at prices 50.0 and 12.345678. */

import { formatDecimal } from "@working-contracts/protocol/amounts";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import { describe, expect, it } from "vitest";
import {
  readQuery,
  type Scenario,
  type Simulation,
  simulate,
  toScenario,
} from "../../../src/pages/simulator.js";
import { outcomesOf, WORKED_RESULTS } from "../../support/worked-results.js";

const run = (query: string): Simulation =>
  simulate(toScenario(readQuery(new URLSearchParams(query))) as Scenario, DEFAULT_PARAMETERS);

const THREE = "c=met&c=met&c=met";

/** Without a dispute: query, status, then client, worker and treasury. */
const WORKED: [string, string, string, string, string][] = [
  [`end=accepted&${THREE}`, "settled-all-met", "0.0", "50.0", "2.5"],
  ["end=accepted&c=met&c=met&c=not met", "settled-partial", "17.333333", "33.333334", "1.833333"],
  ["end=accepted&c=not met&c=not met&c=not met", "settled-none-met", "52.0", "0.0", "0.5"],
  [`end=absent&${THREE}`, "cancelled-absent", "52.0", "0.0", "0.5"],
  [`end=withdrawn&${THREE}`, "cancelled-withdrawn", "50.75", "1.75", "0.0"],
  [`end=unmatched&${THREE}`, "cancelled-unmatched", "50.0", "0.0", "0.0"],
  [`end=unmatched&initiator=worker&${THREE}`, "cancelled-unmatched", "0.0", "2.5", "0.0"],
];

const totalsOf = ({ totals }: Simulation): string[] =>
  ["Client", "Worker", "Treasury"].map((label) =>
    formatDecimal(totals.find((total) => total.label === label)?.amount ?? -1n),
  );

describe("worked results", () => {
  it.each(WORKED)("%s", (query, status, ...totals) => {
    const result = run(`price=50&${query}`);
    expect(result.status).toBe(status);
    expect(totalsOf(result)).toEqual(totals);
    expect(result.jury).toEqual([]);
    expect(result.in).toBe(result.out);
  });

  it.each(WORKED_RESULTS)("$name", ({ price, votes, status, criteriaMet, jury, tokens, ...story }) => {
    // A dispute ignores the outcomes of the form, with or without votes.
    const result = run(`price=${price}&end=dispute&${THREE}&votes=${votes}`);
    expect(result.status).toBe(status);
    expect(result.outcomes).toEqual(outcomesOf(criteriaMet));
    expect(totalsOf(result)).toEqual([story.client, story.worker, story.treasury]);
    expect(result.jury.map(({ amount }) => formatDecimal(amount))).toEqual(jury);
    expect(result.jury.map(({ reward }) => reward)).toEqual(tokens);
    expect(result.in).toBe(result.out);
  });
});

describe("the form", () => {
  it("shows an example before anything is submitted", () => {
    expect(toScenario(readQuery(new URLSearchParams()))).not.toHaveProperty("fault");
  });

  it.each([
    ["price=0&c=met", /price/],
    ["price=1e3&c=met", /price/],
    ["price=-1&c=met", /price/],
    ["price=1208925819614629174.706176&c=met", /at most 1208925819614629174.706175,/],
    ["price=1&c=", /criterion/],
    ["price=1&end=dispute&c=met&c=met&votes=m", /letters/],
    ["price=1&end=dispute&c=met&votes=x", /letters/],
    [`price=1&end=dispute&c=met&votes=${"m ".repeat(26)}`, /at most 25/],
  ])("%s is rejected with a reason", (query, fault) => {
    expect(toScenario(readQuery(new URLSearchParams(query)))).toEqual({
      fault: expect.stringMatching(fault),
    });
  });
});
