import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../src/root.js";

/** Writes a generated file that is committed. With --check it only compares, and fails on drift. */
export function writeGenerated(
  path: string,
  text: string,
  { from, command }: { from: string; command: string },
): void {
  const file = join(ROOT, path);
  if (!process.argv.includes("--check")) {
    writeFileSync(file, text);
  } else if (readFileSync(file, "utf8") !== text) {
    console.error(`${path} differs from ${from}: run \`${command}\` and commit the result.`);
    process.exit(1);
  }
}
