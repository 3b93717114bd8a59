/** Production loads nothing from the local network: neither its sandbox nor its keys. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const IMPORT = /(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+|@working-contracts\/[^"]+)"/g;

/** A package import by name, excluding paths, workspaces, and Node's and Ponder's modules. */
const PACKAGE =
  /^(?:import|export)[^"]*? from "((?!@working-contracts\/)(?:@[^"/]+\/)?[^"./:][^"/:]*)(?:\/[^"]*)?"/gm;

function importsOf(path: string): string[] {
  const source = readFileSync(path, "utf8");
  return [...source.matchAll(IMPORT)].map(([, name = ""]) => {
    const [, workspace, module] = /^@working-contracts\/(\w+)\/(.*)$/.exec(name) ?? [];
    return sourceOf(
      workspace === undefined
        ? resolve(dirname(path), name)
        : join(ROOT, "packages", workspace, "src", `${module}.js`),
    );
  });
}

/** The source of an import, which uses the name of the compiled file. */
function sourceOf(path: string): string {
  const stem = path.replace(/\.js$/, "");
  for (const candidate of [`${stem}.ts`, `${stem}.tsx`, path]) {
    try {
      readFileSync(candidate);
      return candidate;
    } catch {
      // Try the next candidate.
    }
  }
  throw new Error(`No source file for ${path}`);
}

const isTool = (path: string): boolean => path.startsWith("tools/");

function reachedFrom(entry: string): string[] {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    if (/\.tsx?$/.test(path)) for (const next of importsOf(path)) visit(next);
  };
  visit(join(ROOT, entry));
  return [...reached].map((path) => relative(ROOT, path));
}

const ENTRIES = [
  "src/commands/serve.ts",
  "src/commands/indexer.ts",
  "src/commands/operator.ts",
  "src/commands/migrate.ts",
  "src/indexer/ponder.config.ts",
];

test("the walk covers the whole service", () => {
  expect(reachedFrom("src/commands/serve.ts").length).toBeGreaterThan(100);
});

test.each(ENTRIES)("%s reaches no tool, and no workspace except the protocol", (entry) => {
  const reached = reachedFrom(entry);
  expect(reached.length).toBeGreaterThan(2);
  expect(reached.filter((path) => isTool(path) || /^packages\/(?!protocol\/)/.test(path))).toEqual([]);
});

test.each(ENTRIES)("%s needs no package that the image leaves out", (entry) => {
  const dockerfile = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8");
  expect(dockerfile).toContain("npm ci --omit=dev --ignore-scripts --workspace=packages/protocol");
  const installed = ["package.json", "packages/protocol/package.json"].flatMap((path) =>
    Object.keys(JSON.parse(readFileSync(join(ROOT, path), "utf8")).dependencies),
  );
  const packages = reachedFrom(entry).flatMap((path) =>
    [...readFileSync(join(ROOT, path), "utf8").matchAll(PACKAGE)].map(([, name = ""]) => name),
  );
  for (const name of packages) expect(installed).toContain(name);
});

test("npm start reaches the sandbox, so the walk can find it", () => {
  expect(reachedFrom("tools/local/main.ts")).toContain("tools/local/sandbox/sandbox.ts");
});

test("no module of the service or of a package imports a tool", () => {
  const sources = ["src", "packages"].flatMap((room) =>
    readdirSync(join(ROOT, room), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.tsx?$/.test(path) && !path.includes("dist/"))
      .map((path) => join(ROOT, room, path)),
  );
  const offenders = sources.filter((path) => importsOf(path).some((one) => isTool(relative(ROOT, one))));
  expect(offenders.map((path) => relative(ROOT, path))).toEqual([]);
});
