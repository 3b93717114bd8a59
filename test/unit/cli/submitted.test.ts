import fs, {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { submittedIn } from "@working-contracts/cli/files";
import { writeKeystore } from "@working-contracts/cli/keystore";
import { deliveriesKey } from "@working-contracts/client/session";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "submitted-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const ID = `0x${"1a".repeat(20)}` as const;
const [FIRST, SECOND, THIRD] = ["ab", "cd", "ef"].map((byte) => `0x${byte.repeat(32)}` as const) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
];
const KEY = `checkpoints/${ID}`;
const fileOf = (name: string): string => join(dir, `${name}.txt`);

it("what was submitted is read again, from a file that only its owner can read", async () => {
  const submitted = submittedIn(dir);
  expect(await submitted.read(KEY)).toEqual([]);
  for (const value of [FIRST, SECOND]) await submitted.add(KEY, value);
  await submitted.add("votes/0x1", ID);
  expect(await submitted.read(KEY)).toEqual([FIRST, SECOND]);
  expect(await submitted.read("votes/0x1")).toEqual([ID]);
  const text = `0x${"7b".repeat(500)}` as const;
  await submitted.add(deliveriesKey(ID), text);
  expect(await submitted.read(deliveriesKey(ID))).toEqual([text]);
  const modes = readdirSync(dir).map((file) => [file, statSync(join(dir, file)).mode & 0o777]);
  expect(modes.sort()).toEqual([
    [`${ID}.txt`, 0o600],
    [`deliveries-${ID}.txt`, 0o600],
    ["votes-0x1.txt", 0o600],
  ]);
});

it("a file that a full disk left empty keeps nothing, and no delivery back", async () => {
  writeFileSync(fileOf(ID), "");
  const submitted = submittedIn(dir);
  expect(await submitted.read(KEY)).toEqual([]);
  await submitted.add(KEY, FIRST);
  expect(readFileSync(fileOf(ID), "utf8")).toBe(`${FIRST}\n`);
});

it("a line that a crash truncated is left out, and does not spoil the next", async () => {
  const submitted = submittedIn(dir);
  for (const value of [FIRST, SECOND]) await submitted.add(KEY, value);
  truncateSync(fileOf(ID), statSync(fileOf(ID)).size - 10);
  expect(await submitted.read(KEY)).toEqual([FIRST]);
  await submitted.add(KEY, THIRD);
  expect(await submitted.read(KEY)).toEqual([FIRST, THIRD]);
});

it("a key and a vote are flushed to the disk when they are stored", async () => {
  const flushed = vi.spyOn(fs, "fsyncSync");
  await submittedIn(dir).add("votes/0x1", ID);
  expect(flushed).toHaveBeenCalledTimes(1);
  await writeKeystore(join(dir, "key.json"), FIRST, "password");
  expect(flushed).toHaveBeenCalledTimes(2);
  flushed.mockRestore();
});
