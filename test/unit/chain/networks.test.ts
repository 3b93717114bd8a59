import { DEFAULT_ASSETS } from "@x402/evm";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import { getAddress } from "viem";
import { expect, test } from "vitest";
import { NETWORKS, type NetworkName } from "../../../src/chain/networks.js";

test.each(Object.keys(NETWORKS) as NetworkName[])("%s has the stablecoin that x402 clients know", (name) => {
  const { chainId, asset } = NETWORKS[name];
  expect(EVM_NETWORK_CHAIN_ID_MAP[name]).toBe(chainId);
  const {
    asset: address,
    name: domainName,
    version,
    decimals,
  } = DEFAULT_ASSETS[`eip155:${chainId}`]?.[0] ?? {};
  expect(asset).toEqual({ address, name: domainName, version, decimals });
  expect(getAddress(asset.address)).toBe(asset.address);
});
