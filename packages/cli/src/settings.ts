/** Settings of a command: options take precedence over the environment, and both over defaults. An empty variable counts as absent. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { secondsOf } from "@working-contracts/client/connect";
import { requireNoPassword } from "@working-contracts/client/http";
import { LOOPBACK_HOSTS } from "@working-contracts/client/signing";
import { parseDecimal } from "@working-contracts/protocol/amounts";
import { UsageError } from "./errors.js";
import type { Streams } from "./terminal.js";

export interface World extends Streams {
  env: Record<string, string | undefined>;
  cwd: string;
}

export type CommonOptions = Partial<
  Record<"json" | "yes", boolean> &
    Record<"url" | "keystore" | "maxPay" | "patience" | "domain" | "clock" | "operator", string> &
    Record<"rpcUrl" | "deployment" | "maxGas", string>
>;

/** Contains secrets: the private key, the password and the MCP key. Never print it. */
export type Settings = ReturnType<typeof readSettings>;

const LOCAL_URL = "http://127.0.0.1:3000";
/** MCP clients time out after a minute. A paid call makes two requests, of which the service holds one for up to 25 seconds. */
export const PATIENCE = "28s";

/** Throws UsageError if a value is wrong, or RangeError for a duration or a URL with a password. */
export function readSettings(options: CommonOptions, { env, cwd }: Pick<World, "env" | "cwd">) {
  const { network: running, ignored } = readLocalNetwork(env.DATA_DIR || join(cwd, ".local"));
  const givenUrl = options.url ?? (env.WC_URL || undefined);
  const givenNode = options.rpcUrl ?? (env.RPC_URL || undefined);
  const url = httpUrl("--url or WC_URL", givenUrl ?? running?.baseUrl ?? LOCAL_URL).replace(/\/+$/, "");
  requireNoPassword(url);
  // Another service is on another chain.
  const local = running !== undefined && originOf(running.baseUrl) === originOf(url) ? running : undefined;
  const rpcUrl = givenNode === undefined ? local?.rpcUrl : httpUrl("--rpc-url or RPC_URL", givenNode);
  const configDir =
    env.WC_CONFIG_DIR || join(env.XDG_CONFIG_HOME || join(homedir(), ".config"), "working-contracts");
  return {
    url,
    /** Holds the keystore, the API keys and the MCP server's spending. */
    configDir,
    keystorePath: options.keystore ?? (env.WC_KEYSTORE || join(configDir, "key.json")),
    /** How long a request is retried while the service does not respond. */
    patienceMs: secondsOf(options.patience ?? PATIENCE) * 1000,
    privateKey: privateKeyOf(env.WC_PRIVATE_KEY),
    password: passwordOf(env),
    /** Key that HTTP clients of the MCP server need to write, and to read private data. */
    mcpKey: env.WC_MCP_KEY || undefined,
    /** The service's name in sign-in challenges, if it is not its host. */
    domain: options.domain ?? (env.WC_DOMAIN || undefined),
    clock: oneOf("clock", ["local", "service"], options.clock ?? env.WC_CLOCK),
    /** Actions that the service may take without a signature for each. */
    operator: oneOf("operator", ["none", "all"], options.operator ?? env.WC_OPERATOR),
    rpcUrl,
    // Another node can be on another chain.
    deploymentPath:
      options.deployment ??
      (env.DEPLOYMENT || (originOf(rpcUrl) === originOf(local?.rpcUrl) ? local?.deploymentPath : undefined)),
    /** In wei, for one transaction of one's own. */
    maxGasCost: weiOf(options.maxGas),
    /** Why the file of the local network was ignored, if it could have been used. */
    ignored: isLoopback(url) && (givenUrl === undefined || givenNode === undefined) ? ignored : undefined,
  };
}

/** The message does not repeat the URL, which can contain a secret. */
function httpUrl(name: string, text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new UsageError(`${name} must be a URL that starts with http:// or https://.`);
}

function weiOf(ether: string | undefined): bigint | undefined {
  if (ether === undefined) return undefined;
  const wei = parseDecimal(ether, 18);
  if (wei === null) throw new UsageError(`--max-gas: ${ether} is not a decimal amount of ether.`);
  return wei;
}

interface LocalNetwork {
  baseUrl: string;
  rpcUrl: string;
  deploymentPath: string;
}

/** What `npm start` recorded here, if the file is the user's own and names this machine: a stranger can have written it. */
function readLocalNetwork(dataDir: string): { network?: LocalNetwork; ignored?: string } {
  const path = join(dataDir, "network.json");
  if (!existsSync(path)) return {};
  const because = (reason: string) => ({ ignored: `ignored ${path}: ${reason}; pass --url and --rpc-url` });
  // Windows has no user ids.
  const user = process.getuid?.();
  if (user !== undefined && statSync(path).uid !== user) return because("it belongs to another user");
  try {
    const { baseUrl, ...network } = JSON.parse(readFileSync(path, "utf8")) as LocalNetwork;
    // A service that listens at all addresses of this machine.
    const reachable = `${baseUrl}`.replace("//0.0.0.0:", "//127.0.0.1:");
    if (![reachable, network.rpcUrl].every(isLoopback)) return because("it names another machine");
    return { network: { ...network, baseUrl: reachable } };
  } catch {
    return because("it cannot be read");
  }
}

const isLoopback = (url: string): boolean => URL.canParse(url) && LOOPBACK_HOSTS.has(new URL(url).hostname);

/** A URL's origin, with one spelling of this machine. */
function originOf(url = ""): string {
  const { origin } = URL.canParse(url) ? new URL(url) : { origin: url };
  return origin.replace("//localhost:", "//127.0.0.1:");
}

/** The named choice; the first one if none is named. */
function oneOf<T extends string>(name: string, choices: readonly [T, T], text: string | undefined): T {
  const choice = choices.find((one) => one === (text || choices[0]));
  if (choice === undefined)
    throw new UsageError(`${text} is not a value of ${name}. Use ${choices.join(" or ")}.`);
  return choice;
}

function privateKeyOf(text: string | undefined): `0x${string}` | undefined {
  if (text === undefined || text === "") return undefined;
  // The message must not repeat the value: it could be most of a key.
  if (!/^(0x)?[0-9a-fA-F]{64}$/.test(text)) throw new UsageError("WC_PRIVATE_KEY is not 32 bytes in hex.");
  return `0x${text.replace(/^0x/, "").toLowerCase()}`;
}

function passwordOf({ WC_PASSWORD, WC_PASSWORD_FILE }: World["env"]): string | undefined {
  if (WC_PASSWORD) return WC_PASSWORD;
  if (!WC_PASSWORD_FILE) return undefined;
  try {
    return readFileSync(WC_PASSWORD_FILE, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new UsageError(`Cannot read WC_PASSWORD_FILE: ${(error as Error).message}`);
  }
}
