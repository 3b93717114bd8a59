/**
 * Each folder imports only what the table in docs/architecture.md lists. Production loads nothing from the local
 * network: neither its sandbox nor its keys.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
/** An import of this repository's own modules. Bundles are none. */
const IMPORT =
  /(?:from|import|require)\s*\(?\s*"((?!\.\.\/(?:\.\.\/)*dist\/)\.{1,2}\/[^"]+|@working-contracts\/[^"]+)"/g;

/** A package import by name, excluding paths, workspaces, and Node's and Ponder's modules. */
const PACKAGE =
  /^(?:import|export)[^"]*? from "((?!@working-contracts\/)(?:@[^"/]+\/)?[^"./:][^"/:]*)(?:\/[^"]*)?"/gm;

function importsOf(path: string): string[] {
  const source = readFileSync(path, "utf8");
  return [...source.matchAll(IMPORT)].map(([, name = ""]) => {
    const [, workspace, module = "index"] = /^@working-contracts\/(\w+)(?:\/(.*))?$/.exec(name) ?? [];
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

const EXTENSION = /\.(?:tsx?|[cm]?js)$/;
/** Paths of all modules outside `test`. */
const SOURCES = ["src", "packages", "tools"]
  .flatMap((room) =>
    readdirSync(join(ROOT, room), { recursive: true, encoding: "utf8" }).map((path) => `${room}/${path}`),
  )
  .filter((path) => EXTENSION.test(path) && !/\/(?:dist|node_modules)\//.test(path))
  .concat("ponder.config.ts");

interface Row {
  folders: string[];
  mayImport: string[];
}

/** The table in docs/architecture.md. `relayer/{outbox,limits}` stands for both modules. */
const ROWS = readFileSync(join(ROOT, "docs/architecture.md"), "utf8")
  .split("May import (of this repository) |\n| --- | --- | --- |\n")[1]
  ?.split("\n\n")[0]
  ?.split("\n")
  .map((line): Row => {
    const [folders = [], , mayImport = []] = line
      .split(/^\| | \| | \|$/)
      .slice(1)
      .map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
    return {
      folders: folders.map((path) => path.replace("/<feature>", "")),
      mayImport: mayImport.flatMap((name) => {
        const [, folder, modules] = /^(.*)\{(.*)\}$/.exec(name) ?? [];
        return modules?.split(",").map((module) => `${folder}${module}`) ?? name;
      }),
    };
  }) as Row[];

const isIn = (path: string, folder: string): boolean =>
  path.replace(EXTENSION, "") === folder.replace(EXTENSION, "") || path.startsWith(`${folder}/`);
/** Whether the table means this module by this name: `config`, `relayer`, `relayer/outbox` or `protocol`. */
const isNamed = (path: string, name: string): boolean =>
  [name, `src/${name}`, `packages/${name}`].some((folder) => isIn(path, folder));

/** The row with the longest path to this module: `src/pages/wallet` before `src/pages`. */
function rowOf(path: string): Row {
  const depth = ({ folders }: Row): number =>
    Math.max(0, ...folders.filter((folder) => isIn(path, folder)).map((folder) => folder.length));
  const row = ROWS.toSorted((a, b) => depth(b) - depth(a))[0] as Row;
  if (depth(row) === 0) throw new Error(`No row of the table in docs/architecture.md has ${path}`);
  return row;
}

/** Every import that crosses from one row of the table to another, or to a folder that has none. */
const crossings = SOURCES.flatMap((from) =>
  importsOf(join(ROOT, from))
    .map((target) => ({ row: rowOf(from), from, to: relative(ROOT, target) }))
    .filter(({ row, to }) => to.startsWith("test/") || rowOf(to) !== row),
);

test("each folder imports only what the table in docs/architecture.md lists", () => {
  const offenders = crossings.filter(({ row, to }) => !row.mayImport.some((name) => isNamed(to, name)));
  expect(offenders.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
});

test.each(ROWS)("$folders.0 imports all that the table lists for it", (row) => {
  const unused = row.mayImport.filter(
    (name) => !crossings.some((crossing) => crossing.row === row && isNamed(crossing.to, name)),
  );
  expect(unused).toEqual([]);
});

test("no module of the service or of a package imports a tool", () => {
  const sources = SOURCES.filter((path) => !isTool(path));
  const offenders = sources.filter((path) =>
    importsOf(join(ROOT, path)).some((one) => isTool(relative(ROOT, one))),
  );
  expect(offenders).toEqual([]);
});
