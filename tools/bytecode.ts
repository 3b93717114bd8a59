/** Writes src/chain/bytecode.json from the compiled contracts; with --check only compares, and fails on drift. */
import { readFileSync, writeFileSync } from "node:fs";
import { BYTECODE_PATH, compiledBytecode } from "./local/foundry.js";

const text = compiledBytecode();
if (!process.argv.includes("--check")) {
  writeFileSync(BYTECODE_PATH, text);
} else if (readFileSync(BYTECODE_PATH, "utf8") !== text) {
  console.error(
    "src/chain/bytecode.json differs from the compiled contracts: run `npm run abi` and commit it.",
  );
  process.exit(1);
}
