/** `npm run check`: everything that must hold beside the tests. Prints the output of what fails. */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureInstalled } from "./install.mjs";
import { checkProse } from "./prose.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BYTECODE = join(ROOT, "src/chain/bytecode.json");
const committedBytecode = readFileSync(BYTECODE, "utf8");
/** The lanes run side by side, the checks of a lane one after another: the generated files come from the compiled contracts. */
const LANES = {
  contracts: {
    "contracts compile": () => runBin("forge", "build", "contracts"),
    "Solidity format": () => runBin("forge", "fmt", "--check"),
    "Solidity lint": lintContracts,
    "src/chain/bytecode.json matches the contracts": checkBytecode,
    "packages/protocol/src/abi.ts matches the contracts": () => runBin("tsx", "tools/abi.ts", "--check"),
  },
  code: {
    "TypeScript format and lint (Biome)": () => runBin("biome", "ci", "--colors=off", "--error-on-warnings"),
    "TypeScript types": () => runBin("tsc", "-p", "."),
    "TypeScript types of the script in the pages": () => runBin("tsc", "-p", "src/pages/wallet"),
    "packages/client/src/api.ts matches the routes": () => runBin("tsx", "tools/openapi.ts", "--check"),
    "src/db/migrations matches the schema": () => runBin("tsx", "tools/migrations.ts", "--check"),
    "no dead code (knip)": () => runBin("knip", "--no-progress"),
    "plain English": async () => checkProse(),
  },
};

/** Starts all checks. Each lane resolves to the number of checks that failed. */
export function startChecks() {
  return { contracts: runLane("contracts"), code: runLane("code") };
}

async function runLane(lane) {
  let failed = 0;
  for (const [name, check] of Object.entries(LANES[lane])) {
    const fault = await check();
    console.log(`${fault === null ? "ok  " : "FAIL"}  ${name}${fault === null ? "" : `\n${fault}`}`);
    if (fault !== null) failed++;
  }
  return failed;
}

/** Tests that run beside the checks renew a file that is not of the sources. */
async function checkBytecode() {
  const fault = await runBin("tsx", "tools/bytecode.ts", "--check");
  if (fault !== null || readFileSync(BYTECODE, "utf8") === committedBytecode) return fault;
  return "src/chain/bytecode.json was not of these sources, and is renewed: commit it.";
}

/** `forge lint` succeeds with findings. docs/decisions.md says why these lints are off. */
async function lintContracts() {
  const off = ["block-timestamp", "incorrect-shift", "unsafe-typecast"];
  const args = ["lint", "contracts", "--json"];
  const env = { ...process.env, FOUNDRY_LINT_EXCLUDE_LINTS: JSON.stringify(off) };
  const { stderr, error } = spawnSync(join(ROOT, "node_modules/.bin/forge"), args, {
    cwd: ROOT,
    env,
    encoding: "utf8",
  });
  return error?.message ?? (stderr === "" ? null : stderr);
}

/** Resolves to the output of a command that failed, and to null if it succeeded. */
function runBin(command, ...args) {
  return new Promise((resolve) => {
    const child = spawn(join(ROOT, "node_modules/.bin", command), args, {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk) => {
        output += chunk;
      });
    }
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => resolve(code === 0 ? null : output));
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await ensureInstalled();
  // Not `exit`, which cuts off a long list of faults.
  const failed = await Promise.all(Object.values(startChecks()));
  process.exitCode = failed.every((count) => count === 0) ? 0 : 1;
}
