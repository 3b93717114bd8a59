/** A wrong setting ends the start with one line that names it, says what to change, and repeats no secret. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { writeDeployment } from "../../src/chain/deployment.js";
import { ConfigError, parseConfig } from "../../src/config.js";
import { createDatabase, migrate } from "../../src/db/client.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { readSettings } from "../../tools/local/settings.js";
import { exampleDeployment } from "../support/deployment.js";

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
    "a bad database URL",
    { DATABASE_URL: "localhost" },
    "DATABASE_URL: must be a URL starting with postgres:// or postgresql://",
  ],
  [
    "a bad node URL",
    { RPC_URL: "127.0.0.1:8545" },
    "RPC_URL: must be a URL starting with http:// or https://",
  ],
  ["a node that cannot be reached", {}, "RPC_URL: the node does not respond, or serves no Ethereum JSON-RPC"],
  [
    "a relayer without signers",
    { ROLES: "relayer", RELAYER_PRIVATE_KEYS: " " },
    "RELAYER_PRIVATE_KEYS: is required by the role relayer (keys of accounts that the Relay allows as signers)",
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

it("works in a path with a space", () => {
  const data = join(dir, "my data");
  mkdirSync(data);
  expect(readSettings({ DATA_DIR: data }).dir).toBe(data);
  expect(parseConfig(complete).deploymentPath).toBe(path);
});
