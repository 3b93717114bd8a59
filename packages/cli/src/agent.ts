/** The signed-in agent behind a command: its key from keystore or environment, its API key from an earlier command. */
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

/** The account that signs; throws UsageError where there is no key. */
export async function loadAccount(settings: Settings): Promise<PrivateKeyAccount> {
  const { privateKey, keystorePath, password } = settings;
  if (privateKey !== undefined) return privateKeyToAccount(privateKey);
  if (!existsSync(keystorePath)) {
    throw new UsageError(
      `There is no key: run \`wcontract key new\`, or set WC_PRIVATE_KEY. (Looked for ${keystorePath}.)`,
    );
  }
  const given =
    password ?? (await askSecret(`Password of ${keystorePath}: `, "Set WC_PASSWORD or WC_PASSWORD_FILE."));
  return privateKeyToAccount(await readKeystore(keystorePath, given));
}

const ApiKeysSchema = z.record(z.string(), z.unknown()).nullable();
/** What is kept of a sign-in. The network's form is this program's own: the file is private. */
const SignInSchema = z.object({
  apiKey: z.string(),
  network: z.custom<PinnedNetwork>((value) => typeof value === "object" && value !== null),
});

/**
 * Signs in once for each service and address; later commands use the key that was kept. The network of the first
 * sign-in is kept with it: nothing is signed for another one that the service may name later.
 */
export async function signedIn(
  settings: Settings,
  options: Omit<ConnectOptions, "baseUrl" | "account" | "apiKey">,
): Promise<{ agent: Agent; account: PrivateKeyAccount }> {
  const account = await loadAccount(settings);
  const path = join(settings.configDir, "api-keys.json");
  const place = `${settings.url} ${account.address.toLowerCase()}`;
  const keys = () => ApiKeysSchema.parse(readPrivateJson(path));
  // One of another form, as of an earlier release, is replaced.
  const kept = SignInSchema.safeParse(keys()?.[place]).data;
  const common = { ...options, baseUrl: settings.url, account, ...(kept && { network: kept.network }) };
  if (kept !== undefined) {
    const agent = await connect({ ...common, apiKey: kept.apiKey });
    if (await isAccepted(agent)) return { agent, account };
  }
  const agent = await connect({ ...common, label: "wcontract" });
  const { apiKey, network } = agent;
  exclusively(path, () => writePrivateJson(path, { ...keys(), [place]: { apiKey, network } }));
  return { agent, account };
}

/** A kept key may have been revoked, or belong to a database that is gone. */
async function isAccepted(agent: Agent): Promise<boolean> {
  try {
    await agent.apiKeys();
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "unauthorized") return false;
    throw error;
  }
}
