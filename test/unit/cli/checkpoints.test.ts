import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkpointsIn } from "@working-contracts/cli/commands/on-chain";
import { afterAll, expect, it } from "vitest";

const dir = mkdtempSync(join(tmpdir(), "checkpoints-"));
afterAll(() => rmSync(dir, { recursive: true }));

const HASHES = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(32)}`];
const ONE = { contractId: "0x1", fromSequence: 0, merkleRoot: "0x2", data: { uptime: 1 } };
const TWO = { ...ONE, fromSequence: 5 };

function read(text: string) {
  const path = join(dir, "file");
  writeFileSync(path, text);
  return checkpointsIn(path);
}

it.each([
  ["one hash a line", `${HASHES.join("\n")}\n`, HASHES],
  ["a list", JSON.stringify([ONE, TWO]), [ONE, TWO]],
  ["a response of the service", JSON.stringify({ data: [ONE, TWO], nextCursor: null }), [ONE, TWO]],
  ["one checkpoint", JSON.stringify(ONE), [ONE]],
])("a file has %s", (_name, text, found) => {
  expect(read(text)).toEqual(found);
});

it.each([
  ["one page of several", { data: [ONE], nextCursor: "x" }],
  ["the result of another tool", { items: [ONE], nextCursor: null }],
  ["checkpoints as they are submitted", [{ ...ONE, contractId: undefined }]],
  ["metrics", { uptime: 1 }],
])("%s is refused", (_name, json) => {
  expect(() => read(JSON.stringify(json))).toThrow("neither all checkpoints");
});
