/**
 * Compiles the packages that users install into their `dist/` folders, together with the workspaces they are made of.
 * Does nothing if `dist/` is newer than its sources. Runs after `npm ci` and before every start and test.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PACKAGES = join(ROOT, "packages");
const COMPILED = join(ROOT, "node_modules/.cache/packages");
/** The workspaces that each published package contains. */
const CONTENTS = { client: ["client", "protocol"], cli: ["cli", "client", "protocol"] };
const SOURCES = ["protocol/src", "client/src", "cli/src", "tsconfig.json"].map((path) =>
  join(PACKAGES, path),
);

/** Whether every `dist/` is newer than all sources. */
export function isBuilt() {
  const newestSource = Math.max(...SOURCES.flatMap(filesIn).map((file) => statSync(file).mtimeMs));
  return Object.keys(CONTENTS).every((name) => {
    const mark = markOf(name);
    return existsSync(mark) && newestSource <= statSync(mark).mtimeMs;
  });
}

export function ensureBuilt() {
  if (isBuilt()) return;
  rmSync(COMPILED, { recursive: true, force: true });
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", "packages"], { cwd: ROOT, stdio: "inherit" });
  if (status !== 0) process.exit(1);
  for (const [name, workspaces] of Object.entries(CONTENTS)) {
    const dist = join(PACKAGES, name, "dist");
    rmSync(dist, { recursive: true, force: true });
    for (const workspace of workspaces) copyCompiled(workspace, dist);
    writeFileSync(markOf(name), "");
  }
}

/** Copies a compiled workspace; imports of another workspace become relative, as it is in the same folder. */
function copyCompiled(workspace, dist) {
  const source = join(COMPILED, workspace);
  for (const file of filesIn(source)) {
    const target = join(dist, workspace, relative(source, file));
    const text = readFileSync(file, "utf8").replaceAll(
      /"@working-contracts\/(\w+)\/([\w/-]+)"/g,
      (_, name, module) => {
        const path = relative(dirname(target), join(dist, name, "src", `${module}.js`));
        return JSON.stringify(path.startsWith(".") ? path : `./${path}`);
      },
    );
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

const markOf = (name) => join(PACKAGES, name, "dist", ".built");

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => filesIn(join(path, entry.name)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) ensureBuilt();
