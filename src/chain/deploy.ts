/** The single deploy path for tests, local networks and real chains. */
import { readFileSync } from "node:fs";
import {
  delegationAbi,
  escrowAbi,
  factoryAbi,
  protocolTokenAbi,
  registryAbi,
  relayAbi,
  testUsdAbi,
} from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { DEFAULT_PARAMETERS, type Parameters } from "@working-contracts/protocol/parameters";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import {
  type Abi,
  type Address,
  type Chain,
  concat,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  getContractAddress,
  type Hex,
  isAddressEqual,
  keccak256,
  type PublicClient,
  parseEther,
  type TransactionReceipt,
  type Transport,
} from "viem";
import { included, type Sender, type SentTransaction, send } from "./inclusion.js";

/** The contracts that are deployed directly; the factory contains the escrow. */
export const CONTRACTS = [
  "TestUSD",
  "Relay",
  "WorkingContractFactory",
  "AgentDelegation",
  "BackupAgentRegistry",
  "ProtocolToken",
] as const;
type ContractName = (typeof CONTRACTS)[number];

/** Maximum protocol tokens minted as rewards per day; the owner can change it. */
const DEFAULT_DAILY_CAP = parseEther("100000");

export interface DeployOptions extends Sender {
  /** Owns factory, token and Relay. If it is not the deployer, it must still accept ownership of the Relay. */
  owner: Address;
  treasury: Address;
  reviewer: Address;
  /** Accounts allowed to send the Relay's batches. */
  signers: readonly Address[];
  domain: string;
  /** The stablecoin; if absent, a TestUSD is deployed. */
  asset?: Address | undefined;
  /** Parameters that differ from the specification's. */
  parameters?: Partial<Parameters> | undefined;
}

/**
 * Deploys the protocol, verifies it with {@link verifyDeployment}, and returns its addresses. The deployer's account
 * must send nothing else meanwhile, because the contracts refer to each other by addresses predicted from its nonce.
 */
export async function deployProtocol(options: DeployOptions): Promise<Deployment> {
  const { walletClient, publicClient, owner, signers, domain } = options;
  const deployer = walletClient.account.address;
  const nonce = await publicClient.getTransactionCount({ address: deployer, blockTag: "pending" });
  const first = options.asset === undefined ? nonce + 1 : nonce;
  const at = (position: number) => getContractAddress({ from: deployer, nonce: BigInt(first + position) });

  const asset = options.asset ?? getContractAddress({ from: deployer, nonce: BigInt(nonce) });
  const [relay, factory, delegation, registry, protocolToken] = [at(0), at(1), at(2), at(3), at(4)];
  const parameters = { ...DEFAULT_PARAMETERS, ...options.parameters };
  const dependencies = { factory, asset, operator: relay, delegation, registry, rewardToken: protocolToken };

  const creations: Hex[] = [
    ...(options.asset === undefined ? [creation("TestUSD", testUsdAbi, [])] : []),
    creation("Relay", relayAbi, [deployer]),
    creation("WorkingContractFactory", factoryAbi, [
      owner,
      options.treasury,
      options.reviewer,
      parameters,
      dependencies,
    ]),
    creation("AgentDelegation", delegationAbi, [factory, domain]),
    creation("BackupAgentRegistry", registryAbi, [protocolToken, factory, relay, delegation]),
    creation("ProtocolToken", protocolTokenAbi, [owner, factory, registry, DEFAULT_DAILY_CAP]),
  ];
  const receipts = await carryOut(
    options,
    creations.map((data, index) => ({ data, nonce: nonce + index })),
  );

  const grants = signers.map((signer) =>
    encodeFunctionData({ abi: relayAbi, functionName: "setSigner", args: [signer, true] }),
  );
  if (!isAddressEqual(owner, deployer)) {
    grants.push(encodeFunctionData({ abi: relayAbi, functionName: "transferOwnership", args: [owner] }));
  }
  const next = nonce + creations.length;
  await carryOut(
    options,
    grants.map((data, index) => ({ to: relay, data, nonce: next + index })),
  );

  const lower = (address: Address) => address.toLowerCase() as Address;
  const deployment: Deployment = {
    chainId: walletClient.chain.id,
    networkName: networkName(walletClient.chain.id),
    startBlock: Number(receipts.map((receipt) => receipt.blockNumber).sort((a, b) => (a < b ? -1 : 1))[0]),
    domain,
    factory: lower(factory),
    implementation: lower(
      await publicClient.readContract({ address: factory, abi: factoryAbi, functionName: "IMPLEMENTATION" }),
    ),
    relay: lower(relay),
    delegation: lower(delegation),
    registry: lower(registry),
    protocolToken: lower(protocolToken),
    asset: await describeAsset(publicClient, asset),
  };
  await verifyDeployment({ publicClient, deployment, signers });
  return deployment;
}

/**
 * Checks on chain that every immutable in a deployment has the expected value and that `signers` are allowed to send
 * batches. Throws an error with one line per fault.
 */
export async function verifyDeployment({
  publicClient,
  deployment,
  signers,
}: {
  publicClient: PublicClient<Transport, Chain>;
  deployment: Deployment;
  signers: readonly Address[];
}): Promise<void> {
  const chainId = await publicClient.getChainId();
  if (chainId !== deployment.chainId) {
    throw new Error(`The deployment is for chain ${deployment.chainId}, the node serves chain ${chainId}.`);
  }
  const { factory, implementation, relay, delegation, registry, protocolToken, asset } = deployment;
  for (const address of [
    factory,
    implementation,
    relay,
    delegation,
    registry,
    protocolToken,
    asset.address,
  ]) {
    if ((await publicClient.getCode({ address })) === undefined) {
      throw new Error(
        `Chain ${chainId} has no contract at ${address}. Use the deployment file for this chain.`,
      );
    }
  }

  const escrow = { address: implementation, abi: escrowAbi } as const;
  const voters = { address: registry, abi: registryAbi } as const;
  const token = { address: protocolToken, abi: protocolTokenAbi } as const;
  const delegations = { address: delegation, abi: delegationAbi } as const;
  const read = publicClient.readContract;
  const checks: [string, Promise<string>, string][] = [
    [
      "factory.IMPLEMENTATION",
      read({ address: factory, abi: factoryAbi, functionName: "IMPLEMENTATION" }),
      implementation,
    ],
    ["escrow.FACTORY", read({ ...escrow, functionName: "FACTORY" }), factory],
    ["escrow.ASSET", read({ ...escrow, functionName: "ASSET" }), asset.address],
    ["escrow.OPERATOR", read({ ...escrow, functionName: "OPERATOR" }), relay],
    ["escrow.DELEGATION", read({ ...escrow, functionName: "DELEGATION" }), delegation],
    ["escrow.REGISTRY", read({ ...escrow, functionName: "REGISTRY" }), registry],
    ["escrow.REWARD_TOKEN", read({ ...escrow, functionName: "REWARD_TOKEN" }), protocolToken],
    ["registry.TOKEN", read({ ...voters, functionName: "TOKEN" }), protocolToken],
    ["registry.FACTORY", read({ ...voters, functionName: "FACTORY" }), factory],
    ["registry.OPERATOR", read({ ...voters, functionName: "OPERATOR" }), relay],
    ["registry.DELEGATION", read({ ...voters, functionName: "DELEGATION" }), delegation],
    ["protocolToken.FACTORY", read({ ...token, functionName: "FACTORY" }), factory],
    ["protocolToken.REGISTRY", read({ ...token, functionName: "REGISTRY" }), registry],
    ["delegation.FACTORY", read({ ...delegations, functionName: "FACTORY" }), factory],
    ["delegation.domain", read({ ...delegations, functionName: "domain" }), deployment.domain],
  ];
  const faults: string[] = [];
  for (const [name, answer, expected] of checks) {
    const actual = await answer;
    if (actual.toLowerCase() !== expected.toLowerCase())
      faults.push(`${name} is ${actual}, not ${expected}.`);
  }
  for (const signer of signers) {
    const allowed = await read({ address: relay, abi: relayAbi, functionName: "isSigner", args: [signer] });
    if (!allowed)
      faults.push(`The Relay ${relay} does not allow the signer ${signer}: its owner must call setSigner.`);
  }
  if (faults.length > 0) throw new Error(faults.join("\n"));
}

/** Hash of the compiled contracts. This code cannot use a chain where contracts with a different hash are deployed. */
export function contractsHash(): Hex {
  return keccak256(concat(CONTRACTS.map((name) => keccak256(bytecode(name)))));
}

function creation(name: ContractName, abi: Abi, args: readonly unknown[]): Hex {
  return encodeDeployData({ abi, bytecode: bytecode(name), args });
}

function bytecode(name: ContractName): Hex {
  const path = new URL("./bytecode.json", import.meta.url);
  return (JSON.parse(readFileSync(path, "utf8")) as { bytecode: Record<ContractName, Hex> }).bytecode[name];
}

async function carryOut(
  sender: Sender,
  calls: Pick<SentTransaction["request"], "to" | "data" | "nonce">[],
): Promise<TransactionReceipt[]> {
  const sent: SentTransaction[] = [];
  for (const call of calls) sent.push(await send(sender, call));
  const receipts: TransactionReceipt[] = [];
  for (const one of sent) receipts.push(await included(sender, one));
  return receipts;
}

async function describeAsset(
  publicClient: PublicClient<Transport, Chain>,
  address: Address,
): Promise<Deployment["asset"]> {
  const token = { address: getAddress(address), abi: testUsdAbi } as const;
  const [name, version, decimals, symbol] = await Promise.all([
    publicClient.readContract({ ...token, functionName: "name" }),
    publicClient.readContract({ ...token, functionName: "version" }),
    publicClient.readContract({ ...token, functionName: "decimals" }),
    publicClient.readContract({ ...token, functionName: "symbol" }),
  ]);
  if (decimals !== 6)
    throw new Error(`The stablecoin ${address} has ${decimals} decimals; the API requires 6.`);
  return { address: address.toLowerCase() as Address, name, version, decimals, symbol };
}

function networkName(chainId: number): string {
  const known = Object.entries(EVM_NETWORK_CHAIN_ID_MAP).find(([, id]) => id === chainId);
  return known?.[0] ?? `eip155:${chainId}`;
}
