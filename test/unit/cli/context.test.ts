/** Commands at a service that this process plays, and their messages. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EXIT_HELP } from "@working-contracts/cli/errors";
import { writePrivateJson } from "@working-contracts/cli/files";
import { run } from "@working-contracts/cli/main";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { account, NETWORK, quoted } from "../client/fake-service.js";

const URL_ = NETWORK.baseUrl;
const ID = `0x${"11".repeat(20)}`;
const PATH = "/v1/agents/me/stake";
let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "context-"));
  const signIn = { apiKey: "key", operator: "none", network: NETWORK };
  writePrivateJson(join(cwd, "api-keys.json"), { [`${URL_} ${account.address.toLowerCase()}`]: signIn });
});
afterEach(() => {
  vi.unstubAllGlobals();
  rmSync(cwd, { recursive: true });
});

/** Runs a command at a service that quotes a stake, and takes it. */
async function command(...args: string[]) {
  const requests: string[] = [];
  const answers: Record<string, () => Response> = {
    "/v1/network": () => Response.json({ data: { ...NETWORK, time: new Date().toISOString() } }),
    "/v1/agents/me/api-keys": () => Response.json({ data: [], nextCursor: null }),
    "/v1/protocol": () => Response.json({ data: { baEligibilityStake: "1000.0" } }),
  };
  vi.stubGlobal("fetch", async (input: string, { headers, method = "GET" }: RequestInit = {}) => {
    const { pathname } = new URL(input);
    requests.push(`${method} ${pathname}`);
    if (pathname !== PATH) return answers[pathname]?.() ?? Response.json({}, { status: 404 });
    if (new Headers(headers).has("payment-signature")) return Response.json({ data: { staked: "1.0" } });
    const token = { asset: NETWORK.protocolToken, extra: { name: "Token", version: "1" } };
    return quoted(PATH, { ...token, payTo: NETWORK.registry, amount: String(10n ** 21n) });
  });
  const output = { stdout: "", stderr: "" };
  const code = await run(args, {
    env: { WC_URL: URL_, WC_CONFIG_DIR: cwd, WC_PRIVATE_KEY: `0x${"17".repeat(32)}` },
    cwd,
    stdout: (text) => (output.stdout += text),
    stderr: (text) => (output.stderr += text),
  });
  return { code, requests, ...output };
}

it("a stake without consent names how to consent, which a limit of the stablecoin does not", async () => {
  const { code, stderr } = await command("--max-pay", "1000", "stake");
  expect([code, stderr]).toEqual([
    4,
    expect.stringContaining("name the amount (stake <amount>), or pass --yes"),
  ]);
  expect((await command("stake", "1000")).code).toBe(0);
});

it("a receipt that cannot be stored is reported, and the payment counts", async () => {
  mkdirSync(join(cwd, "receipts.jsonl"));
  const { code, stderr } = await command("stake", "1000");
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/paid, but the receipt could not be stored: EISDIR/),
  ]);
});

it("a receipt that a crash cut off is one fault among the others", async () => {
  writeFileSync(join(cwd, "receipts.jsonl"), '{"at":"2030\n{"offer":null}\n');
  const { code, stdout, stderr } = await command("--json", "receipts", "check");
  const faults = [expect.stringContaining("JSON"), "the service signed no offer"];
  expect(JSON.parse(stdout)).toMatchObject(faults.map((fault) => ({ keys: [], fault })));
  expect([code, stderr]).toEqual([1, expect.stringContaining("2 of 2 receipts prove nothing")]);
});

it.each([
  ["--deployment", ["--deployment", "none", "--rpc-url", "http://127.0.0.1:9", "verify", ID]],
  [
    "--checkpoints",
    ["--rpc-url", "http://127.0.0.1:9", "on-chain", "deliver", ID, "a", "--checkpoints", "none"],
  ],
  ["--copy", ["--rpc-url", "http://127.0.0.1:9", "show", ID, "--copy", "none"]],
  ["receipts", ["receipts", "check", "none"]],
])("a file of %s that does not exist is wrong usage", async (_, args) => {
  const { code, stderr } = await command(...args);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^wcontract: Cannot read none: ENOENT/)]);
});

it("no API key is made if it cannot be saved, or if the record of sign-ins is something else", async () => {
  const file = join(cwd, "api-keys.json");
  writeFileSync(file, "{}");
  writeFileSync(`${file}.lock`, "");
  const locked = await command("list");
  expect(locked.stderr).toContain("api-keys.json.lock is held");
  rmSync(`${file}.lock`);
  writeFileSync(file, "[]");
  const other = await command("list");
  expect(other.stderr).toBe(`wcontract: ${file} is not a record of sign-ins. Repair or delete it.\n`);
  expect([...locked.requests, ...other.requests]).toEqual([]);
});

it("the help says that a repeated stake pays again, as a post does", () => {
  expect(EXIT_HELP).toContain("a post and a stake pay each time");
});
