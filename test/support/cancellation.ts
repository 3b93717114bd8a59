/** Cancels an EIP-3009 authorization at the token. Anyone can send the call with the payer's signature. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import { type Address, encodeFunctionData, type Hex, parseAbi } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";

const abi = parseAbi(["function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)"]);

/** The call that cancels the payer's authorization with this nonce. */
export async function cancellationOf(
  { asset, chainId }: Pick<Deployment, "asset" | "chainId">,
  payer: PrivateKeyAccount,
  nonce: Hex,
): Promise<{ to: Address; data: Hex }> {
  const signature = await payer.signTypedData({
    domain: { name: asset.name, version: asset.version, chainId, verifyingContract: asset.address },
    types: {
      CancelAuthorization: [
        { name: "authorizer", type: "address" },
        { name: "nonce", type: "bytes32" },
      ],
    },
    primaryType: "CancelAuthorization",
    message: { authorizer: payer.address, nonce },
  });
  return { to: asset.address, data: encodeFunctionData({ abi, args: [payer.address, nonce, signature] }) };
}
