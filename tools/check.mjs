/** `npm run check`: everything that must hold besides the tests. Prints the output of what fails. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureInstalled } from "./install.mjs";
import { checkProse } from "./prose.mjs";
import { isMain, ROOT, runBin, TSC } from "./run.mjs";

const BYTECODE = join(ROOT, "src/chain/bytecode.json");
const committedBytecode = readFileSync(BYTECODE, "utf8");
/** The lanes run side by side, the checks of a lane one after another: the generated files come from the compiled contracts. */
const LANES = {
  contracts: {
    // Includes all that needs the optimizer, so that it runs once, before the tests.
    "contracts compile": () => faultOf("forge", "build", "contracts", "test/contracts/harness"),
    "Solidity format": () => faultOf("forge", "fmt", "--check"),
    "Solidity lint": lintContracts,
    "ABI, known code and bytecode (tools/abi.ts) match the contracts": checkCompiled,
  },
  code: {
    "TypeScript format and lint (Biome)": () => faultOf("biome", "ci", "--colors=off", "--error-on-warnings"),
    "TypeScript types": () => typeFaults("."),
    "TypeScript types of the script in the pages": () => typeFaults("src/pages/wallet"),
    "packages/client/src/api.ts matches the routes": () => faultOf("tsx", "tools/openapi.ts", "--check"),
    "src/db/migrations matches the schema": () => faultOf("tsx", "tools/migrations.ts", "--check"),
    "no dead code (knip)": () => faultOf("knip", "--no-progress"),
    "plain English": async () => checkProse(),
  },
};

/** Starts all checks. Each lane resolves to the number of checks that failed. */
export function startChecks() {
  return { contracts: runLane(LANES.contracts), code: runLane(LANES.code) };
}

export async function runLane(lane) {
  let failed = 0;
  for (const [name, check] of Object.entries(lane)) {
    const fault = await check().catch(({ message }) => message);
    console.log(`${fault === null ? "ok  " : "FAIL"}  ${name}${fault === null ? "" : `\n${fault}`}`);
    if (fault !== null) failed++;
  }
  return failed;
}

/** Tests that run in parallel regenerate the file if it does not match. */
async function checkCompiled() {
  const fault = await faultOf("tsx", "tools/abi.ts", "--check");
  if (fault !== null || readFileSync(BYTECODE, "utf8") === committedBytecode) return fault;
  return "src/chain/bytecode.json did not match the contracts and has been regenerated: commit it.";
}

/** `forge lint` succeeds with findings. docs/build.md says why these lints are off. */
async function lintContracts() {
  const off = ["block-timestamp", "incorrect-shift", "unsafe-typecast"];
  const env = { FOUNDRY_LINT_EXCLUDE_LINTS: JSON.stringify(off) };
  const { stderr } = await runBin("forge", ["lint", "contracts", "--json"], { env });
  return stderr === "" ? null : stderr;
}

/** On one thread: each further one repeats work of the others. */
const typeFaults = (project) => faultOf(TSC, "-p", project, "--singleThreaded");

/** Resolves to the output of a command that failed, and to null if it succeeded. */
async function faultOf(command, ...args) {
  const { code, stdout, stderr } = await runBin(command, args);
  return code === 0 ? null : stdout + stderr;
}

if (isMain(import.meta)) {
  await ensureInstalled();
  // Not `exit`, which cuts off a long list of faults.
  const failed = await Promise.all(Object.values(startChecks()));
  process.exitCode = failed.every((count) => count === 0) ? 0 : 1;
}
