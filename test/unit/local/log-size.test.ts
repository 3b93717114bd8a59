import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { setAside } from "../../../tools/local/main.js";

const dir = mkdtempSync(join(tmpdir(), "log-size-"));
afterAll(() => rmSync(dir, { recursive: true }));

test("a log above its maximum size is set aside, and only the last one is kept", () => {
  const path = join(dir, "service.log");
  setAside(path, 10);
  writeFileSync(path, "0123456789");
  setAside(path, 10);
  expect(existsSync(`${path}.old`)).toBe(false);
  for (const text of ["the first log", "the second log"]) {
    writeFileSync(path, text);
    setAside(path, 10);
    expect(existsSync(path)).toBe(false);
    expect(readFileSync(`${path}.old`, "utf8")).toBe(text);
  }
});
