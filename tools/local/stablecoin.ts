/**
 * A stablecoin at the address that it has on a public network, without a fork: the test token's code, under the issuer's
 * name. On the local chain stock x402 clients then pay it with their default settings.
 */
import { readFileSync } from "node:fs";
import { type Address, createTestClient, type Hex, http, keccak256, stringToHex } from "viem";
import { createChainClients } from "../../src/chain/clients.js";

/** USDC on Base Sepolia, whose id the local chain has. */
export const LOCAL_STABLECOIN = {
  address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
  name: "USDC",
  symbol: "USDC",
  version: "2",
} as const;

/** Storage slots of OpenZeppelin's ERC-20. */
const NAME_SLOT = "0x3";
const SYMBOL_SLOT = "0x4";
const TEST_NAME = "Test USD";
const TEST_VERSION = "2";

/** Puts the test token's code, with the given name and version, at `token.address`. */
export async function placeStablecoin(
  { rpcUrl, chainId }: { rpcUrl: string; chainId: number },
  token: { address: Address; name: string; symbol: string; version: string },
): Promise<Address> {
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  const testClient = createTestClient({ mode: "anvil", chain, transport: http(rpcUrl) });
  const path = new URL("../../src/chain/bytecode.json", import.meta.url);
  const { bytecode } = JSON.parse(readFileSync(path, "utf8")) as { bytecode: { TestUSD: Hex } };
  // A creation that is called and not sent returns the code that it would deploy.
  const { data: code = "0x" } = await publicClient.call({ data: bytecode.TestUSD });

  const renamed = [
    [hashOf(TEST_NAME), hashOf(token.name)],
    [hashOf(TEST_VERSION), hashOf(token.version)],
    [shortString(TEST_NAME, 1), shortString(token.name, 1)],
    [shortString(TEST_VERSION, 1), shortString(token.version, 1)],
  ].reduce<string>((hex, [from = "", to = ""]) => hex.replaceAll(from, to), code) as Hex;
  await testClient.setCode({ address: token.address, bytecode: renamed });
  for (const [index, text] of [
    [NAME_SLOT, token.name],
    [SYMBOL_SLOT, token.symbol],
  ] as const) {
    await testClient.setStorageAt({ address: token.address, index, value: `0x${shortString(text, 2)}` });
  }
  return token.address;
}

/** An immutable of the EIP-712 domain, as the bytecode contains it. */
function hashOf(text: string): string {
  return keccak256(stringToHex(text)).slice(2);
}

/** A string under 32 bytes: the text, then `unit` times its length in the last byte (storage 2, ShortString 1). */
function shortString(text: string, unit: number): string {
  const length = (text.length * unit).toString(16).padStart(2, "0");
  return `${stringToHex(text).slice(2).padEnd(62, "0")}${length}`;
}
