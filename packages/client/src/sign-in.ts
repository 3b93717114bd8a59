/** Sign-in: the challenge is checked before it is signed. */
import { challengeText } from "@working-contracts/protocol/challenge-text";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import type { Http } from "./http.js";
import type { PinnedNetwork } from "./types.js";

/** The part of a viem account that is used; the private key stays inside. */
export interface Signer {
  address: Address;
  signMessage(message: { message: string }): Promise<Hex>;
  // biome-ignore lint/suspicious/noExplicitAny: viem's own type is generic over the typed data.
  signTypedData(typedData: any): Promise<Hex>;
}

/** Requests a challenge and signs it. Returns the body with which API keys are issued or revoked. */
export async function signChallenge(
  http: Http,
  { signer, network }: { signer: Signer; network: PinnedNetwork },
): Promise<{ challengeId: string; signature: Hex }> {
  const path = `/v1/agents/${signer.address.toLowerCase()}/challenge`;
  const { json } = await http.send({ method: "POST", path, repeatable: true });
  const { challengeId, message } = json.data as { challengeId: string; message: string };
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
