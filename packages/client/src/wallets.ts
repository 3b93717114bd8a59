/** Signers of an agent: a viem account, a browser's wallet, or a contract wallet. */
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import { textOf } from "./http.js";

/** A viem account, or anything that signs like one. Private keys stay inside. */
export interface Signer {
  address: Address;
  /** Others cannot check its signatures without a node, so it publishes no encryption key. */
  isContract?: boolean;
  signMessage(message: { message: string }): Promise<Hex>;
  // biome-ignore lint/suspicious/noExplicitAny: viem's own type is generic over the typed data.
  signTypedData(typedData: any): Promise<Hex>;
}

/** The part of an EIP-1193 provider that is used. */
export interface Eip1193Provider {
  // biome-ignore lint/suspicious/noExplicitAny: each wallet and each library types the methods differently.
  request(request: any): Promise<any>;
}

/** Signs with a wallet behind an EIP-1193 provider, such as one found by EIP-6963; by default with its first account. */
export async function providerSigner(provider: Eip1193Provider, address?: string): Promise<Signer> {
  const [first] =
    address === undefined ? await provider.request({ method: "eth_requestAccounts" }) : [address];
  if (first === undefined) throw new Error("The wallet shares no account");
  const account = first as Address;
  return {
    address: account,
    signMessage: ({ message }) =>
      provider.request({ method: "personal_sign", params: [stringToHex(message), account] }),
    signTypedData: (typedData) =>
      provider.request({ method: "eth_signTypedData_v4", params: [account, serialized(typedData)] }),
  };
}

const DOMAIN_FIELDS = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
];

/** Typed data as JSON, as wallets expect it: with the type of its domain, and with integers as text. */
function serialized({ types, ...typedData }: { types: object; domain: object }): string {
  const EIP712Domain = DOMAIN_FIELDS.filter(({ name }) => name in typedData.domain);
  return textOf({ types: { EIP712Domain, ...types }, ...typedData });
}

/** Loaded with the first use: few agents are contracts. */
const hashes = () => import("./hashes.js");

/** Ends a signature of a wallet that is not deployed yet (ERC-6492). */
const ERC6492_SUFFIX = "6492".repeat(16);

/**
 * Signs for a contract wallet (ERC-1271): `sign` returns what the wallet's `isValidSignature` accepts for a hash. The
 * wallet must be deployed, because the escrows ask it on chain: throws RefusedToSign on an ERC-6492 signature.
 */
export function contractWallet(address: string, sign: (hash: Hex) => Promise<Hex>): Signer {
  const deployed = async (hash: Hex): Promise<Hex> => {
    const signature = await sign(hash);
    if (!signature.endsWith(ERC6492_SUFFIX)) return signature;
    throw new RefusedToSign("wallet", `${address} is not deployed yet. Deploy it, then sign again`);
  };
  return {
    address: address as Address,
    isContract: true,
    signMessage: async ({ message }) => deployed((await hashes()).messageHash(message)),
    signTypedData: async (typedData) => deployed((await hashes()).typedDataHash(typedData)),
  };
}

/**
 * A secret that comes from a signature which only the wallet can make, so that a lost file loses nothing. Throws
 * RefusedToSign if the wallet signs differently each time, because the secret could then not be made again.
 */
export async function secretOf(
  signer: Pick<Signer, "signMessage">,
  { purpose, chainId, contract }: { purpose: string; chainId: number; contract: Address },
): Promise<Hex> {
  const message = `${purpose} Whoever has this signature has the secret: sign it for no one else.\n\nChain ID: ${chainId}\nContract: ${contract}`;
  const signature = await signer.signMessage({ message });
  if ((await signer.signMessage({ message })) === signature) return keccak256(signature);
  throw new RefusedToSign("secret", "this wallet signs differently each time, so it cannot keep a secret");
}
