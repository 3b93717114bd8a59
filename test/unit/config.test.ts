import { describe, expect, it } from "vitest";
import { ConfigError, parseConfig, parseIndexerConfig, parsePonderSettings } from "../../src/config.js";

const complete = {
  DATABASE_URL: "postgres://user:password@localhost:5432/db",
  RPC_URL: "http://localhost:8545",
  DEPLOYMENT: "deployments/84532.json",
  MASTER_KEY: "AB".repeat(32),
};

it("needs four settings, and has a default for every other", () => {
  expect(parseConfig(complete)).toEqual({
    databaseUrl: complete.DATABASE_URL,
    databaseConnections: { api: 10, read: 10, work: 10 },
    statementTimeoutMs: 10_000,
    rpcUrl: complete.RPC_URL,
    deploymentPath: complete.DEPLOYMENT,
    roles: new Set(["api"]),
    relayerPrivateKeys: [],
    masterKey: `0x${"ab".repeat(32)}`,
    masterKeysOld: [],
    host: "127.0.0.1",
    port: 3000,
    baseUrl: "http://127.0.0.1:3000",
    environment: "test",
    minimumPrice: 10_000n,
    x402V1Bodies: false,
    confirmations: 1,
    maxFeePerGas: 500_000_000_000n,
    maxPriorityFeePerGas: 2_000_000_000n,
    maxBatchSize: 150,
    settlementWaitMs: 25_000,
    rateLimits: { reads: 300, writes: 60, anonymous: 60, challenges: 10, pages: 120 },
    gasPolicy: { allowance: 20_000_000, budget: 100_000_000, perFee: 33_000_000 },
    eventStreams: 2000,
    webhooksToPrivateAddresses: false,
    trustedProxies: 0,
    readiness: { maxHeadAge: 120, maxIndexLag: 30 },
    explorerUrl: undefined,
    walletNodeUrl: undefined,
    operatorKey: undefined,
    logLevel: "info",
  });
});

it("puts an IPv6 address in brackets in the default base URL", () => {
  expect(parseConfig({ ...complete, HOST: "::1" }).baseUrl).toBe("http://[::1]:3000");
});

it("counts an empty variable as absent", () => {
  expect(parseConfig({ ...complete, BASE_URL: "", PORT: "", RELAYER_PRIVATE_KEYS: "" })).toEqual(
    parseConfig(complete),
  );
});

it("gives an indexer its default port", () => {
  const { DATABASE_URL, RPC_URL, DEPLOYMENT } = complete;
  const expected = { databaseUrl: DATABASE_URL, rpcUrl: RPC_URL, deploymentPath: DEPLOYMENT, port: 42_069 };
  expect(parseIndexerConfig({ ...complete, INDEXER_PORT: "" })).toEqual(expected);
});

it("has an indexer, and the watch over it, read the indexer's own node if there is one", () => {
  const own = "http://node-of-the-indexer:8545";
  expect(parseIndexerConfig({ ...complete, PONDER_RPC_URL: own }).rpcUrl).toBe(own);
});

it("counts an indexer's empty variable as absent", () => {
  const names = ["REQUESTS_PER_SECOND", "POLLING_INTERVAL_MS", "RPC_URL", "WS_RPC_URL", "LOG_LEVEL"];
  const empty = Object.fromEntries(
    ["INDEXER_HOST", ...names.map((name) => `PONDER_${name}`)].map((name) => [name, ""]),
  );
  expect(parsePonderSettings(empty)).toEqual({
    host: "127.0.0.1",
    requestsPerSecond: 160,
    pollingIntervalMs: 250,
    ponderLogLevel: "warn",
  });
});

it("reads lists, flags and numbers", () => {
  const config = parseConfig({
    ...complete,
    RELAYER_PRIVATE_KEYS: ` 0x${"11".repeat(32)}, ${"22".repeat(32)} `,
    X402_V1_BODIES: "true",
    PORT: "0",
    BASE_URL: "https://contracts.example/",
    RATE_LIMIT_READS: "0",
  });
  expect(config.relayerPrivateKeys).toEqual([`0x${"11".repeat(32)}`, `0x${"22".repeat(32)}`]);
  expect(config.x402V1Bodies).toBe(true);
  expect(config.port).toBe(0);
  expect(config.baseUrl).toBe("https://contracts.example");
  expect(config.rateLimits.reads).toBe(0);
});

describe("a faulty environment", () => {
  const faultsOf = (
    env: Record<string, string | undefined>,
    parse: (given: typeof env) => object = parseConfig,
  ) => {
    try {
      parse(env);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as Error).message.split("\n");
    }
    throw new Error("was accepted");
  };

  it("gets every fault reported at once, one per line", () => {
    expect(
      faultsOf({
        ...{ PORT: "70000", WC_ENV: "prod", RPC_URL: "localhost", CONFIRMATIONS: "1.5" },
        ...{ MAX_BATCH_OPERATIONS: "0" },
        ...{ ROLES: "relayer", RELAYER_PRIVATE_KEYS: " ", BASE_URL: "contracts.example" },
      }).sort(),
    ).toEqual([
      "BASE_URL: must be a URL starting with http:// or https://",
      "CONFIRMATIONS: must be a whole number",
      "DATABASE_URL: is required",
      "DEPLOYMENT: is required",
      "MASTER_KEY: is required",
      "MAX_BATCH_OPERATIONS: must be at least 1",
      "PORT: must be at most 65535",
      "RELAYER_PRIVATE_KEYS: is required by the role relayer (keys of accounts that the Relay allows as signers)",
      "RPC_URL: must be a URL starting with http:// or https://",
      "WC_ENV: must be live or test",
    ]);
  });

  it("has neither keys that sign nothing nor a password in its own URL, and shows neither", () => {
    const env = {
      ...complete,
      ...{ RELAYER_PRIVATE_KEYS: `${"11".repeat(32)},${"ff".repeat(32)}` },
      ...{ BASE_URL: "https://user:password@contracts.example" },
    };
    expect(faultsOf(env).sort()).toEqual([
      "BASE_URL: must have no user name, password, query or fragment",
      "RELAYER_PRIVATE_KEYS: must be a private key of the curve secp256k1",
    ]);
  });

  it("gets every fault reported at once also if it is an indexer's", () => {
    const faulty = {
      ...{ DATABASE_URL: "", INDEXER_PORT: "any", PONDER_LOG_LEVEL: "loud", PONDER_RPC_URL: "localhost" },
      ...{ PONDER_POLLING_INTERVAL_MS: "abc", PONDER_REQUESTS_PER_SECOND: "0" },
    };
    expect(faultsOf(faulty, parseIndexerConfig).sort()).toEqual([
      "DATABASE_URL: is required",
      "DEPLOYMENT: is required",
      "INDEXER_PORT: must be a whole number",
      "PONDER_LOG_LEVEL: must be error, warn, info, debug or trace",
      "PONDER_POLLING_INTERVAL_MS: must be a whole number",
      "PONDER_REQUESTS_PER_SECOND: must be at least 1",
      "PONDER_RPC_URL: must be a URL starting with http:// or https://",
      "RPC_URL: is required",
    ]);
  });

  it("never has its values repeated, because they can be secrets", () => {
    const faults = faultsOf({
      ...complete,
      MASTER_KEY: "my-secret",
      RELAYER_PRIVATE_KEYS: "key-one,key-two",
      DATABASE_URL: "mysql://user:hunter2@host/db",
    }).join("\n");
    expect(faults).toMatch(/MASTER_KEY: must be 32 bytes in hex/);
    expect(faults).not.toMatch(/my-secret|key-one|key-two|hunter2/);
  });
});
