/** A wrong setting ends the start with one line that names it, says what to change, and repeats no secret. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPublicClient, http } from "viem";
import { afterAll, expect, it } from "vitest";
import { writeDeployment } from "../../src/chain/deployment.js";
import { ConfigError, parseConfig } from "../../src/config.js";
import { createDatabase, migrate } from "../../src/db/client.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { describe as describeFault } from "../../tools/local/main.js";
import { readSettings } from "../../tools/local/settings.js";
import { exampleDeployment } from "../support/deployment.js";
import { runProgram } from "../support/programs.js";
import { json, startFakeNode } from "./chain/node.js";

const NOTHING_LISTENS = "127.0.0.1:1";
const dir = mkdtempSync(join(tmpdir(), "start faults "));
afterAll(() => rmSync(dir, { recursive: true }));

const path = join(dir, "deployment.json");
writeDeployment(path, exampleDeployment);
const torn = join(dir, "torn.json");
writeFileSync(torn, "{");
const complete = {
  DATABASE_URL: `postgres://user:secret@${NOTHING_LISTENS}/none`,
  RPC_URL: `http://${NOTHING_LISTENS}/key-of-the-node`,
  DEPLOYMENT: path,
  MASTER_KEY: "11".repeat(32),
};

async function lineOf(start: () => unknown): Promise<string> {
  const fault = await Promise.resolve()
    .then(start)
    .catch((error: Error) => error);
  expect(fault).toBeInstanceOf(ConfigError);
  return (fault as Error).message;
}

it.each<[what: string, settings: Record<string, string>, line: string]>([
  [
    "a node that cannot be reached",
    {},
    "RPC_URL: the node does not respond, or does not serve Ethereum JSON-RPC",
  ],
  [
    "an empty signer",
    { RELAYER_PRIVATE_KEYS: `0x${"11".repeat(32)},0x` },
    "RELAYER_PRIVATE_KEYS: must be 32 bytes in hex",
  ],
  [
    "a missing deployment file",
    { DEPLOYMENT: join(dir, "none.json") },
    `DEPLOYMENT: cannot read the file (ENOENT: no such file or directory, open '${join(dir, "none.json")}')`,
  ],
  [
    "a folder in place of the deployment file",
    { DEPLOYMENT: dir },
    "DEPLOYMENT: cannot read the file (EISDIR: illegal operation on a directory, read)",
  ],
  ["a truncated deployment file", { DEPLOYMENT: torn }, `DEPLOYMENT: ${torn}: not valid JSON`],
])("the service refuses %s", async (_, settings, line) => {
  const start = () =>
    createService(parseConfig({ ...complete, ...settings }), { logger: createLogger("silent") });
  expect((await lineOf(start)).split("\n")).toEqual([expect.stringContaining(line)]);
});

it.concurrent.each([
  ["https://other.example/", true],
  [`https://${exampleDeployment.domain}`, false],
  ["http://127.0.0.1:3000", false],
])("warns that clients cannot sign in at a URL that is not the deployment's: %s", async (url, warns) => {
  const lines: string[] = [];
  const logger = createLogger("warn", { write: (line) => void lines.push(line) });
  await createService(parseConfig({ ...complete, BASE_URL: url, ROLES: "api" }), { logger }).catch(() => {});
  expect(lines.filter((line) => line.includes("clients cannot sign in"))).toHaveLength(warns ? 1 : 0);
});

it("names DATABASE_URL if the database cannot be reached", async () => {
  const { pool } = createDatabase(complete.DATABASE_URL, { maxConnections: 1 });
  expect(await lineOf(() => migrate(pool))).toBe(
    `DATABASE_URL: cannot connect to the database (connect ECONNREFUSED ${NOTHING_LISTENS})`,
  );
  await pool.end();
});

it("names DATA_DIR if the folder cannot be written", async () => {
  // For root, no folder is read-only.
  const inside = join(path, "data");
  expect(await lineOf(() => readSettings({ DATA_DIR: inside }))).toMatch(
    `DATA_DIR: cannot write to ${inside} (`,
  );
});

/** A node that names its chain, and then is out of its quota. */
const busyNode = await startFakeNode((response, [call]) => {
  if (call?.method === "eth_chainId") json(response, { jsonrpc: "2.0", id: call.id, result: "0x2105" });
  else response.writeHead(429).end();
});
afterAll(() => busyNode.stop());
const busyUrl = `${busyNode.url}/v2/key-of-the-node`;

/** `npm run deploy` with settings that are right but for the node. */
const deploy = (env: Record<string, string>) =>
  runProgram("tools/deploy.ts", [], {
    RPC_URL: busyUrl,
    DEPLOYER_PRIVATE_KEY: `0x${"11".repeat(32)}`,
    NETWORK: "base-sepolia",
    SIGNERS: `0x${"22".repeat(20)}`,
    DOMAIN: "contracts.example",
    DEPLOYMENT: join(dir, "8453.json"),
    ...env,
  });

it("a deployment over a failing node ends without the node's key", { timeout: 60_000 }, async () => {
  const { code, stdout, stderr } = await deploy({});
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("HTTP request failed.");
  expect(stderr).not.toContain("key-of-the-node");
});

it("refuses to deploy for a domain that is no host, and with parameters that the factory would refuse", async () => {
  const domains = ["https://contracts.example", "contracts.example/", "Contracts.example", "a.example:443"];
  const PARAMETERS = '{"baEligibilityStake":999}';
  for (const { code, stderr } of await Promise.all(domains.map((DOMAIN) => deploy({ DOMAIN, PARAMETERS })))) {
    expect(code).toBe(1);
    expect(stderr).toMatch(/^DOMAIN: must be a host in lower case/);
    expect(stderr).toContain("\nPARAMETERS: baEligibilityStake must be from 1000 to 4294967295\n");
  }
});

it.each([false, true])(
  "npm start reports a failing node without its key; with DEBUG: %s",
  async (isDebug) => {
    const node = createPublicClient({ transport: http(busyUrl, { retryCount: 0 }) });
    const error: unknown = await node.getBlockNumber().catch((thrown: unknown) => thrown);
    const text = describeFault(error, isDebug);
    expect(text).toContain("HTTP request failed.\n\nStatus: 429\n");
    expect(text).not.toContain("key-of-the-node");
    expect(/^ *at /m.test(text)).toBe(isDebug);
  },
);
