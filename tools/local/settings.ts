/** The settings of `npm start`: what exists and what it has to start. Reports all faults of the environment at once. */
import { createHash, randomBytes } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError, parseConfig, parsePonderSettings } from "../../src/config.js";
import { ROOT } from "../../src/root.js";
import { localSignerKeys, type RemoteChain } from "./network.js";

export type Environment = Record<string, string | undefined>;

export type LocalSettings = ReturnType<typeof readSettings>;

export const LOCAL_DEFAULTS = {
  /** On the local chain, a receipt counts as final once it is safely on disk. */
  CONFIRMATIONS: "5",
  /** All agents on this machine sign in from one IP address: the limit meant for one caller would block them. */
  RATE_LIMIT_ANONYMOUS: "6000",
  /** Gas costs nothing here, and suites begin with hundreds of new agents. */
  GAS_BUDGET: "1000000000",
  WEBHOOKS_TO_PRIVATE_ADDRESSES: "true",
  // The oldest x402 clients read quotes from the body alone.
  X402_V1_BODIES: "true",
};
const WANTED_PORT = 3000;

/** Throws ConfigError with one line per fault, before anything is started or written. */
export function readSettings(env: Environment) {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  const faults = [...remoteFaults(given), ...serviceFaults(given)];
  if (faults.length > 0) throw new ConfigError(faults.join("\n"));

  const dir = resolve(given.DATA_DIR ?? join(ROOT, ".local"));
  const secret = localSecret(dir);
  const defaults = given.RPC_URL === undefined ? localDefaults(derive(secret, "master key")) : {};
  const { RPC_URL: rpcUrl, WS_RPC_URL: wsRpcUrl, DEPLOYMENT: deploymentPath } = given;
  return {
    dir,
    postgresPassword: derive(secret, "postgres").slice(0, 32),
    databaseUrl: given.DATABASE_URL,
    remoteChain:
      rpcUrl === undefined || deploymentPath === undefined
        ? undefined
        : { rpcUrl, wsRpcUrl, deploymentPath: resolve(deploymentPath) },
    /** Completes the service's settings with the addresses of the network's parts. */
    serviceConfig: (found: RemoteChain & { databaseUrl: string; port: number }) =>
      parseConfig({
        ...defaults,
        ...(rpcUrl === undefined && { WALLET_NODE_URL: found.rpcUrl }),
        ...given,
        DATABASE_URL: found.databaseUrl,
        RPC_URL: found.rpcUrl,
        DEPLOYMENT: found.deploymentPath,
        PORT: String(found.port),
      }),
  };
}

/** The port that was asked for, or the default one; if the default is busy, another one is used. */
export const wantedPort = (env: Environment): number => Number(env.PORT || WANTED_PORT);

function localDefaults(masterKey: string): Environment {
  return { RELAYER_PRIVATE_KEYS: localSignerKeys().join(","), MASTER_KEY: masterKey, ...LOCAL_DEFAULTS };
}

/** An existing chain needs all the settings that belong to it. */
function remoteFaults(given: Environment): string[] {
  if (given.RPC_URL === undefined) return [];
  const faults: string[] = [];
  if (given.RELAYER_PRIVATE_KEYS === undefined) {
    faults.push(
      "RELAYER_PRIVATE_KEYS: is required with RPC_URL (keys of accounts that the Relay allows as signers)",
    );
  }
  if (given.DEPLOYMENT === undefined) {
    faults.push("DEPLOYMENT: is required with RPC_URL (the file that `npm run deploy` wrote)");
  } else if (!existsSync(given.DEPLOYMENT)) {
    faults.push(`DEPLOYMENT: file not found: ${given.DEPLOYMENT}`);
  }
  return faults;
}

/** Faults of the given settings. Placeholders stand in for parts that will be started here. */
function serviceFaults(given: Environment): string[] {
  const placeholders = {
    DATABASE_URL: "postgres://placeholder",
    RPC_URL: "http://placeholder",
    DEPLOYMENT: "placeholder",
    ...(given.RPC_URL === undefined ? localDefaults("00".repeat(32)) : {}),
  };
  return [parseConfig, parsePonderSettings].flatMap((parse) => {
    try {
      parse({ ...placeholders, ...given });
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.message.split("\n");
      throw error;
    }
  });
}

/** This folder's random secret, created once: the keys of encrypted references depend on it. Throws ConfigError. */
function localSecret(dir: string): string {
  const path = join(dir, "secret");
  let secret: string;
  try {
    mkdirSync(dir, { recursive: true });
    if (!existsSync(path)) {
      const fresh = `${path}.${process.pid}`;
      writeFileSync(fresh, `${randomBytes(32).toString("hex")}\n`, { mode: 0o600 });
      renameSync(fresh, path);
    }
    accessSync(dir, constants.W_OK);
    secret = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new ConfigError(`DATA_DIR: cannot write to ${dir} (${(cause as Error).message})`, { cause });
  }
  if (/^[0-9a-f]{64}$/.test(secret)) return secret;
  throw new ConfigError(
    `DATA_DIR: ${path} does not hold the secret that was written to it. Restore the file, or delete it and run \`npm start -- --reset\``,
  );
}

function derive(secret: string, purpose: string): string {
  return createHash("sha256").update(`${purpose}:${secret}`).digest("hex");
}
