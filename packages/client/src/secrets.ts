/** Secrets that come from a signature which only the wallet can make, so that a lost file loses nothing. */
import type { Address, Hex } from "@working-contracts/protocol/types";
import { keccak256 } from "viem";
import { RefusedToSign } from "./errors.js";
import type { Signer } from "./wallets.js";

/** Throws RefusedToSign if the wallet signs differently each time, because the secret could then not be made again. */
export async function secretOf(
  signer: Pick<Signer, "signTypedData">,
  { purpose, ...domain }: { name: string; chainId: number; verifyingContract: Address; purpose: string },
): Promise<Hex> {
  const sign = () =>
    signer.signTypedData({
      domain,
      types: { Secret: [{ name: "purpose", type: "string" }] },
      primaryType: "Secret",
      message: { purpose },
    });
  const signature = await sign();
  if ((await sign()) === signature) return keccak256(signature);
  throw new RefusedToSign("secret", "this wallet signs differently each time, so it cannot keep a secret");
}
