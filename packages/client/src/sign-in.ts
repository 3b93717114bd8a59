/** Sign-in: the challenge is checked before it is signed. */
import { challengeText } from "@working-contracts/protocol/challenge-text";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import { call, dataOf, type Session } from "./session.js";
import type { PinnedNetwork } from "./types.js";

/** The part of a viem account that is used; the private key stays inside. */
export interface Signer {
  address: Address;
  signMessage(message: { message: string }): Promise<Hex>;
  // biome-ignore lint/suspicious/noExplicitAny: viem's own type is generic over the typed data.
  signTypedData(typedData: any): Promise<Hex>;
}

/** Requests a challenge and signs it. Returns the body with which API keys are issued or revoked. */
export async function signChallenge({
  http,
  signer,
  network,
}: Pick<Session, "http" | "signer" | "network">): Promise<{ challengeId: string; signature: Hex }> {
  const path = { address: signer.address };
  const { challengeId, message } = await dataOf(
    call({ http, apiKey: "" }, "POST /v1/agents/{address}/challenge", { path }),
  );
  requireChallenge(message, signer.address, network);
  return { challengeId, signature: await signer.signMessage({ message }) };
}

/**
 * Throws RefusedToSign unless the text is exactly this service's challenge. Any other text could be a login for
 * another service.
 */
export function requireChallenge(message: string, address: Address, network: PinnedNetwork): void {
  const line = (name: string): string => new RegExp(`^${name}: (.+)$`, "m").exec(message)?.[1] ?? "";
  const [issuedAt, expiresAt] = [line("Issued At"), line("Expires At")].map(
    (time) => Date.parse(time) / 1000,
  );
  const nonce = line("Nonce");
  const isDated = Number.isInteger(issuedAt) && Number.isInteger(expiresAt) && /^0x[0-9a-f]{64}$/.test(nonce);
  const expected = isDated
    ? challengeText({
        domain: network.domain,
        agent: address,
        operator: network.relay as Address,
        factory: network.factory as Address,
        chainId: network.chainId,
        nonce: nonce as Hex,
        issuedAt: issuedAt as number,
        expiresAt: expiresAt as number,
      })
    : null;
  if (message !== expected)
    throw new RefusedToSign("challenge", "its text is not this service's sign-in text");
}
