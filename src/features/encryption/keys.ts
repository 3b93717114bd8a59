/** Agents' public encryption keys. Readers check the agent's signature, so the service cannot put in another. */
import { createPublicKey } from "node:crypto";
import { encryptionKeyText, type PublicKey } from "@working-contracts/protocol/encryption";
import type { Address } from "@working-contracts/protocol/types";
import { eq } from "drizzle-orm";
import { hashMessage } from "viem";
import { encryptionKey } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { verifySignature } from "../agents/verify-signature.js";

export interface EncryptionKeyView {
  address: Address;
  key: PublicKey & { kty: "EC"; crv: "P-256" };
  signature: string;
  publishedAt: string;
}

/** Whether the coordinates are a point on the curve. */
export function isOnCurve({ x, y }: PublicKey): boolean {
  try {
    return createPublicKey({ key: { kty: "EC", crv: "P-256", x, y }, format: "jwk" }).type === "public";
  } catch {
    return false;
  }
}

/** Stores the caller's key in place of an earlier one. Throws `invalid_signature` unless the caller signed it. */
export async function publishKey(
  { db, publicClient, deployment }: Pick<Deps, "db" | "publicClient" | "deployment">,
  { caller, key, signature }: { caller: Address; key: PublicKey; signature: string },
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
  const row = { x: key.x, y: key.y, signature: verdict.signature, publishedAt: new Date() };
  await db
    .insert(encryptionKey)
    .values({ agent: caller, ...row })
    .onConflictDoUpdate({ target: encryptionKey.agent, set: row });
  return toView({ agent: caller, ...row });
}

/** Returns null if the agent has published none. */
export async function readKey({ db }: Pick<Deps, "db">, agent: Address): Promise<EncryptionKeyView | null> {
  const [row] = await db.select().from(encryptionKey).where(eq(encryptionKey.agent, agent));
  return row === undefined ? null : toView(row);
}

function toView({
  agent,
  x,
  y,
  signature,
  publishedAt,
}: typeof encryptionKey.$inferSelect): EncryptionKeyView {
  return {
    address: agent as Address,
    key: { kty: "EC", crv: "P-256", x, y },
    signature,
    publishedAt: publishedAt.toISOString(),
  };
}
