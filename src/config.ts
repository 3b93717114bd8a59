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
export type Role = (typeof ROLES)[number];

const roleList = z
  .string()
  .transform((list) => list.split(",").map((role) => role.trim()))
  .pipe(z.array(z.enum(ROLES, `must be a comma-separated list of ${ROLES.join(", ")}`)).min(1))
  .transform((roles): ReadonlySet<Role> => new Set(roles));

const EnvironmentSchema = z
  .object({
    DATABASE_URL: databaseUrl,
    DATABASE_READ_URL: databaseUrl.optional(),
    DATABASE_API_CONNECTIONS: wholeNumber(10, { min: 1, max: 1000 }),
    DATABASE_READ_CONNECTIONS: wholeNumber(10, { min: 1, max: 1000 }),
    DATABASE_WORK_CONNECTIONS: wholeNumber(10, { min: 2, max: 1000 }),
    STATEMENT_TIMEOUT_MS: wholeNumber(10_000, { max: 600_000 }),
    RPC_URL: httpUrl,
    DEPLOYMENT: z.string(),
    ROLES: roleList.optional(),
    RELAYER_PRIVATE_KEYS: listOf(privateKey),
    MASTER_KEY: hex32,
    MASTER_KEYS_OLD: listOf(hex32),
    HOST: z.string().default("127.0.0.1"),
    PORT: wholeNumber(3000, { max: 65_535 }),
    BASE_URL: httpUrl
      .regex(/^[^?#@]*$/, "must have no user name, password, query or fragment")
      .transform((text) => text.replace(/\/+$/, ""))
      .optional(),
    WC_ENV: z.enum(["live", "test"], "must be live or test").default("test"),
    MINIMUM_PRICE: z
      .string()
      .regex(/^\d{1,18}(\.\d{1,6})?$/, "must be a decimal with at most 18 digits and 6 decimals")
      .default("0.01")
      .transform((text) => parseUnits(text, 6)),
    X402_V1_BODIES: flag,
    CONFIRMATIONS: wholeNumber(1, { min: 1, max: 1000 }),
    MAX_FEE_PER_GAS_GWEI: wholeNumber(500, { min: 1, max: 1_000_000 }),
    MAX_PRIORITY_FEE_GWEI: z
      .string()
      .regex(/^(?=.*[1-9])\d{1,6}(\.\d{1,9})?$/, "must be a decimal above 0 with at most 9 decimals")
      .default("2"),
    MAX_BATCH_OPERATIONS: wholeNumber(150, { min: 1, max: 150 }),
    SETTLEMENT_WAIT_MS: wholeNumber(25_000, { max: 600_000 }),
    RATE_LIMIT_READS: wholeNumber(300),
    RATE_LIMIT_WRITES: wholeNumber(60),
    RATE_LIMIT_ANONYMOUS: wholeNumber(60),
    RATE_LIMIT_CHALLENGES: wholeNumber(10),
    RATE_LIMIT_PAGES: wholeNumber(120),
    GAS_ALLOWANCE: wholeNumber(20_000_000),
    GAS_BUDGET: wholeNumber(100_000_000),
    GAS_PER_FEE: wholeNumber(33_000_000),
    EVENT_STREAMS: wholeNumber(2_000, { min: 1, max: 100_000 }),
    WEBHOOKS_TO_PRIVATE_ADDRESSES: flag,
    TRUSTED_PROXIES: wholeNumber(0, { max: 10 }),
    READY_MAX_HEAD_AGE: wholeNumber(120),
    READY_MAX_INDEX_LAG: wholeNumber(30),
    EXPLORER_URL: httpUrl.transform((text) => text.replace(/\/+$/, "")).optional(),
    WALLET_NODE_URL: httpUrl.optional(),
    OPERATOR_KEY: z.string().min(16, "must have at least 16 characters").optional(),
    LOG_LEVEL: z
      .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"], "must be a pino level")
      .default("info"),
  })
  .refine(({ ROLES, RELAYER_PRIVATE_KEYS: keys }) => !ROLES?.has("relayer") || keys.length > 0, {
    path: ["RELAYER_PRIVATE_KEYS"],
    error: "is required by the role relayer (keys of accounts that the Relay allows as signers)",
    // Reported beside other faults, unless one of them is in the two settings.
    when: ({ issues }) =>
      issues.every(({ path }) => path?.[0] !== "ROLES" && path?.[0] !== "RELAYER_PRIVATE_KEYS"),
  })
  .transform((env) => ({
    databaseUrl: env.DATABASE_URL,
    /** A streaming replica for lists and searches; if absent, the primary serves them. */
    databaseReadUrl: env.DATABASE_READ_URL,
    /** Separate pools, so that no kind of work can use all connections. */
    databaseConnections: {
      /** Sign-in, payments, single-item reads. */
      api: env.DATABASE_API_CONNECTIONS,
      /** Lists and searches. */
      read: env.DATABASE_READ_CONNECTIONS,
      /** Relayer, keeper, event log, webhooks. */
      work: env.DATABASE_WORK_CONNECTIONS,
    },
    /** Maximum duration of a request's query; 0 disables the limit. */
    statementTimeoutMs: env.STATEMENT_TIMEOUT_MS,
    rpcUrl: env.RPC_URL,
    /** Path of the JSON file with the deployment's addresses. */
    deploymentPath: env.DEPLOYMENT,
    /** Default: every role, or only `api` if no signer keys are set. */
    roles: env.ROLES ?? new Set<Role>(env.RELAYER_PRIVATE_KEYS.length > 0 ? ROLES : ["api"]),
    /** The relayer's signer keys; empty in a process that only serves HTTP. */
    relayerPrivateKeys: env.RELAYER_PRIVATE_KEYS,
    /** Wraps the keys of encrypted references and webhook secrets. */
    masterKey: env.MASTER_KEY,
    /** Former master keys, needed until `operator master-key rotate` has rewrapped every secret. */
    masterKeysOld: env.MASTER_KEYS_OLD,
    host: env.HOST,
    /** 0 picks any free port; then set BASE_URL, or quotes name an unreachable resource. */
    port: env.PORT,
    /** Public URL of the service, without a trailing slash. */
    baseUrl: env.BASE_URL ?? `http://${isIPv6(env.HOST) ? `[${env.HOST}]` : env.HOST}:${env.PORT}`,
    /** Part of the API key prefix: a live service never accepts a test key. */
    environment: env.WC_ENV,
    /** Minimum price of a Working Contract, as a decimal amount of the stablecoin. */
    minimumPrice: env.MINIMUM_PRICE,
    /** Includes x402 version 1 quotes in every 402 body. */
    x402V1Bodies: env.X402_V1_BODIES,
    confirmations: env.CONFIRMATIONS,
    /** Maximum fee per gas in wei; operations queue while the market is above it. */
    maxFeePerGas: parseGwei(String(env.MAX_FEE_PER_GAS_GWEI)),
    /** Maximum tip per gas in wei that the node can name. It is paid in full, unlike the maximum fee. */
    maxPriorityFeePerGas: parseGwei(env.MAX_PRIORITY_FEE_GWEI),
    /** Maximum operations per transaction of the relayer. */
    maxBatchSize: env.MAX_BATCH_OPERATIONS,
    /** How long a request waits for its operation before it responds 503 settlement_pending. */
    settlementWaitMs: env.SETTLEMENT_WAIT_MS,
    /** Requests per minute; 0 disables a limit. */
    rateLimits: {
      reads: env.RATE_LIMIT_READS,
      writes: env.RATE_LIMIT_WRITES,
      anonymous: env.RATE_LIMIT_ANONYMOUS,
      challenges: env.RATE_LIMIT_CHALLENGES,
      pages: env.RATE_LIMIT_PAGES,
    },
    /** Limits of the gas that is relayed for agents beyond what their contracts' fees earned. */
    gasPolicy: { allowance: env.GAS_ALLOWANCE, budget: env.GAS_BUDGET, perFee: env.GAS_PER_FEE },
    /** Maximum open event streams in this process. */
    eventStreams: env.EVENT_STREAMS,
    /** Allows webhooks to private and loopback addresses and without TLS. For local use only. */
    webhooksToPrivateAddresses: env.WEBHOOKS_TO_PRIVATE_ADDRESSES,
    /** Number of entries at the end of X-Forwarded-For written by our own proxies; 0 ignores the header. */
    trustedProxies: env.TRUSTED_PROXIES,
    /** /ready responds 503 above these: seconds since the newest block, and blocks the indexer is behind. */
    readiness: { maxHeadAge: env.READY_MAX_HEAD_AGE, maxIndexLag: env.READY_MAX_INDEX_LAG },
    /** Block explorer that pages link to, without a trailing slash; if absent, hashes are not links. */
    explorerUrl: env.EXPLORER_URL,
    /** Node that the pages offer to a wallet that does not have the chain; if absent, they only name the chain. */
    walletNodeUrl: env.WALLET_NODE_URL,
    /** Grants access to the operator's page; if absent, the page does not exist. */
    operatorKey: env.OPERATOR_KEY,
    logLevel: env.LOG_LEVEL,
  }));

export type Config = z.infer<typeof EnvironmentSchema>;

/** Invalid environment. The message has one line per fault and never contains a value, which could be a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

type Environment = Record<string, string | undefined>;

/** Parses the settings in `env`; an empty variable counts as absent. Throws a {@link ConfigError} with every fault. */
export const parseConfig = (env: Environment): Config => parse(EnvironmentSchema, env);

const PonderEnvironmentSchema = z.object({
  INDEXER_HOST: z.string().default("127.0.0.1"),
  PONDER_REQUESTS_PER_SECOND: wholeNumber(160, { min: 1, max: 100_000 }),
  PONDER_POLLING_INTERVAL_MS: wholeNumber(250, { min: 1, max: 600_000 }),
  PONDER_RPC_URL: httpUrl.optional(),
  PONDER_WS_RPC_URL: socketUrl.optional(),
  WS_RPC_URL: socketUrl.optional(),
  PONDER_LOG_LEVEL: z
    .enum(["error", "warn", "info", "debug", "trace"], "must be error, warn, info, debug or trace")
    .default("warn"),
});

/** Parses the settings that every indexer has, also that of `npm start`, as {@link parseConfig} does. */
export const parsePonderEnvironment = (env: Environment): z.output<typeof PonderEnvironmentSchema> =>
  parse(PonderEnvironmentSchema, env);

const IndexerEnvironmentSchema = PonderEnvironmentSchema.extend({
  DATABASE_URL: databaseUrl,
  RPC_URL: httpUrl,
  DEPLOYMENT: z.string(),
  INDEXER_PORT: wholeNumber(42_069, { max: 65_535 }),
}).transform((env) => ({
  databaseUrl: env.DATABASE_URL,
  rpcUrl: env.RPC_URL,
  /** The node that Ponder reads. */
  ponderRpcUrl: env.PONDER_RPC_URL ?? env.RPC_URL,
  wsRpcUrl: env.WS_RPC_URL,
  deploymentPath: env.DEPLOYMENT,
  port: env.INDEXER_PORT,
}));

/** Parses the settings of a separate indexer, as {@link parseConfig} does those of the service. */
export const parseIndexerConfig = (env: Environment): z.output<typeof IndexerEnvironmentSchema> =>
  parse(IndexerEnvironmentSchema, env);

/** The setting of commands that need the database alone. Throws a {@link ConfigError} if it is missing or wrong. */
export const parseDatabaseUrl = (env: Environment): string =>
  parse(z.object({ DATABASE_URL: databaseUrl }), env).DATABASE_URL;

/** The settings of commands that sign as the protocol token's owner. Throws a {@link ConfigError} as the others do. */
export function parseOwnerSettings(env: Environment) {
  const settings = parse(
    z.object({ RPC_URL: httpUrl, DEPLOYMENT: z.string(), OWNER_PRIVATE_KEY: privateKey }),
    env,
  );
  const { RPC_URL: rpcUrl, DEPLOYMENT: deploymentPath, OWNER_PRIVATE_KEY: ownerPrivateKey } = settings;
  return { rpcUrl, deploymentPath, ownerPrivateKey };
}

/** The master keys, for commands that rewrap secrets. Throws a {@link ConfigError} if one is missing or wrong. */
export function parseMasterKeys(env: Environment): Pick<Config, "masterKey" | "masterKeysOld"> {
  const keys = parse(z.object({ MASTER_KEY: hex32, MASTER_KEYS_OLD: listOf(hex32) }), env);
  return { masterKey: keys.MASTER_KEY, masterKeysOld: keys.MASTER_KEYS_OLD };
}

function parse<S extends z.ZodType>(schema: S, env: Environment): z.output<S> {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ""),
  );
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues
      .map((issue) => {
        const name = String(issue.path[0]);
        const isMissing = given[name] === undefined && issue.code !== "custom";
        return `${name}: ${isMissing ? "is required" : issue.message}`;
      })
      .join("\n"),
  );
}
