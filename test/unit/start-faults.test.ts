/** A wrong address in the environment ends the start with one line that names the variable and no secret. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "viem";
import { afterAll, expect, it } from "vitest";
import { writeDeployment } from "../../src/chain/deployment.js";
import { ConfigError, parseConfig } from "../../src/config.js";
import { createDatabase, migrate } from "../../src/db/client.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";

const NOTHING_LISTENS = "127.0.0.1:1";
const dir = mkdtempSync(join(tmpdir(), "start-faults-"));
afterAll(() => rmSync(dir, { recursive: true }));

it("names DATABASE_URL if the database cannot be reached", async () => {
  const { pool } = createDatabase(`postgres://user:secret@${NOTHING_LISTENS}/none`, { maxConnections: 1 });
  const fault = await migrate(pool).catch((error: Error) => error);
  await pool.end();
  expect(fault).toBeInstanceOf(ConfigError);
  expect((fault as Error).message).toBe(
    `DATABASE_URL: cannot connect to the database (connect ECONNREFUSED ${NOTHING_LISTENS})`,
  );
});

it("names RPC_URL if the node cannot be reached", async () => {
  const address = (digit: string): Address => `0x${digit.repeat(40)}`;
  const path = join(dir, "deployment.json");
  writeDeployment(path, {
    chainId: 84_532,
    networkName: "base-sepolia",
    startBlock: 7,
    domain: "contracts.example",
    factory: address("a"),
    implementation: address("b"),
    relay: address("c"),
    delegation: address("d"),
    registry: address("e"),
    protocolToken: address("f"),
    asset: { address: address("1"), name: "Test USD", version: "2", decimals: 6, symbol: "TUSD" },
  });
  const config = parseConfig({
    DATABASE_URL: "postgres://localhost/none",
    RPC_URL: `http://${NOTHING_LISTENS}/key-of-the-node`,
    DEPLOYMENT: path,
    MASTER_KEY: "11".repeat(32),
  });
  const fault = await createService(config, { logger: createLogger("silent") }).catch(
    (error: Error) => error,
  );
  expect(fault).toBeInstanceOf(ConfigError);
  expect((fault as Error).message).toBe("RPC_URL: the node does not respond, or serves no Ethereum JSON-RPC");
});
