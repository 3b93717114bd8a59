import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_ASSETS } from "@x402/evm";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import { getAddress } from "viem";
import { afterAll, describe, expect, it } from "vitest";
import {
  NETWORKS,
  type NetworkName,
  readDeployment,
  writeDeployment,
} from "../../../src/chain/deployment.js";
import { exampleDeployment as deployment } from "../../support/deployment.js";

const dir = mkdtempSync(join(tmpdir(), "deployment-"));
afterAll(() => rmSync(dir, { recursive: true }));

describe("a deployment file", () => {
  it("reads back as written, and leaves no other file behind", () => {
    const path = join(dir, "deployments", "84532.json");
    writeDeployment(path, deployment);
    expect(readDeployment(path)).toEqual(deployment);
    expect(readdirSync(join(dir, "deployments"))).toEqual(["84532.json"]);
  });

  it("has its addresses lower-cased", () => {
    const path = join(dir, "upper.json");
    writeFileSync(path, JSON.stringify({ ...deployment, relay: `0x${"C".repeat(40)}` }));
    expect(readDeployment(path).relay).toBe(deployment.relay);
  });

  it("is rejected with one line per fault", () => {
    const path = join(dir, "faulty.json");
    writeFileSync(path, JSON.stringify({ ...deployment, chainId: "84532", relay: "0x12" }));
    expect(() => readDeployment(path)).toThrow(
      `DEPLOYMENT: ${path}: chainId: Invalid input: expected number, received string\nDEPLOYMENT: ${path}: relay: not an address`,
    );
  });
});

it.each(Object.keys(NETWORKS) as NetworkName[])("%s has the stablecoin that x402 clients know", (name) => {
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
