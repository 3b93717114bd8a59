import { hexToBytes, keccak256, size, sliceHex, toHex } from "@working-contracts/protocol/hex";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { recover } from "tiny-secp256k1";

/** The library's message for an r or s that is zero or not below the curve's order. */
const OUT_OF_RANGE = "Expected Signature";

/**
 * The address whose key signed `digest`, in lower case; null if the signature is not 65 bytes, or r or s is out of range or
 * not on the curve. `signature`: r, s and v of 27 or 28. By libsecp256k1: viem's recovery in JavaScript takes six times as
 * long. Throws if `digest` is not 32 bytes.
 */
export function recoverSigner(digest: Hex, signature: Hex): Address | null {
  if (size(signature) !== 65) return null;
  const parity = signature.endsWith("1c") ? 1 : 0;
  try {
    const key = recover(hexToBytes(digest), hexToBytes(sliceHex(signature, 0, 64)), parity);
    return key && sliceHex(keccak256(toHex(key.subarray(1))), 12);
  } catch (error) {
    if ((error as Error).message === OUT_OF_RANGE) return null;
    throw error;
  }
}
