/** Signatures as the chain judges them: AgentDelegation for sign-ins, AgentSignatures for actions. */
import { hexToBytes, keccak256, size, sliceHex, toHex } from "@working-contracts/protocol/hex";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { recover } from "tiny-secp256k1";
import {
  concat,
  encodeFunctionData,
  isErc6492Signature,
  numberToHex,
  type PublicClient,
  parseAbi,
  slice,
} from "viem";
import { failedExecution } from "./errors.js";

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

/** A valid signature is returned in the form that the chain accepts; for a key's: 65 bytes, low s, v 27 or 28. */
export type SignatureVerdict =
  | { ok: true; signature: Hex }
  | { ok: false; reason: "mismatch" | "refused_by_wallet" | "not_deployed" };

const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Enough for a multisig of dozens of owners; an operation that needs more could not be performed. */
const CALL_GAS = 3_000_000n;
const HEX_BYTES = /^0x([0-9a-fA-F]{2})+$/;
const erc1271Abi = parseAbi([
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);
/** A returned `bytes4` is padded to a word; OpenZeppelin's SignatureChecker compares the whole word. */
const ERC1271_MAGIC_WORD = `0x1626ba7e${"0".repeat(56)}`;

/**
 * Whether `address` signed `hash`: by ERC-1271 if the address has code, otherwise by recovery. Throws only if the node
 * does not respond.
 */
export async function verifySignature(
  publicClient: Pick<PublicClient, "getCode" | "call">,
  { address, hash, signature }: { address: Address; hash: Hex; signature: string },
): Promise<SignatureVerdict> {
  if (!HEX_BYTES.test(signature)) return { ok: false, reason: "mismatch" };
  const bytes = signature.toLowerCase() as Hex;
  if (isErc6492Signature(bytes)) return { ok: false, reason: "not_deployed" };
  const code = await publicClient.getCode({ address });
  if (code === undefined || code === "0x") return recoverable(bytes, hash, address);
  const answer = await askWallet(publicClient, { address, hash, signature: bytes });
  return answer === ERC1271_MAGIC_WORD
    ? { ok: true, signature: bytes }
    : { ok: false, reason: "refused_by_wallet" };
}

/** As AgentSignatures does, by recovery first: the key of an account that runs code (EIP-7702) can sign its actions. */
export async function verifyActionSignature(
  publicClient: Pick<PublicClient, "getCode" | "call">,
  signed: { address: Address; hash: Hex; signature: string },
): Promise<SignatureVerdict> {
  const { address, hash, signature } = signed;
  const bytes = HEX_BYTES.test(signature) ? (signature.toLowerCase() as Hex) : null;
  const recovered = bytes && recoverable(bytes, hash, address);
  return recovered?.ok ? recovered : verifySignature(publicClient, signed);
}

function recoverable(bytes: Hex, hash: Hex, address: Address): SignatureVerdict {
  const signature = canonical(bytes);
  if (signature === null) return { ok: false, reason: "mismatch" };
  return recoverSigner(hash, signature) === address
    ? { ok: true, signature }
    : { ok: false, reason: "mismatch" };
}

/** The one form that OpenZeppelin's ECDSA accepts; null if the bytes are not an ECDSA signature. */
function canonical(bytes: Hex): Hex | null {
  let s: bigint;
  let parity: number;
  if (size(bytes) === 65) {
    const last = Number(slice(bytes, 64));
    if (![0, 1, 27, 28].includes(last)) return null;
    s = BigInt(slice(bytes, 32, 64));
    parity = last % 27;
  } else if (size(bytes) === 64) {
    // EIP-2098: the parity is the highest bit of s.
    const word = BigInt(slice(bytes, 32));
    s = word & ((1n << 255n) - 1n);
    parity = Number(word >> 255n);
  } else return null;
  if (s > CURVE_ORDER) return null;
  if (s > CURVE_ORDER / 2n) {
    s = CURVE_ORDER - s;
    parity = 1 - parity;
  }
  return `${slice(bytes, 0, 32)}${numberToHex(s, { size: 32 }).slice(2)}${numberToHex(27 + parity).slice(2)}`;
}

/**
 * Init code that calls `address` with the calldata behind it, and returns a zero byte and the first word of the answer; it
 * reverts if there is none. A result must not start with 0xef (EIP-3541).
 */
const firstWordOf = (address: Address): Hex =>
  `0x60206001603838038060385f395f73${address.slice(2)}5afa601f3d11166030575f5ffd5b5f5f5360215ff3`;

/**
 * The first word of what the wallet's code answers about the signature (ERC-1271); null if it reverts. A wallet can answer
 * with megabytes, which the node would send, in the same response as other callers' answers.
 */
export async function askWallet(
  client: Pick<PublicClient, "call">,
  { address, hash, signature }: { address: Address; hash: Hex; signature: Hex },
): Promise<Hex | null> {
  const question = { abi: erc1271Abi, functionName: "isValidSignature", args: [hash, signature] } as const;
  const data = concat([firstWordOf(address), encodeFunctionData(question)]);
  const answer = await callOrRevert(client, { data });
  return answer && sliceHex(answer, 1);
}

/** The call's return data, or null if it reverts; throws if the node does not answer. */
export async function callOrRevert(
  client: Pick<PublicClient, "call">,
  call: { account?: Address; to?: Address; data: Hex },
): Promise<Hex | null> {
  try {
    const { data } = await client.call({ ...call, gas: CALL_GAS });
    return data ?? "0x";
  } catch (error) {
    if (failedExecution(error) !== null) return null;
    throw error;
  }
}
