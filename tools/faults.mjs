/** `npm run test:faults`. `-- --repeat N` uses N seeds, `-- --mutants [name…]` switches mechanisms off; others go to vitest. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { MUTANTS } from "../test/faults/support/mutants.mjs";
import { ensureInstalled } from "./install.mjs";
import { ROOT, runBin, runVitest, TSC } from "./run.mjs";

const COPIED = [
  ...["cache", "contracts", "out", "packages", "src", "test", "tools"],
  ...["foundry.toml", "package.json", "package-lock.json", "ponder.config.ts", "tsconfig.json"],
  "vitest.config.ts",
];

await ensureInstalled();
const args = process.argv.slice(2);
process.exit(args[0] === "--mutants" ? await runMutants(args.slice(1)) : await repeat(args));

async function repeat(all) {
  const at = all.indexOf("--repeat");
  const times = at < 0 ? 1 : Number(all[at + 1]);
  const rest = at < 0 ? all : all.toSpliced(at, 2);
  let passed = 0;
  for (let run = 1; run <= times; run++) {
    const seed = process.env.FAULT_SEED ?? String(Date.now() % 1_000_000);
    console.log(`\n== run ${run} of ${times}, FAULT_SEED=${seed}`);
    const startedAt = performance.now();
    const env = { FAULT_SEED: seed };
    const { code } = await runBin("vitest", ["run", "--project", "faults", ...rest], {
      env,
      stdio: "inherit",
    });
    if (code === 0) passed++;
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.log(
      `\n== run ${run} of ${times} ${code === 0 ? "passed" : "FAILED"} in ${seconds} s, FAULT_SEED=${seed}`,
    );
  }
  console.log(`\n${passed} of ${times} runs passed`);
  return passed === times ? 0 : 1;
}

async function runMutants(names) {
  const unknown = names.filter((name) => !Object.hasOwn(MUTANTS, name));
  if (unknown.length > 0) throw new Error(`No such mutant: ${unknown.join(", ")}`);
  const chosen = names.length === 0 ? Object.keys(MUTANTS) : names;
  const survivors = [];
  for (const name of chosen) {
    const mutant = MUTANTS[name];
    console.log(`\n== mutant ${name}: ${mutant.tests} -t "${mutant.only}"`);
    const result = await isKilled(mutant).then(
      (killed) => (killed ? "noticed" : "SURVIVED"),
      (error) => `NOT RUN (${error.message})`,
    );
    console.log(`   ${name}: ${result}`);
    if (result !== "noticed") survivors.push(name);
  }
  console.log(`\n${chosen.length - survivors.length} of ${chosen.length} mutants noticed`);
  return survivors.length === 0 ? 0 : 1;
}

/** Runs the mutant's tests on a copy of the sources. Throws if no test ran, because that proves nothing. */
async function isKilled({ file, edits, tests, only }) {
  const copy = mkdtempSync(join(tmpdir(), "mutant-"));
  try {
    for (const name of COPIED.filter((one) => existsSync(join(ROOT, one)))) {
      // The stock clients' packages are large, and no mutant's tests need them.
      const filter = (path) => basename(path) !== "node_modules";
      cpSync(join(ROOT, name), join(copy, name), { recursive: true, filter });
    }
    linkModules(copy);
    for (const [from, to, edited = file] of edits) {
      const path = join(copy, edited);
      const source = readFileSync(path, "utf8");
      if (source.split(from).length !== 2)
        throw new Error(`${edited} does not contain exactly once: ${from}`);
      writeFileSync(path, source.split(from).join(to));
    }
    if (edits.some(([, , edited = file]) => edited.startsWith("contracts/"))) await renewCompiled(copy);
    await requireRunning(copy);
    // A test's folder has its project's name.
    const [, project] = tests.split("/");
    const args = ["--project", project, "--reporter=default", tests, "-t", only];
    const { report } = await runVitest(args, { cwd: copy, stdio: "inherit" });
    const { numFailedTests = 0, numPassedTests = 0 } = report ?? {};
    if (numFailedTests + numPassedTests === 0) throw new Error("the mutant's tests did not run");
    return numFailedTests > 0;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Its types can be wrong, but code that crashes fails every test. The cache is the original's, so it stays untouched. */
async function requireRunning(copy) {
  const uncached = ["--incremental", "false", "--tsBuildInfoFile", "null"];
  const { stdout } = await runBin(TSC, ["-p", copy, "--singleThreaded", ...uncached]);
  const [crash] = stdout.match(/.*error TS(2304|2345|2552): .*/) ?? [];
  if (crash !== undefined) throw new Error(`the mutant crashes: ${crash}`);
}

/** Compiles the copy's contracts, and lets its client know their code: it refuses any other. */
async function renewCompiled(copy) {
  for (const [program, ...args] of [
    ["forge", "build", "contracts"],
    ["tsx", "tools/abi.ts"],
  ]) {
    const { code, stdout, stderr } = await runBin(program, args, { cwd: copy });
    if (code !== 0) throw new Error(`${program} failed: ${stdout}${stderr}`);
  }
}

/** Links the installed packages, but the copy's own workspaces, because a mutant can edit them. */
function linkModules(copy) {
  const modules = join(copy, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name !== "@working-contracts") symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
  mkdirSync(join(modules, "@working-contracts"));
  for (const name of readdirSync(join(ROOT, "packages"), { withFileTypes: true })) {
    if (!name.isDirectory()) continue;
    symlinkSync(join(copy, "packages", name.name), join(modules, "@working-contracts", name.name));
  }
}
