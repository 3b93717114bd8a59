/** Everything that a command needs, above all the signed-in agent. Its API key is saved for later commands. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  type Agent,
  type ConnectOptions,
  connect,
  type PinnedNetwork,
  type PlannedPayment,
  ServiceError,
  SpendingLimitError,
  toTheEnd,
} from "@working-contracts/client/index";
import { parseDecimal } from "@working-contracts/protocol/amounts";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { UsageError } from "./errors.js";
import { exclusively, readPrivateJson, submittedIn, writePrivateJson } from "./files.js";
import { readKeystore } from "./keystore.js";
import { type CommonOptions, readSettings, type Settings, type World } from "./settings.js";
import { askSecret, confirm, createOutput, isInteractive, type Output } from "./terminal.js";

export interface Context {
  settings: Settings;
  out: Output;
  /** Signs in. `consent` is the amount that the command line names, if any; up to it, payments need no confirmation. */
  agent(consent?: { stablecoin?: string; tokens?: string }): Promise<Agent>;
  /** Performs a paid action. While its outcome is unknown and can still change, resumes it with the same payment. */
  toTheEnd<T>(action: () => Promise<T>): Promise<T>;
}

/** Practically unlimited: `beforePayment` decides whether to pay. */
const NO_LIMIT = "10000000000";

export function createContext(options: CommonOptions, world: World): Context {
  const settings = readSettings(options, world);
  const out = createOutput(options, world);
  return {
    settings,
    out,
    async agent(consent = {}) {
      const { agent } = await signedIn(settings, {
        spendingLimit: { perCall: NO_LIMIT, stake: NO_LIMIT },
        beforePayment: (payment) => allow(payment, { options, consent, out }),
        patienceMs: settings.patienceMs,
        onWaiting: (reason) => out.progress(`waiting: ${reason}`),
      });
      return agent;
    },
    toTheEnd: (action) =>
      toTheEnd(action, {
        onUnknown: (reason) => out.progress(`payment signed, outcome not known yet: ${reason}`),
      }),
  };
}

/** Allows an amount that the command line covers; otherwise asks. Throws SpendingLimitError without consent. */
async function allow(
  { amount, decimal, currency, resource }: PlannedPayment,
  {
    options,
    consent,
    out,
  }: { options: CommonOptions; consent: { stablecoin?: string; tokens?: string }; out: Output },
): Promise<void> {
  const isToken = currency === "protocol-token";
  const unit = isToken ? "protocol tokens" : "of the stablecoin";
  const named = isToken ? consent.tokens : (options.maxPay ?? consent.stablecoin);
  const limit = named === undefined ? null : parseDecimal(named, isToken ? 18 : 6);
  if (named !== undefined && limit === null) throw new UsageError(`${named} is not a decimal amount.`);
  if (limit !== null && amount > limit) {
    throw new SpendingLimitError(
      `${resource} costs ${decimal} ${unit}, more than ${named}. Nothing was signed.`,
    );
  }
  if (
    limit === null &&
    options.yes !== true &&
    !(isInteractive() && (await confirm(`Pay ${decimal} ${unit}?`)))
  ) {
    throw new SpendingLimitError(
      `${resource} costs ${decimal} ${unit}. Nothing was signed. To allow it, pass --max-pay <amount> or --yes.`,
    );
  }
  out.progress(`paying ${decimal} ${unit} for ${resource}`);
}

/** Loads the account that signs. Throws UsageError if there is no key. */
export async function loadAccount(settings: Settings): Promise<PrivateKeyAccount> {
  const { privateKey, keystorePath, password } = settings;
  if (privateKey !== undefined) return privateKeyToAccount(privateKey);
  if (!existsSync(keystorePath)) {
    throw new UsageError(`No key found at ${keystorePath}. Run \`wcontract key new\` or set WC_PRIVATE_KEY.`);
  }
  const given =
    password ?? (await askSecret(`Password of ${keystorePath}: `, "Set WC_PASSWORD or WC_PASSWORD_FILE."));
  return privateKeyToAccount(await readKeystore(keystorePath, given));
}

/** The account and its node, for transactions without the service. Throws UsageError if either is missing. */
export async function ownTransactions(settings: Settings) {
  const { rpcUrl } = settings;
  if (rpcUrl === undefined) throw new UsageError("--on-chain needs --rpc-url or RPC_URL.");
  return { rpcUrl, account: await loadAccount(settings) };
}

const ApiKeysSchema = z.record(z.string(), z.unknown()).nullable();
/** A saved sign-in. The network is not validated further, because only this program writes the file. */
const SignInSchema = z.object({
  apiKey: z.string(),
  operator: z.enum(["none", "all"]),
  network: z.custom<PinnedNetwork>((value) => typeof value === "object" && value !== null),
});

/**
 * Signs in once per service and address, and saves the API key for later commands. The network is pinned at the first
 * sign-in, so nothing is signed for another network that the service names later.
 */
export async function signedIn(
  settings: Settings,
  options: Omit<ConnectOptions, "baseUrl" | "account" | "apiKey">,
): Promise<{ agent: Agent; account: PrivateKeyAccount }> {
  const account = await loadAccount(settings);
  const path = join(settings.configDir, "api-keys.json");
  const entry = `${settings.url} ${account.address.toLowerCase()}`;
  const keys = () => ApiKeysSchema.parse(readPrivateJson(path));
  // An entry in another format, as from an earlier release, is replaced.
  const saved = SignInSchema.safeParse(keys()?.[entry]).data;
  const { url: baseUrl, clock, operator, domain, rpcUrl } = settings;
  const common = {
    ...options,
    baseUrl,
    account,
    clock,
    operator,
    submitted: submittedIn(join(settings.configDir, "submitted", account.address.toLowerCase())),
    ...(domain !== undefined && { domain }),
    ...(rpcUrl !== undefined && { node: rpcUrl }),
    ...(saved && { network: saved.network }),
  };
  if (saved?.operator === operator) {
    const agent = await connect({ ...common, apiKey: saved.apiKey });
    if (await isAccepted(agent)) return { agent, account };
  }
  const agent = await connect({ ...common, label: "wcontract" });
  const { apiKey, network } = agent;
  exclusively(path, () => writePrivateJson(path, { ...keys(), [entry]: { apiKey, operator, network } }));
  return { agent, account };
}

/** A saved key can be revoked, or belong to a database that was reset. */
async function isAccepted(agent: Agent): Promise<boolean> {
  try {
    await agent.apiKeys();
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "unauthorized") return false;
    throw error;
  }
}
