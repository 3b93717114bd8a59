/** Secrets that come from a signature which only the wallet can make, so that a lost file loses nothing. */
import { keccak256 } from "@working-contracts/protocol/hex";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import type { Signer } from "./wallets.js";

/** Throws RefusedToSign if the wallet signs differently each time, because the secret could then not be made again. */
export async function secretOf(
  signer: Pick<Signer, "signMessage">,
  { purpose, chainId, contract }: { purpose: string; chainId: number; contract: Address },
): Promise<Hex> {
  const message = `${purpose} Whoever has this signature has the secret: sign it for no one else.\n\nChain ID: ${chainId}\nContract: ${contract}`;
  const signature = await signer.signMessage({ message });
  if ((await signer.signMessage({ message })) === signature) return keccak256(signature);
  throw new RefusedToSign("secret", "this wallet signs differently each time, so it cannot keep a secret");
}
