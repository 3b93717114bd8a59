/** Salts and records of votes, through the service and on chain. */
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { PinnedNetwork } from "./types.js";
import { type Signer, secretOf } from "./wallets.js";

/** The key of `Submitted` for the contracts on which an agent cast sealed votes. */
export const votesKey = ({ factory }: Pick<PinnedNetwork, "factory">): string => `votes-${factory}`;

/** The salt of the signer's vote on a contract. Throws RefusedToSign if its wallet signs differently each time. */
export function voteSalt(
  signer: Pick<Signer, "signMessage">,
  { chainId, escrow }: { chainId: number; escrow: Address },
): Promise<Hex> {
  return secretOf(signer, { purpose: "Seal my vote on a Working Contract.", chainId, contract: escrow });
}
