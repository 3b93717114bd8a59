/** An API key for an address: a challenge that is read before it is signed. */
import { challengeText } from "@working-contracts/protocol/challenge-text";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import type { Http } from "./http.js";
import type { PinnedNetwork } from "./types.js";

/** What of a viem account is used; the private key stays in it. */
export interface Signer {
  address: Address;
  signMessage(message: { message: string }): Promise<Hex>;
  // biome-ignore lint/suspicious/noExplicitAny: viem's own type is generic over the typed data.
  signTypedData(typedData: any): Promise<Hex>;
}

/** A challenge redeemed: the body that issues or revokes keys. */
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

/** Anything else that looks like a challenge could be a login elsewhere. Throws RefusedToSign. */
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
  if (message !== expected) throw new RefusedToSign("challenge", "its text is not the one of a sign-in here");
}
