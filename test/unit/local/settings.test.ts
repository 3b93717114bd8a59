import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readSettings } from "../../../tools/local/settings.js";

const parent = mkdtempSync(join(tmpdir(), "settings-"));
afterAll(() => rmSync(parent, { recursive: true }));
const found = {
  databaseUrl: "postgres://127.0.0.1/x",
  rpcUrl: "http://127.0.0.1:8545",
  wsRpcUrl: "ws://127.0.0.1:8545",
  deploymentPath: "/tmp/deployment.json",
  port: 3001,
};

describe("the settings of npm start", () => {
  it("need nothing for a local network, and keep its secret readable only by its owner", () => {
    const dir = join(parent, "local");
    const settings = readSettings({ DATA_DIR: dir });
    const config = settings.serviceConfig(found);
    expect(config.relayerPrivateKeys).toHaveLength(2);
    expect(config.baseUrl).toBe("http://127.0.0.1:3001");
    expect(config.walletNodeUrl).toBe(found.rpcUrl);
    expect(settings.remoteChain).toBeUndefined();
    expect(statSync(join(dir, "secret")).mode & 0o777).toBe(0o600);
    expect(readSettings({ DATA_DIR: dir }).serviceConfig(found).masterKey).toBe(config.masterKey);
  });

  it("refuse a secret that was not written to its end: it would make keys that everyone knows", () => {
    const dir = join(parent, "cut off");
    mkdirSync(dir);
    writeFileSync(join(dir, "secret"), "");
    expect(() => readSettings({ DATA_DIR: dir })).toThrow(
      `DATA_DIR: ${join(dir, "secret")} does not hold the secret that was written to it. Restore the file, or delete it and run \`npm start -- --reset\``,
    );
  });

  it("give each folder a separate master key", () => {
    const keys = ["one", "two"].map(
      (name) => readSettings({ DATA_DIR: join(parent, name) }).serviceConfig(found).masterKey,
    );
    expect(keys[0]).not.toBe(keys[1]);
  });

  it("take precedence over the local defaults if given", () => {
    const masterKey = `0x${"ab".repeat(32)}`;
    const settings = readSettings({
      DATA_DIR: join(parent, "given"),
      MASTER_KEY: masterKey,
      CONFIRMATIONS: "9",
    });
    expect(settings.serviceConfig(found)).toMatchObject({ masterKey, confirmations: 9 });
  });

  it("name every fault, and then write nothing", () => {
    const dir = join(parent, "faulty");
    const faulty = { PORT: "many", LOG_LEVEL: "loud", PONDER_POLLING_INTERVAL_MS: "abc" };
    expect(() => readSettings({ DATA_DIR: dir, ...faulty })).toThrow(
      [
        "PORT: must be a whole number",
        "LOG_LEVEL: must be a pino level",
        "PONDER_POLLING_INTERVAL_MS: must be a whole number",
      ].join("\n"),
    );
    expect(existsSync(dir)).toBe(false);
  });

  it("require keys and addresses for an existing chain", () => {
    expect(() => readSettings({ RPC_URL: "http://127.0.0.1:8545" })).toThrow(
      [
        "RELAYER_PRIVATE_KEYS: is required with RPC_URL (keys of accounts that the Relay allows as signers)",
        "DEPLOYMENT: is required with RPC_URL (the file that `npm run deploy` wrote)",
        "MASTER_KEY: is required",
      ].join("\n"),
    );
    expect(() => readSettings({ RPC_URL: "http://127.0.0.1:8545", DEPLOYMENT: "/nowhere.json" })).toThrow(
      "DEPLOYMENT: file not found: /nowhere.json",
    );
  });

  it("use the given database and chain", () => {
    const deploymentPath = join(parent, "deployment.json");
    writeFileSync(deploymentPath, "{}");
    const settings = readSettings({
      DATA_DIR: join(parent, "remote"),
      DATABASE_URL: "postgres://db.example/x",
      RPC_URL: "https://rpc.example",
      DEPLOYMENT: deploymentPath,
      RELAYER_PRIVATE_KEYS: `0x${"11".repeat(32)}`,
      MASTER_KEY: "22".repeat(32),
    });
    expect(settings.databaseUrl).toBe("postgres://db.example/x");
    expect(settings.serviceConfig(found).walletNodeUrl).toBeUndefined();
    expect(settings.remoteChain).toEqual({
      rpcUrl: "https://rpc.example",
      wsRpcUrl: undefined,
      deploymentPath,
    });
  });
});
