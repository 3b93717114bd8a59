/** The signed-in agent of a command. Its key comes from a keystore or the environment; its API key is saved. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  type Agent,
  type ConnectOptions,
  connect,
  type PinnedNetwork,
  ServiceError,
} from "@working-contracts/client/index";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { UsageError } from "./exit-codes.js";
import { exclusively, readPrivateJson, writePrivateJson } from "./files.js";
import { readKeystore } from "./keystore.js";
import { askSecret } from "./prompt.js";
import type { Settings } from "./settings.js";

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

const ApiKeysSchema = z.record(z.string(), z.unknown()).nullable();
/** A saved sign-in. The network is not validated further, because only this program writes the file. */
const SignInSchema = z.object({
  apiKey: z.string(),
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
  const common = { ...options, baseUrl: settings.url, account, ...(saved && { network: saved.network }) };
  if (saved !== undefined) {
    const agent = await connect({ ...common, apiKey: saved.apiKey });
    if (await isAccepted(agent)) return { agent, account };
  }
  const agent = await connect({ ...common, label: "wcontract" });
  const { apiKey, network } = agent;
  exclusively(path, () => writePrivateJson(path, { ...keys(), [entry]: { apiKey, network } }));
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
