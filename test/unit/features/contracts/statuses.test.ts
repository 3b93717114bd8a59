import { STATUSES } from "@working-contracts/protocol/status";
import { expect, test } from "vitest";
import { parseStatuses } from "../../../../src/features/contracts/list-contracts.js";
import { phasesOf } from "../../../../src/features/contracts/view.js";

test("names statuses, prefixes and groups, each once", () => {
  expect(parseStatuses("created, settled-*,open")).toEqual([
    "created",
    "settled-all-met",
    "settled-none-met",
    "settled-partial",
  ]);
  expect(parseStatuses("open,active,closed")?.sort()).toEqual([...STATUSES].sort());
});

test.each(["", "done", "created,", "settled-*x", "toString", "matched,done"])("rejects %j", (text) => {
  expect(parseStatuses(text)).toBeNull();
});

test("every status is produced by some phase", () => {
  for (const status of STATUSES) expect(phasesOf([status]), status).not.toEqual([]);
});
