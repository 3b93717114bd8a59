import { randomUUID } from "node:crypto";
import type { Address } from "@working-contracts/protocol/types";
import { apiKey } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { createKey } from "./api-key.js";
import { awaitRevocation, pendingRevocation } from "./delegation-grant.js";
import { type AddressClaim, invalidChallenge, lockAddress, proveAddress, redeem } from "./prove-address.js";

export interface IssuedKey {
  address: Address;
  /** Plain text; it is stored nowhere. */
  apiKey: string;
  keyId: string;
  label: string | null;
}

/**
 * Redeems a challenge for a new API key. Throws `invalid_challenge` or `invalid_signature`, and `unavailable` while a
 * revocation of the address is pending.
 */
export async function issueKey(
  deps: Deps,
  claim: AddressClaim & { label: string | null },
): Promise<IssuedKey> {
  const { address, label } = claim;
  await awaitRevocation(deps, address);
  const proof = await proveAddress(deps, claim);
  // Its key could read, but the chain would refuse its delegation: reported now rather than at the first action.
  if (proof.issuedAt <= proof.grant.revokedAt) {
    throw invalidChallenge("The address was revoked on chain after this challenge was issued.");
  }

  const keyId = randomUUID();
  const { apiKey: plaintext, hash } = createKey(deps.config.environment);
  await deps.db.transaction(async (tx) => {
    await lockAddress(tx, address);
    if ((await pendingRevocation(tx, address)) !== null) throw revocationPending();
    await redeem(tx, proof, "issue");
    await tx.insert(apiKey).values({ id: keyId, address, hash, label });
  });
  return { address, apiKey: plaintext, keyId, label };
}

function revocationPending(): AppError {
  return new AppError("unavailable", {
    message:
      "A revocation of this address is pending. Wait until it is on chain, then request a new challenge.",
    retryable: true,
    retryAfterSeconds: 5,
  });
}
