/** Agents' public encryption keys. Readers check the agent's signature, so the service cannot put in another. */
import { encryptionKeyText } from "@working-contracts/protocol/encryption";
import type { Address } from "@working-contracts/protocol/types";
import { eq } from "drizzle-orm";
import { hashMessage } from "viem";
import { verifyMessage } from "viem/utils";
import { encryptionKey } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { verifySignature } from "../agents/verify-signature.js";

export interface EncryptionKeyView {
  address: Address;
  key: string | null;
  signature: string | null;
  publishedAt: string | null;
}

/** Stores the caller's key in place of an earlier one. Throws `invalid_signature` unless the caller signed it. */
export async function publishKey(
  { db, publicClient, deployment }: Pick<Deps, "db" | "publicClient" | "deployment">,
  { caller, key, signature }: { caller: Address; key: string; signature: string },
): Promise<EncryptionKeyView> {
  const { domain, chainId } = deployment;
  const message = encryptionKeyText({ domain, chainId, address: caller, key });
  const verdict = await verifySignature(publicClient, {
    address: caller,
    hash: hashMessage(message),
    signature,
  });
  if (!verdict.ok) {
    throw new AppError("invalid_signature", {
      message: "The signature is not that of your address over the text that publishes this key.",
      details: { message },
    });
  }
  // Whoever seals a delivery checks the signature without a node, as it cannot do for a contract wallet (ERC-1271).
  if (!(await verifyMessage({ address: caller, message, signature: verdict.signature }))) {
    throw new AppError("invalid_signature", {
      message: "Contract wallets cannot publish encryption keys: senders cannot check their signatures.",
    });
  }
  const row = { key, signature: verdict.signature, publishedAt: new Date() };
  await db
    .insert(encryptionKey)
    .values({ agent: caller, ...row })
    .onConflictDoUpdate({ target: encryptionKey.agent, set: row });
  return { address: caller, key, signature: row.signature, publishedAt: row.publishedAt.toISOString() };
}

/** The agent's key; null fields if it has published none. */
export async function readKey({ db }: Pick<Deps, "db">, agent: Address): Promise<EncryptionKeyView> {
  const [row] = await db.select().from(encryptionKey).where(eq(encryptionKey.agent, agent));
  return {
    address: agent,
    key: row?.key ?? null,
    signature: row?.signature ?? null,
    publishedAt: row?.publishedAt.toISOString() ?? null,
  };
}
