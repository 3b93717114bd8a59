import type { Address, Hex } from "./types.js";

export interface ChallengeFields {
  /** Name of the service that AgentDelegation was deployed with. */
  domain: string;
  agent: Address;
  /** The Relay contract that acts for the agent. */
  operator: Address;
  factory: Address;
  chainId: number;
  /** 32 bytes. */
  nonce: Hex;
  /** Seconds since 1970. */
  issuedAt: number;
  expiresAt: number;
}

/** The text that an agent signs. AgentDelegation.challengeText rebuilds it on chain, byte for byte. */
export function challengeText(fields: ChallengeFields): string {
  return [
    `${fields.domain} asks you to sign in with your address:`,
    fields.agent.toLowerCase(),
    "",
    "Purpose: issue or revoke an API key.",
    `The holder of the key may have the operator ${fields.operator.toLowerCase()} carry out this address's contract` +
      ` actions at the escrow factory ${fields.factory.toLowerCase()} until revoked.`,
    "Signing moves no money and costs no gas.",
    "",
    `Chain ID: ${fields.chainId}`,
    `Nonce: ${fields.nonce.toLowerCase()}`,
    `Issued At: ${isoSeconds(fields.issuedAt)}`,
    `Expires At: ${isoSeconds(fields.expiresAt)}`,
  ].join("\n");
}

/** `YYYY-MM-DDTHH:MM:SSZ`. Years past 9999 have no plus sign and no leading zeros, as in IsoTime.sol. */
function isoSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z").replace(/^\+0*/, "");
}
