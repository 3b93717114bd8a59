/** Deployment files, `deployments/<chainId>.json`, their check against the chain, and the networks we deploy to. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import {
  delegationAbi,
  escrowAbi,
  factoryAbi,
  protocolTokenAbi,
  registryAbi,
  relayAbi,
} from "@working-contracts/protocol/abi";
import { type Deployment, parseDeployment } from "@working-contracts/protocol/deployment";
import {
  type Address,
  type Chain,
  domainSeparator,
  type Hex,
  type PublicClient,
  type Transport,
  zeroAddress,
} from "viem";
import { ConfigError } from "../config.js";
import { tokenAbi } from "./token.js";

/** Reads a deployment file. Throws ConfigError with one line per fault, each naming the file. */
export function readDeployment(path: string): Deployment {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new ConfigError(`DEPLOYMENT: cannot read the file (${(cause as Error).message})`, { cause });
  }
  try {
    return parseDeployment(text, path);
  } catch (cause) {
    throw new ConfigError((cause as Error).message.replaceAll(/^/gm, "DEPLOYMENT: "), { cause });
  }
}

/** Writes a deployment file atomically. */
export function writeDeployment(path: string, deployment: Deployment): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, `${JSON.stringify(deployment, null, 2)}\n`);
  renameSync(`${path}.tmp`, path);
}

const NODE_TRIES = 3;
const NODE_PAUSE_MS = 1000;

/**
 * Throws ConfigError if the node does not read state at a block hash, or ignores the hash (EIP-1898). Without it, a
 * simulation could run on another branch than the one its result is checked against.
 */
export async function verifyNode(publicClient: PublicClient<Transport, Chain>): Promise<void> {
  const readAt = (blockHash: Hex) =>
    publicClient.request({
      method: "eth_getCode",
      params: [zeroAddress, { blockHash, requireCanonical: true }],
    });
  let known: unknown = null;
  for (let tries = 0; known === null && tries < NODE_TRIES; tries++) {
    // Behind one URL, the second request can reach a node that does not have the block yet.
    if (tries > 0) await setTimeout(NODE_PAUSE_MS);
    known = await publicClient.getBlock().then(({ hash }) => readAt(hash).catch(() => null));
  }
  const unknown = await readAt(`0x${"00".repeat(31)}01`).catch(() => null);
  if (known !== null && unknown === null) return;
  throw new ConfigError(
    "RPC_URL: the node does not read state by block hash (EIP-1898). Use another node or provider.",
  );
}

interface Deployed {
  publicClient: PublicClient<Transport, Chain>;
  deployment: Deployment;
}

/** Throws ConfigError if the node does not respond, or serves another chain than the deployment's, even with its id. */
export async function verifyChain({ publicClient, deployment }: Deployed): Promise<void> {
  const chainId = await publicClient.getChainId().catch((cause: Error) => {
    // The cause can contain the URL, and with it a key.
    throw new ConfigError("RPC_URL: the node does not respond, or does not serve Ethereum JSON-RPC", {
      cause,
    });
  });
  if (chainId !== deployment.chainId) {
    throw new ConfigError(
      `DEPLOYMENT: is for chain ${deployment.chainId}, but the node at RPC_URL serves chain ${chainId}`,
    );
  }
  const { startBlock, startBlockHash } = deployment;
  if (startBlockHash === undefined) return;
  const hash = await publicClient.getBlock({ blockNumber: BigInt(startBlock) }).then(
    (block) => block.hash,
    // A node can lack old blocks.
    () => startBlockHash,
  );
  if (hash === startBlockHash) return;
  throw new ConfigError(
    `DEPLOYMENT: block ${startBlock} has the hash ${startBlockHash}, but ${hash} at the node of RPC_URL: it serves another chain with the same id`,
  );
}

/** Checks on chain that every immutable in a deployment has the expected value. Throws ConfigError, a line per fault. */
export async function verifyDeployment({ publicClient, deployment }: Deployed): Promise<void> {
  await verifyChain({ publicClient, deployment });
  const { chainId, factory, implementation, relay, delegation, registry, protocolToken, asset } = deployment;
  const contracts = [factory, implementation, relay, delegation, registry, protocolToken, asset.address];
  for (const address of contracts) {
    if ((await publicClient.getCode({ address })) === undefined) {
      throw new ConfigError(
        `DEPLOYMENT: chain ${chainId} has no contract at ${address}; use the file that was written for this chain`,
      );
    }
  }

  const creator = { address: factory, abi: factoryAbi } as const;
  const voters = { address: registry, abi: registryAbi } as const;
  const token = { address: protocolToken, abi: protocolTokenAbi } as const;
  const delegations = { address: delegation, abi: delegationAbi } as const;
  const read = publicClient.readContract;
  const dependencies = read({ address: implementation, abi: escrowAbi, functionName: "dependencies" });
  const checks: [string, Promise<string>, string][] = [
    ["factory.IMPLEMENTATION", read({ ...creator, functionName: "IMPLEMENTATION" }), implementation],
    ["escrow.dependencies.factory", dependencies.then((known) => known.factory), factory],
    ["escrow.dependencies.asset", dependencies.then((known) => known.asset), asset.address],
    ["escrow.dependencies.operator", dependencies.then((known) => known.operator), relay],
    ["escrow.dependencies.registry", dependencies.then((known) => known.registry), registry],
    ["escrow.dependencies.rewardToken", dependencies.then((known) => known.rewardToken), protocolToken],
    ["registry.TOKEN", read({ ...voters, functionName: "TOKEN" }), protocolToken],
    ["registry.FACTORY", read({ ...voters, functionName: "FACTORY" }), factory],
    ["registry.OPERATOR", read({ ...voters, functionName: "OPERATOR" }), relay],
    ["protocolToken.FACTORY", read({ ...token, functionName: "FACTORY" }), factory],
    ["protocolToken.REGISTRY", read({ ...token, functionName: "REGISTRY" }), registry],
    ["delegation.FACTORY", read({ ...delegations, functionName: "FACTORY" }), factory],
    ["delegation.domain", read({ ...delegations, functionName: "domain" }), deployment.domain],
  ];
  const faults: string[] = [];
  if (delegation !== relay)
    faults.push(`DEPLOYMENT: \`delegation\` must be the Relay ${relay}, which keeps the delegations`);
  for (const [name, answer, expected] of checks) {
    const actual = await answer;
    if (actual.toLowerCase() !== expected.toLowerCase())
      faults.push(`DEPLOYMENT: on chain, ${name} is ${actual}, not ${expected}`);
  }
  if (faults.length > 0) throw new ConfigError(faults.join("\n"));
}

/** One line for each of `signers` that the Relay does not allow to send batches. */
export async function signerFaults({
  publicClient,
  deployment: { relay },
  signers,
}: Deployed & { signers: readonly Address[] }): Promise<string[]> {
  const faults: string[] = [];
  for (const signer of signers) {
    const isSigner = { address: relay, abi: relayAbi, functionName: "isSigner", args: [signer] } as const;
    if (!(await publicClient.readContract(isSigner)))
      faults.push(
        `RELAYER_PRIVATE_KEYS: the Relay ${relay} does not allow the signer ${signer}; its owner must call setSigner`,
      );
  }
  return faults;
}

/**
 * Public networks that the protocol can be deployed to, with their native USDC, not the bridged USDbC, as published by
 * Circle (developers.circle.com/stablecoins/usdc-contract-addresses). `name` and `version` belong to its EIP-712 domain.
 */
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
} as const;

export type NetworkName = keyof typeof NETWORKS;

/** Compares a configured network with what the node serves. Returns one line per difference. */
export async function networkFaults(
  publicClient: PublicClient<Transport, Chain | undefined>,
  name: NetworkName,
): Promise<string[]> {
  const { chainId, asset } = NETWORKS[name];
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
