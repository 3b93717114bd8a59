/** Bundles the packages and the service's programs into `dist`, if needed. `--publish` writes whole packages. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { build } from "esbuild";
import { isMain, ROOT, TSC } from "./run.mjs";

const PACKAGES = join(ROOT, "packages");
const PAGES = join(ROOT, "src/pages");
const SOURCES = [
  ...["protocol/src", "client/src", "cli/src"].map((path) => join(PACKAGES, path)),
  join(PAGES, "wallet"),
];
/** Other people's packages are installed beside a published bundle; our workspaces become part of it. */
const PACKAGE = { packages: "external", platform: "neutral" };
/** Entry module and bundle of each published package, and of the script with which a wallet acts from the pages. */
const BUNDLES = [
  {
    entry: join(PACKAGES, "client/src/index.ts"),
    outfile: join(PACKAGES, "client/dist/index.js"),
    ...PACKAGE,
    // Every later part needs the first, which otherwise is split by what each of them uses of it.
    inject: [join(PACKAGES, "client/src/index.ts")],
    splitting: true,
    format: "esm",
    minify: true,
  },
  {
    entry: join(PACKAGES, "cli/src/main.ts"),
    outfile: join(PACKAGES, "cli/dist/main.js"),
    ...PACKAGE,
    // Otherwise what one command imports from other packages is loaded with every command.
    splitting: true,
    format: "esm",
  },
  {
    entry: join(PAGES, "wallet/main.ts"),
    outfile: join(PAGES, "dist/wallet.js"),
    platform: "browser",
    format: "esm",
    splitting: true,
    minify: true,
  },
];

export const SERVICE = join(ROOT, "dist/service");
/** The programs of a network: the entry module of what a process runs, by its name in `SERVICE`. */
export const PROGRAMS = {
  ...Object.fromEntries(
    ["serve", "indexer", "migrate", "operator"].map((name) => [name, `src/commands/${name}.ts`]),
  ),
  local: "tools/local/main.ts",
};
/** Everything that the programs are made of, but what Ponder and the pages' bundler write. */
const PROGRAM_SOURCES = [
  "src",
  "packages/protocol/src",
  "packages/client/src",
  "tools/local",
  "tools/build.mjs",
];

export async function ensureBuilt() {
  await bundlePackages();
  await ensurePrograms();
}

/** Several processes can call it at the same moment. */
export async function ensurePrograms() {
  const record = join(SERVICE, "sources.sha256");
  const sources = hashOfSources();
  const isCurrent =
    existsSync(record) &&
    readFileSync(record, "utf8") === sources &&
    Object.keys(PROGRAMS).every((name) => existsSync(join(SERVICE, `${name}.mjs`)));
  if (isCurrent) return;
  // An interrupted build must not pass for that of earlier sources.
  rmSync(record, { force: true });
  await bundlePrograms(PROGRAMS, SERVICE);
  writeFileSync(record, sources);
}

/** Times say little: an unpacked release can be older than the bundle that it replaces. */
function hashOfSources() {
  const files = PROGRAM_SOURCES.flatMap((path) => filesIn(join(ROOT, path)));
  const modules = files.filter((file) => /(?<!\.d)\.(?:tsx?|mjs)$/.test(file)).sort();
  const hash = createHash("sha256");
  for (const file of modules) hash.update(relative(ROOT, file)).update(readFileSync(file));
  // The installed packages, by npm's own record.
  hash.update(readFileSync(join(ROOT, "node_modules/.package-lock.json")));
  return hash.digest("hex");
}

/** Writes each program with all packages that it imports as one file, which starts in a fraction of the time. */
export async function bundlePrograms(programs, dir) {
  const { outputFiles } = await build({
    entryPoints: Object.entries(programs).map(([out, entry]) => ({ in: join(ROOT, entry), out })),
    outdir: dir,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "hono/jsx",
    outExtension: { ".js": ".mjs" },
    sourcemap: "linked",
    sourcesContent: false,
    // It reads a file beside its own.
    external: ["tiny-secp256k1"],
    // CommonJS packages in an ES module.
    banner: {
      js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
    },
    plugins: [sourceUrls(dir)],
    logLevel: "error",
    write: false,
  });
  mkdirSync(dir, { recursive: true });
  // Other processes can start from these files meanwhile.
  for (const { path, contents } of outputFiles) {
    const part = `${path}.${process.pid}`;
    writeFileSync(part, contents);
    renameSync(part, path);
  }
}

/** Modules still find their assets beside their own source, wherever the repository is. */
const sourceUrls = (dir) => ({
  name: "source-urls",
  setup({ onLoad }) {
    onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
      if (path.includes("node_modules")) return;
      const source = await readFile(path, "utf8");
      const url = `new URL(${JSON.stringify(relative(dir, path))}, import.meta.url).href`;
      return {
        contents: source.replaceAll("import.meta.url", url),
        loader: path.endsWith("x") ? "tsx" : "ts",
      };
    });
  },
});

async function bundlePackages() {
  const sources = [...SOURCES.flatMap(filesIn), join(ROOT, "package-lock.json")];
  const newestSource = Math.max(...sources.map(timeOf));
  for (const { entry, outfile, ...options } of BUNDLES) {
    if (timeOf(outfile) >= newestSource) continue;
    const to = dirname(outfile);
    // Elsewhere: a build that is interrupted must not pass as complete.
    const outdir = join(ROOT, "dist", `new-${process.pid}`);
    rmSync(outdir, { recursive: true, force: true });
    await build({
      entryPoints: [{ in: entry, out: basename(outfile, ".js") }],
      outdir,
      bundle: true,
      ...options,
      alias: Object.fromEntries(
        ["protocol", "client"].map((name) => [`@working-contracts/${name}`, join(PACKAGES, name, "src")]),
      ),
      target: "es2022",
      logLevel: "error",
    });
    if (options.splitting) dropBareImports(outdir);
    rmSync(to, { recursive: true, force: true });
    renameSync(outdir, to);
  }
}

/** Removes imports of chunks for their side effects. They have none, and users' bundlers warn of each. */
function dropBareImports(dir) {
  for (const file of filesIn(dir))
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(/import ?"\.\/[^"]+";\n?/g, ""));
}

/** Writes the packages as they are published, each into its folder in `to`. Declarations take most of the time. */
export async function writePackages(to, { declarations = true } = {}) {
  await ensureBuilt();
  const [client, cli] = ["client", "cli"].map((name) => join(to, name));
  writePackage("client", client, {
    files: ["*.js", "types", "CHANGELOG.md"],
    exports: { ".": { types: "./types/client/src/index.d.ts", default: "./index.js" } },
  });
  cpSync(join(PACKAGES, "client/dist"), client, { recursive: true });
  if (declarations) writeTypes(join(client, "types"));
  writePackage("cli", cli, {
    files: ["*.js", "wcontract.mjs", "CHANGELOG.md"],
    bin: { wcontract: "wcontract.mjs" },
  });
  cpSync(join(PACKAGES, "cli/dist"), cli, { recursive: true });
  const bin = readFileSync(join(PACKAGES, "cli/bin/wcontract.mjs"), "utf8");
  writeFileSync(join(cli, "wcontract.mjs"), bin.replace("../dist/", "./"), { mode: 0o755 });
}

/** The manifest without what only this repository needs, and the texts that belong to every package. */
function writePackage(name, to, entries) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const from = join(PACKAGES, name);
  const manifest = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
  for (const field of ["private", "devDependencies", "exports"]) delete manifest[field];
  const whole = { ...manifest, ...entries, ...repositoryOf(name) };
  writeFileSync(join(to, "package.json"), `${JSON.stringify(whole, null, 2)}\n`);
  for (const text of ["README.md", "CHANGELOG.md"]) copyFileSync(join(from, text), join(to, text));
  copyFileSync(join(ROOT, "LICENSE"), join(to, "LICENSE"));
}

/** npm attests where a package comes from only if its manifest names the repository whose CI publishes it. */
function repositoryOf(name) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  if (repository === undefined) return {};
  return {
    repository: { type: "git", url: `git+${server}/${repository}.git`, directory: `packages/${name}` },
  };
}

/** Declarations of the client and of what it uses of the protocol; imports between the two become relative. */
function writeTypes(to) {
  const compiled = `${to}-compiled`;
  const options = ["--emitDeclarationOnly", "--outDir", compiled, "--singleThreaded"];
  const { status } = spawnSync(process.execPath, [TSC, "-p", "packages", ...options], {
    cwd: ROOT,
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("The client's declarations do not compile");
  const written = new Set();
  const write = (path) => {
    if (written.has(path)) return;
    written.add(path);
    const text = readFileSync(join(compiled, path), "utf8")
      .replaceAll(/"@working-contracts\/protocol\/([\w/-]+)"/g, (_, module) =>
        JSON.stringify(relative(dirname(path), `protocol/src/${module}.js`)),
      )
      // The package does not contain the rules.
      .replaceAll(/(?:\n \*)? \(docs\/rules\.md [^)]*\)/g, "");
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), text);
    for (const [, module] of text.matchAll(/"(\.{1,2}\/[\w./-]+)\.js"/g))
      write(join(dirname(path), `${module}.d.ts`));
  };
  write("client/src/index.d.ts");
  rmSync(compiled, { recursive: true, force: true });
}

/** Time of the last change in milliseconds; 0 if there is no such file. */
function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)));
}

if (isMain(import.meta)) {
  await ensureBuilt();
  if (process.argv.includes("--publish")) await writePackages(join(ROOT, "dist"));
}
