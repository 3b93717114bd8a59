/** Signers of an agent: a viem account, a browser's wallet, or a contract wallet; and the secrets that their signatures give. */
import { hexToBytes, keccak256, stringToHex } from "@working-contracts/protocol/hex";
import { encryptionKeyText } from "@working-contracts/protocol/signatures";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import { textOf } from "./http.js";
import { call, dataOf, type Session } from "./session.js";

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
  if (first === undefined) throw new Error("The wallet shares no account: unlock it and allow this page");
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

/** Signs for a deployed contract wallet: `sign` returns what its ERC-1271 check accepts. Throws RefusedToSign on ERC-6492. */
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

/** A secret from a signature: no file can be lost. Throws RefusedToSign if the wallet signs differently each time. */
async function secretOf(
  signer: Pick<Signer, "signMessage">,
  { purpose, chainId, contract }: { purpose: string; chainId: number; contract: Address },
): Promise<Hex> {
  const message = `${purpose} Whoever has this signature has the secret: sign it for no one else.\n\nChain ID: ${chainId}\nContract: ${contract}`;
  const signature = await signer.signMessage({ message });
  if ((await signer.signMessage({ message })) === signature) return keccak256(signature);
  throw new RefusedToSign(
    "secret",
    "this wallet signs differently each time, so its signature yields no secret",
  );
}

/** Turns 32 bytes into an X25519 private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = "302e020100300506032b656e04220420";

/** An X25519 key (RFC 7748), to which others seal deliveries. */
export interface KeyPair {
  /** Public, base64url. */
  key: string;
  /** Private, base64url. */
  secret: string;
}

/** The agent's own keys. Throws RefusedToSign if its wallet signs differently each time, or if WebCrypto has no X25519. */
export async function ownKeysOf({ signer, network }: Session): Promise<KeyPair> {
  const secret = await secretOf(signer, {
    purpose: "Make the key with which I read deliveries on Working Contracts.",
    chainId: network.chainId,
    contract: network.factory as Address,
  });
  const pkcs8 = hexToBytes(`0x${PKCS8_PREFIX}${secret.slice(2)}`);
  const imported = await crypto.subtle
    .importKey("pkcs8", pkcs8, { name: "X25519" }, true, ["deriveBits"])
    .catch((error: Error) => {
      if (error.name !== "NotSupportedError") throw error;
      throw new RefusedToSign("X25519", "WebCrypto has no X25519 here, so deliveries cannot be sealed");
    });
  const { x = "", d = "" } = await crypto.subtle.exportKey("jwk", imported);
  return { key: x, secret: d };
}

/** Publishes the agent's key, unless the service serves it already. Throws RefusedToSign for a contract wallet. */
export async function publishKey(session: Session, { key }: KeyPair): Promise<void> {
  const { signer } = session;
  if (signer.isContract)
    throw new RefusedToSign("wallet", "senders cannot check a contract wallet's signature");
  if ((await servedKey(session, signer.address)).key === key) return;
  const signature = await signer.signMessage({ message: keyText(session, signer.address, key) });
  await call(session, "POST /v1/agents/me/encryption-key", { body: { key, signature } });
}

/** The encryption key of an agent as the service shows it. Its signature is not checked. */
export const servedKey = (session: Session, address: string) =>
  dataOf(session, "GET /v1/agents/{address}/encryption-key", { path: { address } });

/** The text with which an address publishes a key at this service, on this chain. */
export const keyText = ({ network }: Session, address: string, key: string): string =>
  encryptionKeyText({ ...network, address: address as Address, key });

/** The salt of the signer's vote, for one service: others could ask to open a commitment. Throws as `secretOf` does. */
export function voteSalt(
  signer: Pick<Signer, "signMessage">,
  { domain, chainId, escrow }: { domain: string; chainId: number; escrow: Address },
): Promise<Hex> {
  const purpose = `Seal my vote on a Working Contract at ${domain}.`;
  return secretOf(signer, { purpose, chainId, contract: escrow });
}
