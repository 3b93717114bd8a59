import { parseArgs } from "node:util";
import { protocolTokenAbi } from "@working-contracts/protocol/abi";
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { createChainClients, createSigningClient } from "../../chain/clients.js";
import { readDeployment } from "../../chain/deployment.js";
import { localNetwork, OperatorError } from "./settings.js";

const USAGE = "Usage: grant <address> <tokens>";

/** `grant <address> <tokens>`: mints protocol tokens as the token's owner, and resolves once they are minted. */
export async function grant(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true });
  const [address = "", tokens = "", ...rest] = positionals;
  const amount = parseDecimal(tokens, TOKEN_DECIMALS);
  if (!/^0x[0-9a-fA-F]{40}$/.test(address) || amount === null || amount === 0n || rest.length > 0) {
    throw new OperatorError(USAGE);
  }
  const to = address.toLowerCase() as `0x${string}`;
  const { rpcUrl, deploymentPath, account } = ownerSettings();
  const { chainId, protocolToken } = readDeployment(deploymentPath);
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  const token = { address: protocolToken, abi: protocolTokenAbi } as const;
  const owner = await publicClient.readContract({ ...token, functionName: "owner" });
  if (owner.toLowerCase() !== account.address.toLowerCase()) {
    throw new OperatorError(
      `OWNER_PRIVATE_KEY: belongs to ${account.address}, but the token's owner is ${owner}`,
    );
  }
  const wallet = createSigningClient({ rpcUrl, chain, account });
  const hash = await wallet.writeContract({ ...token, functionName: "grant", args: [to, amount] });
  const { status } = await publicClient.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new OperatorError(`The transaction ${hash} reverted; nothing was granted.`);
  console.log(`${to} has received ${formatDecimal(amount, TOKEN_DECIMALS)} protocol tokens (${hash}).`);
}

const SettingsSchema = z.object({
  RPC_URL: z.url("must be a URL"),
  DEPLOYMENT: z.string("is required"),
  OWNER_PRIVATE_KEY: z.string("is required").regex(/^0x[0-9a-fA-F]{64}$/, "must be 32 bytes in hex"),
});

/** The three settings. If none is set, those of the local network that `npm start` runs. */
function ownerSettings() {
  const given = Object.fromEntries(
    Object.keys(SettingsSchema.shape).flatMap((name) =>
      process.env[name] ? [[name, process.env[name]]] : [],
    ),
  );
  const local = Object.keys(given).length === 0 ? localNetwork() : null;
  if (local !== null) return { ...local, account: privateKeyToAccount(local.ownerPrivateKey) };

  const settings = SettingsSchema.safeParse(given);
  if (!settings.success) {
    const faults = settings.error.issues.map(({ path, message }) => `${String(path[0])}: ${message}`);
    throw new OperatorError(
      [...faults, "(or run npm start in another terminal and set none of them)"].join("\n"),
    );
  }
  const { RPC_URL: rpcUrl, DEPLOYMENT: deploymentPath, OWNER_PRIVATE_KEY: key } = settings.data;
  return { rpcUrl, deploymentPath, account: privateKeyToAccount(key as `0x${string}`) };
}
