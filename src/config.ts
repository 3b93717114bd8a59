/** The service's settings, parsed once from the environment. */
import { isIPv6 } from "node:net";
import { isPrivate } from "tiny-secp256k1";
import { hexToBytes, parseGwei, parseUnits } from "viem";
import { z } from "zod";

const hex32 = z
  .string("is required")
  .regex(/^(0x)?[0-9a-fA-F]{64}$/, "must be 32 bytes in hex")
  .transform((text): `0x${string}` => `0x${text.replace(/^0x/, "").toLowerCase()}`);

/** 32 bytes in hex, with or without `0x`, from which a signer can be made. */
export const privateKey = hex32.refine(
  (key) => isPrivate(hexToBytes(key)),
  "must be a private key of the curve secp256k1",
);

/** Comma-separated. */
const listOf = (key: typeof hex32) =>
  z
    .string()
    .default("")
    .transform((list) =>
      list
        .split(",")
        .map((text) => text.trim())
        .filter((text) => text !== ""),
    )
    .pipe(z.array(key));

const wholeNumber = (fallback: number, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}) =>
  z
    .string()
    .regex(/^\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
    .default(fallback);

const flag = z
  .enum(["true", "false", "1", "0"], "must be true or false")
  .transform((text) => text === "true" || text === "1")
  .default(false);

const url = (...protocols: string[]) =>
  z
    .string("is required")
    .refine(
      (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol),
      `must be a URL starting with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`,
    );

const databaseUrl = url("postgres:", "postgresql:");
export const httpUrl = url("http:", "https:");
const socketUrl = url("ws:", "wss:");

/** The roles of a process. Each role can run in any number of processes. */
const ROLES = ["api", "relayer", "worker"] as const;
type Role = (typeof ROLES)[number];

const roleList = z
  .string()
  .transform((list) => list.split(",").map((role) => role.trim()))
  .pipe(z.array(z.enum(ROLES, `must be a comma-separated list of ${ROLES.join(", ")}`)).min(1))
  .transform((roles): ReadonlySet<Role> => new Set(roles));

const withoutSlash = (text: string) => text.replace(/\/+$/, "");

/** Parses a variable. After a fault it returns undefined, and the settings that are built from it are dropped. */
type Read = <S extends z.ZodType>(variable: string, schema: S) => z.output<S>;

function readConfig(read: Read) {
  const host = read("HOST", z.string().default("127.0.0.1"));
  const port = read("PORT", wholeNumber(3000, { max: 65_535 }));
  const roles = read("ROLES", roleList.optional());
  const relayerPrivateKeys = read(
    "RELAYER_PRIVATE_KEYS",
    listOf(privateKey).refine(
      (keys) => keys.length > 0 || !roles?.has("relayer"),
      "is required by the role relayer (keys of accounts that the Relay allows as signers)",
    ),
  );
  return {
    databaseUrl: read("DATABASE_URL", databaseUrl),
    /** A streaming replica for lists and searches; if absent, the primary serves them. */
    databaseReadUrl: read("DATABASE_READ_URL", databaseUrl.optional()),
    /** Separate pools, so that no kind of work can use all connections. */
    databaseConnections: {
      /** Sign-in, payments, single-item reads. */
      api: read("DATABASE_API_CONNECTIONS", wholeNumber(10, { min: 1, max: 1000 })),
      /** Lists and searches. */
      read: read("DATABASE_READ_CONNECTIONS", wholeNumber(10, { min: 1, max: 1000 })),
      /** Relayer, keeper, event log, webhooks. */
      work: read("DATABASE_WORK_CONNECTIONS", wholeNumber(10, { min: 2, max: 1000 })),
    },
    /** Maximum duration of a request's query; 0 disables the limit. */
    statementTimeoutMs: read("STATEMENT_TIMEOUT_MS", wholeNumber(10_000, { max: 600_000 })),
    rpcUrl: read("RPC_URL", httpUrl),
    /** Path of the JSON file with the deployment's addresses. */
    deploymentPath: read("DEPLOYMENT", z.string()),
    /** Default: every role, or only `api` if no signer keys are set. */
    roles: roles ?? new Set<Role>(relayerPrivateKeys?.length > 0 ? ROLES : ["api"]),
    /** The relayer's signer keys; empty in a process that only serves HTTP. */
    relayerPrivateKeys,
    /** Wraps the keys of encrypted references and webhook secrets. */
    masterKey: read("MASTER_KEY", hex32),
    /** Former master keys, needed until `operator master-key rotate` has rewrapped every secret. */
    masterKeysOld: read("MASTER_KEYS_OLD", listOf(hex32)),
    host,
    /** 0 picks any free port; then set BASE_URL, or quotes name an unreachable resource. */
    port,
    /** Public URL of the service, without a trailing slash. */
    baseUrl: read(
      "BASE_URL",
      httpUrl
        .regex(/^[^?#@]*$/, "must have no user name, password, query or fragment")
        .transform(withoutSlash)
        .default(`http://${isIPv6(host) ? `[${host}]` : host}:${port}`),
    ),
    /** Part of the API key prefix: a live service never accepts a test key. */
    environment: read("WC_ENV", z.enum(["live", "test"], "must be live or test").default("test")),
    /** Minimum price of a Working Contract, as a decimal amount of the stablecoin. */
    minimumPrice: read(
      "MINIMUM_PRICE",
      z
        .string()
        .regex(/^\d{1,18}(\.\d{1,6})?$/, "must be a decimal with at most 18 digits and 6 decimals")
        .default("0.01")
        .transform((text) => parseUnits(text, 6)),
    ),
    /** Includes x402 version 1 quotes in every 402 body. */
    x402V1Bodies: read("X402_V1_BODIES", flag),
    confirmations: read("CONFIRMATIONS", wholeNumber(1, { min: 1, max: 1000 })),
    /** Maximum fee per gas in wei; operations queue while the market is above it. */
    maxFeePerGas: read(
      "MAX_FEE_PER_GAS_GWEI",
      wholeNumber(500, { min: 1, max: 1_000_000 }).transform((gwei) => parseGwei(String(gwei))),
    ),
    /** Maximum tip per gas in wei that the node can name. It is paid in full, unlike the maximum fee. */
    maxPriorityFeePerGas: read(
      "MAX_PRIORITY_FEE_GWEI",
      z
        .string()
        .regex(/^(?=.*[1-9])\d{1,6}(\.\d{1,9})?$/, "must be a decimal above 0 with at most 9 decimals")
        .default("2")
        .transform((gwei) => parseGwei(gwei)),
    ),
    /** Maximum operations per transaction of the relayer. */
    maxBatchSize: read("MAX_BATCH_OPERATIONS", wholeNumber(150, { min: 1, max: 150 })),
    /** How long a request waits for its operation before it responds 503 settlement_pending. */
    settlementWaitMs: read("SETTLEMENT_WAIT_MS", wholeNumber(25_000, { max: 600_000 })),
    /** Requests per minute; 0 disables a limit. */
    rateLimits: {
      reads: read("RATE_LIMIT_READS", wholeNumber(300)),
      writes: read("RATE_LIMIT_WRITES", wholeNumber(60)),
      anonymous: read("RATE_LIMIT_ANONYMOUS", wholeNumber(60)),
      challenges: read("RATE_LIMIT_CHALLENGES", wholeNumber(10)),
      pages: read("RATE_LIMIT_PAGES", wholeNumber(120)),
    },
    /** Limits of the gas that is relayed for agents beyond what their contracts' fees earned. */
    gasPolicy: {
      allowance: read("GAS_ALLOWANCE", wholeNumber(20_000_000)),
      budget: read("GAS_BUDGET", wholeNumber(100_000_000)),
      perFee: read("GAS_PER_FEE", wholeNumber(33_000_000)),
    },
    /** Maximum open event streams in this process. */
    eventStreams: read("EVENT_STREAMS", wholeNumber(2_000, { min: 1, max: 100_000 })),
    /** Allows webhooks to private and loopback addresses and without TLS. For local use only. */
    webhooksToPrivateAddresses: read("WEBHOOKS_TO_PRIVATE_ADDRESSES", flag),
    /** Number of entries at the end of X-Forwarded-For written by our own proxies; 0 ignores the header. */
    trustedProxies: read("TRUSTED_PROXIES", wholeNumber(0, { max: 10 })),
    /** /ready responds 503 above these: seconds since the newest block, and blocks the indexer is behind. */
    readiness: {
      maxHeadAge: read("READY_MAX_HEAD_AGE", wholeNumber(120)),
      maxIndexLag: read("READY_MAX_INDEX_LAG", wholeNumber(30)),
    },
    /** Block explorer that pages link to, without a trailing slash; if absent, hashes are not links. */
    explorerUrl: read("EXPLORER_URL", httpUrl.transform(withoutSlash).optional()),
    /** Node that the pages offer to a wallet that does not have the chain; if absent, they only name the chain. */
    walletNodeUrl: read("WALLET_NODE_URL", httpUrl.optional()),
    /** Grants access to the operator's page; if absent, the page does not exist. */
    operatorKey: read("OPERATOR_KEY", z.string().min(16, "must have at least 16 characters").optional()),
    logLevel: read(
      "LOG_LEVEL",
      z
        .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"], "must be a pino level")
        .default("info"),
    ),
  };
}

export type Config = ReturnType<typeof readConfig>;

/** Invalid environment. The message has one line per fault and never contains a value, which could be a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

type Environment = Record<string, string | undefined>;

/** Parses the settings in `env`; an empty variable counts as absent. Throws a {@link ConfigError} with every fault. */
export const parseConfig = (env: Environment): Config => parse(env, readConfig);

/** The settings that every indexer has, also that of `npm start`. */
const readPonderSettings = (read: Read) => ({
  host: read("INDEXER_HOST", z.string().default("127.0.0.1")),
  requestsPerSecond: read("PONDER_REQUESTS_PER_SECOND", wholeNumber(160, { min: 1, max: 100_000 })),
  pollingIntervalMs: read("PONDER_POLLING_INTERVAL_MS", wholeNumber(250, { min: 1, max: 600_000 })),
  ponderRpcUrl: read("PONDER_RPC_URL", httpUrl.optional()),
  ponderWsRpcUrl: read("PONDER_WS_RPC_URL", socketUrl.optional()),
  wsRpcUrl: read("WS_RPC_URL", socketUrl.optional()),
  ponderLogLevel: read(
    "PONDER_LOG_LEVEL",
    z
      .enum(["error", "warn", "info", "debug", "trace"], "must be error, warn, info, debug or trace")
      .default("warn"),
  ),
});

/** Parses Ponder's settings as {@link parseConfig} does those of the service. */
export const parsePonderSettings = (env: Environment): ReturnType<typeof readPonderSettings> =>
  parse(env, readPonderSettings);

function readIndexerConfig(read: Read) {
  const { ponderRpcUrl, wsRpcUrl } = readPonderSettings(read);
  const rpcUrl = read("RPC_URL", httpUrl);
  return {
    databaseUrl: read("DATABASE_URL", databaseUrl),
    /** The node that Ponder reads. */
    rpcUrl: ponderRpcUrl ?? rpcUrl,
    wsRpcUrl,
    deploymentPath: read("DEPLOYMENT", z.string()),
    port: read("INDEXER_PORT", wholeNumber(42_069, { max: 65_535 })),
  };
}

/** Parses the settings of a separate indexer, as {@link parseConfig} does those of the service. */
export const parseIndexerConfig = (env: Environment): ReturnType<typeof readIndexerConfig> =>
  parse(env, readIndexerConfig);

/** The setting of commands that need the database alone. Throws a {@link ConfigError} if it is missing or wrong. */
export const parseDatabaseUrl = (env: Environment): string =>
  parse(env, (read) => read("DATABASE_URL", databaseUrl));

/** The settings of commands that sign as the protocol token's owner. Throws a {@link ConfigError} as the others do. */
export const parseOwnerSettings = (env: Environment) =>
  parse(env, (read) => ({
    rpcUrl: read("RPC_URL", httpUrl),
    deploymentPath: read("DEPLOYMENT", z.string()),
    ownerPrivateKey: read("OWNER_PRIVATE_KEY", privateKey),
  }));

/** The master keys, for commands that rewrap secrets. Throws a {@link ConfigError} if one is missing or wrong. */
export const parseMasterKeys = (env: Environment): Pick<Config, "masterKey" | "masterKeysOld"> =>
  parse(env, (read) => ({
    masterKey: read("MASTER_KEY", hex32),
    masterKeysOld: read("MASTER_KEYS_OLD", listOf(hex32)),
  }));

function parse<T>(env: Environment, settings: (read: Read) => T): T {
  const faults: string[] = [];
  const parsed = settings((variable, schema) => {
    const given = env[variable] || undefined;
    const { data, error } = schema.safeParse(given);
    for (const issue of error?.issues ?? []) {
      const isMissing = given === undefined && issue.code !== "custom";
      faults.push(`${variable}: ${isMissing ? "is required" : issue.message}`);
    }
    return data as z.output<typeof schema>;
  });
  if (faults.length > 0) throw new ConfigError(faults.join("\n"));
  return parsed;
}
