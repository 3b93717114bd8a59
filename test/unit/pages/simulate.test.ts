/** Compares the simulator with the worked results of docs/rules.md 52, at prices 50.0 and 12.345678. */

import { formatDecimal } from "@working-contracts/protocol/amounts";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/parameters";
import { describe, expect, it } from "vitest";
import { type Scenario, type Simulation, simulate } from "../../../src/pages/simulate.js";
import { readQuery, toScenario } from "../../../src/pages/simulator.js";

const run = (query: string): Simulation =>
  simulate(toScenario(readQuery(new URLSearchParams(query))) as Scenario, DEFAULT_PARAMETERS);

const THREE = "c=met&c=met&c=met";

/** Query, status, then client, worker, treasury, and each Backup Agent's payout and tokens. */
const WORKED: [string, string, string, string, string, string[]][] = [
  [`end=accepted&${THREE}`, "settled-all-met", "0.0", "50.0", "2.5", []],
  [
    `end=dispute&${THREE}&votes=mmm mmm nnn`,
    "settled-all-met",
    "0.0",
    "52.5",
    "2.5",
    ["11.25 30", "11.25 30", "0.0 0"],
  ],
  [
    `end=dispute&${THREE}&votes=nnn nnn uuu`,
    "settled-none-met",
    "54.5",
    "0.0",
    "0.5",
    ["8.625 30", "8.625 30", "5.25 0"],
  ],
  [
    `end=dispute&${THREE}&votes=mmn mmn mum`,
    "settled-partial",
    "18.166667",
    "35.0",
    "1.833333",
    ["9.125 30", "9.125 30", "4.25 10"],
  ],
  [
    `end=dispute&${THREE}&votes=mmu mmu mmm`,
    "settled-partial",
    "9.166668",
    "43.749999",
    "2.083333",
    ["7.5 24", "7.5 24", "7.5 20"],
  ],
  [
    `end=dispute&${THREE}&votes=mnu mnu mnu`,
    "settled-partial",
    "27.333333",
    "26.25",
    "1.416667",
    ["7.5 24", "7.5 24", "7.5 24"],
  ],
  ["end=dispute&c=unclear&c=unclear&c=unclear", "settled-partial", "27.5", "26.25", "1.25", []],
  [`end=dispute&${THREE}&votes=mmm nnn`, "settled-partial", "27.5", "26.25", "1.25", ["7.5 0", "7.5 0"]],
  ["end=accepted&c=met&c=met&c=not met", "settled-partial", "17.333333", "33.333334", "1.833333", []],
  ["end=accepted&c=not met&c=not met&c=not met", "settled-none-met", "52.0", "0.0", "0.5", []],
  [`end=absent&${THREE}`, "cancelled-absent", "52.0", "0.0", "0.5", []],
  [`end=withdrawn&${THREE}`, "cancelled-withdrawn", "50.75", "1.75", "0.0", []],
  [`end=unmatched&${THREE}`, "cancelled-unmatched", "50.0", "0.0", "0.0", []],
  [`end=unmatched&initiator=worker&${THREE}`, "cancelled-unmatched", "0.0", "2.5", "0.0", []],
];

describe("worked results", () => {
  it.each(WORKED)("%s", (query, status, client, worker, treasury, jury) => {
    const result = run(`price=50&${query}`);
    const total = (label: string) =>
      formatDecimal(result.totals.find((total) => total.label === label)?.amount ?? -1n);
    expect(result.status).toBe(status);
    expect([total("Client"), total("Worker"), total("Treasury")]).toEqual([client, worker, treasury]);
    expect(result.jury.map(({ amount, reward }) => `${formatDecimal(amount)} ${reward}`)).toEqual(jury);
    expect(result.in).toBe(result.out);
  });

  it("loses no unit of an uneven price", () => {
    const result = run(`price=12.345678&end=dispute&${THREE}&votes=mmn mmn mum`);
    expect(formatDecimal(result.in)).toBe("19.135791");
    expect(result.totals.map(({ amount }) => formatDecimal(amount))).toEqual([
      "4.485595",
      "8.641974",
      "0.452676",
      "5.555546",
    ]);
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
