/** The public networks the protocol can be deployed to, each with its native stablecoin. */
import { type Address, type Chain, domainSeparator, type PublicClient, parseAbi, type Transport } from "viem";

export interface KnownNetwork {
  chainId: number;
  /** As published by Circle; `name` and `version` belong to its EIP-712 domain. */
  asset: { address: Address; name: string; version: string; decimals: number };
}

/** Native USDC (developers.circle.com/stablecoins/usdc-contract-addresses), not the bridged USDbC. */
export const NETWORKS = {
  base: {
    chainId: 8453,
    asset: {
      address: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      name: "USD Coin",
      version: "2",
      decimals: 6,
    },
  },
  "base-sepolia": {
    chainId: 84_532,
    asset: {
      address: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
      name: "USDC",
      version: "2",
      decimals: 6,
    },
  },
} as const satisfies Record<string, KnownNetwork>;

export type NetworkName = keyof typeof NETWORKS;

const tokenAbi = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
]);

/** Compares a configured network with what the node serves. Returns one line per difference. */
export async function networkFaults(
  publicClient: PublicClient<Transport, Chain | undefined>,
  name: NetworkName,
): Promise<string[]> {
  const { chainId, asset }: KnownNetwork = NETWORKS[name];
  const actual = await publicClient.getChainId();
  if (actual !== chainId) return [`${name} is chain ${chainId}, the node serves chain ${actual}.`];
  if ((await publicClient.getCode({ address: asset.address })) === undefined) {
    return [`There is no contract at ${asset.address}, the stablecoin's address on ${name}.`];
  }

  const { address: verifyingContract, decimals, ...domain } = asset;
  const expected = {
    name: domain.name,
    version: domain.version,
    decimals,
    DOMAIN_SEPARATOR: domainSeparator({ domain: { ...domain, chainId, verifyingContract } }),
  };
  const faults = (Object.keys(expected) as (keyof typeof expected)[]).map(async (functionName) => {
    const call = { address: verifyingContract, abi: tokenAbi, functionName } as const;
    const answer = await publicClient.readContract(call).catch(() => "nothing");
    if (answer === expected[functionName]) return null;
    return `${functionName}() of ${verifyingContract} is ${answer}, not ${expected[functionName]}.`;
  });
  return (await Promise.all(faults)).filter((fault) => fault !== null);
}
