/**
 * Bundles the packages that users install into their `dist/` folders, each with the workspaces it is made of. Does
 * nothing if `dist/` is newer than its sources. Runs after `npm ci` and before every start and test. `--publish` makes
 * each `dist/` the whole package, ready for `npm pack` and `npm publish`: manifest, declarations, README, license.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PACKAGES = join(ROOT, "packages");
const SOURCES = ["protocol/src", "client/src", "cli/src"].map((path) => join(PACKAGES, path));
/** Entry module and bundle of each published package. */
const BUNDLES = [
  { entry: "client/src/index.ts", outfile: "client/dist/index.js" },
  { entry: "cli/src/main.ts", outfile: "cli/dist/main.js" },
];

export async function ensureBuilt() {
  const newestSource = Math.max(...SOURCES.flatMap(filesIn).map(timeOf));
  for (const { entry, outfile } of BUNDLES) {
    const file = join(PACKAGES, outfile);
    if (timeOf(file) >= newestSource) continue;
    await build({
      entryPoints: [join(PACKAGES, entry)],
      outfile: file,
      bundle: true,
      // Other people's packages are installed beside this one; our own workspaces become part of it.
      packages: "external",
      alias: Object.fromEntries(
        ["protocol", "client"].map((name) => [`@working-contracts/${name}`, join(PACKAGES, name, "src")]),
      ),
      platform: "neutral",
      target: "es2022",
      logLevel: "error",
    });
  }
}

/** Declarations of the client and of the protocol that it contains; imports between the two become relative. */
function buildTypes() {
  const compiled = join(ROOT, "node_modules/.cache/types");
  rmSync(compiled, { recursive: true, force: true });
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const options = ["--emitDeclarationOnly", "--outDir", compiled];
  const { status } = spawnSync(process.execPath, [tsc, "-p", "packages", ...options], {
    cwd: ROOT,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
  const types = join(PACKAGES, "client/dist/types");
  for (const source of ["client", "protocol"].flatMap((name) => filesIn(join(compiled, name)))) {
    const target = join(types, relative(compiled, source));
    const text = readFileSync(source, "utf8").replaceAll(
      /"@working-contracts\/protocol\/([\w/-]+)"/g,
      (_, module) => JSON.stringify(relative(dirname(target), join(types, "protocol/src", `${module}.js`))),
    );
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

/** The manifest without what only this repository needs, and the texts that belong to every package. */
function writePackage(name, entries) {
  const [from, to] = [join(PACKAGES, name), join(PACKAGES, name, "dist")];
  const manifest = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
  for (const field of ["private", "devDependencies", "exports", "files"]) delete manifest[field];
  writeFileSync(join(to, "package.json"), `${JSON.stringify({ ...manifest, ...entries }, null, 2)}\n`);
  for (const text of ["README.md", "CHANGELOG.md"]) copyFileSync(join(from, text), join(to, text));
  copyFileSync(join(ROOT, "LICENSE"), join(to, "LICENSE"));
  rmSync(join(to, `${name === "cli" ? "main" : "index"}.js.map`), { force: true });
}

/** Time of the last change in milliseconds; 0 if there is no such file. */
function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await ensureBuilt();
  if (process.argv.includes("--publish")) {
    buildTypes();
    writePackage("client", {
      exports: { ".": { types: "./types/client/src/index.d.ts", default: "./index.js" } },
    });
    writePackage("cli", { bin: { wcontract: "wcontract.mjs" } });
    const bin = readFileSync(join(PACKAGES, "cli/bin/wcontract.mjs"), "utf8");
    const mode = 0o755;
    writeFileSync(join(PACKAGES, "cli/dist/wcontract.mjs"), bin.replace("../dist/", "./"), { mode });
  }
}
