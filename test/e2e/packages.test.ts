/** The published packages: packed, installed outside the repository, and used there as their READMEs say. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../../src/root.js";
import { clientProgram, DEFAULT_URL } from "../support/packages.js";
import { runProcess } from "../support/run-process.js";
import { useSandboxed } from "../support/sandboxed.js";
import { codeBlocks } from "../support/text-blocks.js";
import { useWorld } from "../support/world.js";

const TSC = join(ROOT, "node_modules/typescript-native/bin/tsc");
const MAX_PACKAGES = 20;
const MAX_CODE_BYTES = 107_000;

const world = await useWorld();
const service = await useSandboxed(world);
const dirs: string[] = [];
afterAll(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
});

/** By command: both READMEs build the packages in the clone with the same one. */
const builds = new Map<string, Promise<void>>();

/** A new folder into which the commands of the package's README install it, as they stand. */
async function install(name: "client" | "cli"): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), `${name}-`));
  dirs.push(dir);
  writeFileSync(join(dir, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const [commands = ""] = codeBlocks(readFileSync(join(ROOT, "packages", name, "README.md"), "utf8"), "sh");
  const env = { CLONE: ROOT, npm_config_prefix: dir, npm_config_prefer_offline: "true" };
  const execute = async (command: string): Promise<void> => {
    const options = { cwd: dir, env, timeoutMs: 280_000 };
    const { code, stderr } = await runProcess("bash", ["-euc", command], options);
    expect(code, stderr).toBe(0);
  };
  const [build = "", ...others] = commands.split("\n");
  if (!builds.has(build)) builds.set(build, execute(build));
  await builds.get(build);
  await execute(others.join("\n"));
  return dir;
}

/**
 * The parts of programs in the README as one that begins like its quick start: they follow, settle and verify a contract
 * that was delivered.
 */
function partsProgram(home: string, rpcUrl: string): string {
  const readme = readFileSync(join(home, "README.md"), "utf8");
  const [start = ""] = (codeBlocks(readme, "js")[0] ?? "").split("await agent.approve(id);");
  const [receive, verify, call, settle, ...others] = codeBlocks(readme, "js part");
  expect(others).toEqual([]);
  const secret = `whsec_${randomBytes(24).toString("base64")}`;
  const body = JSON.stringify({ id: "1", type: "contract.settled" });
  const now = new Date(Date.now());
  const headers = {
    "webhook-id": "1",
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("1", now, body),
  };
  const given = { secret, body, request: { headers }, rpcUrl, anotherRpcUrl: rpcUrl };
  const setBalance = {
    jsonrpc: "2.0",
    id: 1,
    method: "anvil_setBalance",
    params: ["ACCOUNT", "0xde0b6b3a7640000"],
  };
  return `import { onChain, verifyWebhook } from "@working-contracts/client";
${start.replaceAll(DEFAULT_URL, service.url)}
const { ${Object.keys(given).join(", ")} } = ${JSON.stringify(given)};
await fetch(rpcUrl, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: ${JSON.stringify(JSON.stringify(setBalance))}.replace("ACCOUNT", account.address),
});
{ ${settle} }
console.log("paid", await agent.waitForPayout(id).then(({ status }) => status));
{ ${verify} console.log("equal", equal, Object.keys(fields).length > 10, steps.length > 3); }
{ ${call} console.log("ledger", JSON.stringify(data)); }
{ ${receive} console.log("event", event.type); }
`;
}

async function run(dir: string, file: string, source: string) {
  writeFileSync(join(dir, file), source);
  return runProcess(process.execPath, [file], { cwd: dir });
}

describe.concurrent("the client's package", () => {
  let dir: string;
  let home: string;
  beforeAll(async () => {
    dir = await install("client");
    home = join(dir, "node_modules/@working-contracts/client");
  }, 300_000);

  it(`brings at most ${MAX_PACKAGES} packages and ${MAX_CODE_BYTES} bytes of code`, () => {
    const { packages } = JSON.parse(readFileSync(join(dir, "node_modules/.package-lock.json"), "utf8"));
    expect(Object.keys(packages).length).toBeLessThanOrEqual(MAX_PACKAGES);
    const files = readdirSync(home, { recursive: true, encoding: "utf8" });
    const code = files
      .filter((file) => /\.[cm]?js$/.test(file))
      .map((file) => statSync(join(home, file)).size);
    expect(code.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MAX_CODE_BYTES);
  });

  it("cites no rule by a number that only the repository explains", () => {
    const files = readdirSync(home, { recursive: true, encoding: "utf8" });
    const code = files.filter((file) => /\.(js|ts)$/.test(file));
    expect(code.filter((file) => file.endsWith(".d.ts"))).not.toEqual([]);
    expect(code.filter((file) => readFileSync(join(home, file), "utf8").includes("docs/rules"))).toEqual([]);
  });

  it("is loaded by import and by require", async () => {
    const use = "console.log([typeof connect, typeof privateKeyToAccount].join());";
    const names = "{ connect, privateKeyToAccount }";
    for (const [file, load] of [
      ["esm.mjs", `import ${names} from "@working-contracts/client";`],
      ["common.cjs", `const ${names} = require("@working-contracts/client");`],
    ] as const) {
      expect(await run(dir, file, `${load}\n${use}`)).toMatchObject({
        code: 0,
        stdout: "function,function\n",
      });
    }
  });

  it("runs its README from a new key to payout, and follows the events", { timeout: 300_000 }, async () => {
    writeFileSync(join(dir, "quickstart.mjs"), clientProgram(dir, service.url));
    const { code, stdout, stderr } = await runProcess("node", ["quickstart.mjs"], {
      cwd: dir,
      timeoutMs: 200_000,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("posting costs 50.0");
    expect(stdout).toContain("worker-pay 47.5 to the worker");
    expect(stdout).toContain("contract.settled");
  });

  it("runs the parts of programs in its README", { timeout: 300_000 }, async () => {
    const { code, stdout, stderr } = await run(dir, "parts.mjs", partsProgram(home, world.info.rpcUrl));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      /^paid settled-all-met\nequal true true true\nledger {.*\nevent contract.settled$/m,
    );
  });

  it("has types that resolve in the strictest project", async () => {
    const options = { module: "nodenext", strict: true, exactOptionalPropertyTypes: true, types: [] };
    const compilerOptions = { ...options, lib: ["es2022", "dom"], noEmit: true, skipLibCheck: false };
    writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
    const program = `
import { connect, type Contract, generatePrivateKey, onChain, PaymentRejected, privateKeyToAccount, Reverted, ServiceError, verifyWebhook } from "@working-contracts/client";
const account = privateKeyToAccount(generatePrivateKey());
const agent = await connect({ baseUrl: "http://localhost", account });
const { status }: Contract = await agent.accept("0x");
const isMatched: boolean = status === "matched";
// @ts-expect-error Not a status.
const isWrong: boolean = status === "match";
try {
  const { data } = await agent.call("GET /v1/contracts/{id}/ledger", { path: { id: "0x" } });
  const balance: string | null = data.balance;
} catch (error) {
  if (error instanceof ServiceError && error.code === "not_found") throw error;
  // @ts-expect-error Not an error code.
  if (error instanceof ServiceError && error.code === "missing") throw error;
  if (error instanceof PaymentRejected && error.reason === "insufficient_funds") throw error;
  // @ts-expect-error Not a reason.
  if (error instanceof PaymentRejected && error.reason === "insufficient") throw error;
  if (error instanceof Reverted && error.errorName === "WrongStatus") throw error;
  // @ts-expect-error Not an error of the contracts.
  if (error instanceof Reverted && error.errorName === "WrongState") throw error;
}
// @ts-expect-error Not a status.
await agent.waitFor("0x", "matchd");`;
    writeFileSync(join(dir, "program.ts"), program);
    // The compiler that `npm install typescript` installs now; the nightly run uses the one before it as well.
    const compiled = await runProcess(process.execPath, [process.env.PACKAGES_TSC ?? TSC, "-p", "."], {
      cwd: dir,
      timeoutMs: 280_000,
    });
    expect(compiled).toMatchObject({ code: 0, stdout: "" });
  }, 300_000);
});

describe.concurrent("the command line's package", () => {
  let dir: string;
  let home: string;
  beforeAll(async () => {
    dir = await install("cli");
    home = join(dir, "lib/node_modules/@working-contracts/cli");
  }, 300_000);

  it("runs its README from a new key to a posted contract", { timeout: 300_000 }, async () => {
    const settings = join(dir, "settings");
    const PATH = `${join(dir, "bin")}:${process.env.PATH}`;
    const env = { PATH, TMPDIR: dir, XDG_CONFIG_HOME: settings };
    const [, block = ""] = codeBlocks(readFileSync(join(home, "README.md"), "utf8"), "sh");
    const program = block.replaceAll(DEFAULT_URL, service.url);
    const { code, stdout, stderr } = await runProcess("bash", ["-euc", program], {
      cwd: dir,
      env,
      timeoutMs: 200_000,
    });
    expect({ code, stdout }, stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/created\s.*Summarise a paper/),
    });
    // Whoever tries it keeps the real settings.
    expect(existsSync(settings)).toBe(false);
  });

  it("installs a command that explains itself and shadows no other", async () => {
    const ours = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
    expect(ours.bin).toEqual({ wcontract: "wcontract.mjs" });
    const help = await runProcess(join(dir, "bin/wcontract"), ["--help"], { cwd: dir });
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toMatch(/^Usage: wcontract/);
    const version = await runProcess(join(dir, "bin/wcontract"), ["--version"], { cwd: dir });
    expect(version).toEqual({ code: 0, stderr: "", stdout: `${ours.version}\n` });
  });

  it("exits silently if its output pipe closes", async () => {
    const pipe = `set -o pipefail; "${join(dir, "bin/wcontract")}" --help | head -n 0`;
    expect(await runProcess("bash", ["-c", pipe])).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});
