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

/** A table in Markdown; columns of numbers are aligned to the right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = rows.map((row) => row.map((cell) => String(cell ?? "")));
  const isNumeric = (column: number) => cells.every((row) => /^[\d.,]*$/.test(row[column] ?? ""));
  const marks = head.map((_, column) => (isNumeric(column) ? "---:" : "---"));
  return [head, marks, ...cells].map((row) => `| ${row.join(" | ")} |`).join("\n");
}
