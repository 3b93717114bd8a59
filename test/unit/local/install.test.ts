/** A project behind a symlink, with a package, a development package and a binary, which the copied script installs. */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT } from "../../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { packagesOfStart } from "../../../tools/install.mjs";
import { runProcess } from "../../support/run-process.js";

const real = mkdtempSync(join(tmpdir(), "install-"));
const dir = `${real}-link`;
symlinkSync(real, dir);
const { PATH = "", HOME = "" } = process.env;
const env = { PATH, HOME, npm_config_offline: "true", npm_config_cache: join(dir, "cache") };
afterAll(() => {
  for (const path of [dir, real]) rmSync(path, { recursive: true });
});

beforeAll(async () => {
  for (const folder of ["tools", "packages/protocol", "packages/client", "packed/package"]) {
    mkdirSync(join(dir, folder), { recursive: true });
  }
  const write = (path: string, content: object) => writeFileSync(join(dir, path), JSON.stringify(content));
  for (const name of ["needed", "development", "optional"]) {
    // Like a binary.
    const platform = name === "optional" ? { os: [process.platform] } : {};
    write("packed/package/package.json", { name, version: "1.0.0", ...platform });
    await runProcess("tar", ["czf", `${name}.tgz`, "package"], { cwd: join(dir, "packed") });
  }
  const workspaces = ["packages/protocol", "packages/client", "tools"];
  for (const path of workspaces) {
    write(`${path}/package.json`, { name: path.replaceAll("/", "-"), version: "1.0.0" });
  }
  write("package.json", {
    name: "project",
    version: "1.0.0",
    workspaces,
    dependencies: { needed: "file:packed/needed.tgz" },
    devDependencies: { development: "file:packed/development.tgz" },
    optionalDependencies: { optional: "file:packed/optional.tgz" },
  });
  for (const script of ["tools/install.mjs", "tools/run.mjs"])
    copyFileSync(join(ROOT, script), join(dir, script));
  writeFileSync(join(dir, "tools/build.mjs"), "export const ensureBuilt = () => {};");
  const script = 'import("./tools/install.mjs").then((m) => m.ensureInstalled({ development: false }))';
  writeFileSync(join(dir, "start.mjs"), script);
  await runProcess("npm", ["install", "--package-lock-only", "--no-audit"], { cwd: dir, env });
}, 60_000);

const installed = () =>
  readdirSync(join(dir, "node_modules")).filter((name) => /^(needed|dev|opt)/.test(name));

it.each([
  ["tools/install.mjs", { NODE_ENV: "production" }, ["development", "needed", "optional"]],
  ["tools/install.mjs", { npm_config_omit: "dev" }, ["development", "needed", "optional"]],
  ["start.mjs", { npm_config_optional: "false" }, ["needed", "optional"]],
  ["start.mjs", { npm_execpath: "/usr/share/yarn/bin/yarn.js" }, ["needed", "optional"]],
])("%s installs what it needs under %j", { timeout: 60_000 }, async (script, settings, names) => {
  rmSync(join(dir, "node_modules"), { recursive: true, force: true });
  const { code, stderr } = await runProcess("node", [join(dir, script)], {
    cwd: dir,
    env: { ...env, ...settings },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(installed()).toEqual(names);
});

it("names the packages that npm left out", { timeout: 60_000 }, async () => {
  rmSync(join(dir, "node_modules"), { recursive: true, force: true });
  // An npm that does nothing, successfully.
  const npm = join(dir, "npm-cli.js");
  writeFileSync(npm, "");
  const { code, stderr } = await runProcess("node", [join(dir, "tools/install.mjs")], {
    cwd: dir,
    env: { ...env, npm_execpath: npm },
  });
  expect(code).toBe(1);
  expect(stderr).toContain(
    "did not install node_modules/development, node_modules/needed, node_modules/optional.",
  );
});

it("names a binary that npm silently skipped, and installs it at the next start", {
  timeout: 60_000,
}, async () => {
  for (const name of ["node_modules", "cache"]) rmSync(join(dir, name), { recursive: true, force: true });
  const tarball = join(dir, "packed/optional.tgz");
  const start = () => runProcess("node", [join(dir, "start.mjs")], { cwd: dir, env });
  renameSync(tarball, `${tarball}.aside`);
  const skipped = await start();
  renameSync(`${tarball}.aside`, tarball);
  expect(skipped.stderr).toContain("npm reported success, but did not install node_modules/optional.");
  expect(skipped.code).toBe(1);
  expect(await start()).toMatchObject({ code: 0, stderr: "" });
  expect(installed()).toEqual(["needed", "optional"]);
});

const nodeIs = (version: string) =>
  `Object.defineProperty(process.versions, "node", { value: "${version}" });`;

it.each([
  ["Node.js 20.18.3", nodeIs("20.18.3"), /^Node.js 20.19, 22.12 or later is required; this is 20.18.3.\n$/],
  ["Node.js 22.11.0", nodeIs("22.11.0"), /^Node.js 20.19, 22.12 or later is required; this is 22.11.0.\n$/],
  [
    "musl",
    'Object.defineProperty(process, "platform", { value: "linux" }); process.report.getReport = () => ({ header: {} });',
    /need glibc.* use Debian/,
  ],
])("refuses %s with a reason", async (_, change, reason) => {
  const module = `data:text/javascript,${encodeURIComponent(change)}`;
  const args = ["--import", module, join(dir, "tools/install.mjs")];
  const { code, stderr } = await runProcess("node", args, { cwd: dir, env });
  expect(stderr).toMatch(reason);
  expect(code).toBe(1);
});

it("leaves npm start at most 350 packages to install", () => {
  expect(packagesOfStart().length).toBeLessThanOrEqual(350);
});
