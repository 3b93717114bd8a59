import type { Deployment } from "@working-contracts/protocol/deployment";

const address = (digit: string): `0x${string}` => `0x${digit.repeat(40)}`;

/** A well-formed deployment with made-up addresses. */
export const exampleDeployment: Deployment = {
  chainId: 84_532,
  networkName: "base-sepolia",
  startBlock: 7,
  domain: "contracts.example",
  factory: address("a"),
  implementation: address("b"),
  relay: address("c"),
  delegation: address("d"),
  registry: address("e"),
  protocolToken: address("f"),
  asset: { address: address("1"), name: "Test USD", version: "2", decimals: 6, symbol: "TUSD" },
};
