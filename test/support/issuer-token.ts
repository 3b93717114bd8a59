/**
 * Places a stablecoin at the address that it has on a public network, without a fork: the test token's code under the
 * issuer's name.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import { type Address, createTestClient, type Hex, http, keccak256, stringToHex } from "viem";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { ROOT } from "../../src/root.js";
import { localAccount } from "../../tools/local/network.js";

/** Storage slot of the name in OpenZeppelin's ERC-20. */
const NAME_SLOT = "0x3";
const SYMBOL_SLOT = "0x4";
const TEST_NAME = "Test USD";
const TEST_VERSION = "2";

/** Deploys the test token, and puts its code with another name and version at `token.address`. */
export async function placeIssuerToken(
  { rpcUrl, chainId }: { rpcUrl: string; chainId: number },
  token: { address: Address; name: string; symbol: string; version: string },
): Promise<void> {
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  const testClient = createTestClient({ mode: "anvil", chain, transport: http(rpcUrl) });
  const deployer = createSigningClient({ rpcUrl, chain, account: localAccount(9) });
  const { bytecode } = JSON.parse(readFileSync(join(ROOT, "out/TestUSD.sol/TestUSD.json"), "utf8"));
  const hash = await deployer.deployContract({ abi: testUsdAbi, bytecode: bytecode.object as Hex, args: [] });
  const { contractAddress } = await publicClient.waitForTransactionReceipt({ hash });
  const code = await publicClient.getCode({ address: contractAddress as Address });

  const renamed = [
    [word(TEST_NAME), word(token.name)],
    [word(TEST_VERSION), word(token.version)],
  ].reduce((hex, [from = "", to = ""]) => hex.replaceAll(from, to), code as string) as Hex;
  await testClient.setCode({ address: token.address, bytecode: renamed });
  for (const [index, text] of [
    [NAME_SLOT, token.name],
    [SYMBOL_SLOT, token.symbol],
  ] as const) {
    await testClient.setStorageAt({ address: token.address, index, value: shortString(text) });
  }
}

/** An immutable of the EIP-712 domain, as the bytecode contains it. */
function word(text: string): string {
  return keccak256(stringToHex(text)).slice(2);
}

/** Solidity's storage of a string under 32 bytes: the text, with twice its length in the last byte. */
function shortString(text: string): Hex {
  return `0x${stringToHex(text).slice(2).padEnd(62, "0")}${(text.length * 2).toString(16).padStart(2, "0")}`;
}
