/** The single deploy path for tests, local networks and real chains. */
import { readFileSync } from "node:fs";
import {
  factoryAbi,
  protocolTokenAbi,
  registryAbi,
  relayAbi,
  testUsdAbi,
} from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { DEFAULT_PARAMETERS, type Parameters } from "@working-contracts/protocol/terms";
import {
  type Abi,
  type Address,
  BaseError,
  type Chain,
  concat,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  getContractAddress,
  type Hash,
  type Hex,
  isAddressEqual,
  keccak256,
  type LocalAccount,
  type PublicClient,
  parseEther,
  RpcRequestError,
  type TransactionReceipt,
  type Transport,
  type WalletClient,
  withRetry,
} from "viem";
import { shortNameOf } from "./clients.js";
import { signerFaults, verifyDeployment } from "./deployment.js";

/** The contracts that are deployed directly; the factory contains the escrow. */
export const CONTRACTS = [
  "TestUSD",
  "Relay",
  "WorkingContractFactory",
  "BackupAgentRegistry",
  "ProtocolToken",
] as const;
type ContractName = (typeof CONTRACTS)[number];

/** Seconds for which a grant of protocol tokens, or a higher daily cap, is public before it takes effect. */
const DEFAULT_GRANT_DELAY = 7 * 86_400;

/** Maximum protocol tokens minted as rewards per day; the owner can change it. docs/trust.md says what ten seats mean. */
const DAILY_CAP = parseEther("10000");
/** The most that the token allows, so that no reward waits in tests. */
const TEST_DAILY_CAP = parseEther("100000");

/** Of a call to the Relay. A node behind the same URL that does not have the Relay yet would estimate too little. */
const CALL_GAS = 150_000n;
const UNTIL_EVERY_NODE_HAS_THEM = { retryCount: 30, delay: 1_000 };

export interface DeployOptions extends Sender {
  /** Owns factory, token and Relay. If it is not the deployer, it must still accept ownership of the Relay. */
  owner: Address;
  treasury: Address;
  reviewer: Address;
  /** Accounts allowed to send the Relay's batches. */
  signers: readonly Address[];
  domain: string;
  /** Seconds between the announcement of a token grant, or a higher daily cap, and its effect: 7 days, or 0 on test networks. */
  grantDelay?: number | undefined;
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
  const { walletClient, publicClient, owner, signers, domain, grantDelay = DEFAULT_GRANT_DELAY } = options;
  const dailyCap = grantDelay === 0 ? TEST_DAILY_CAP : DAILY_CAP;
  const deployer = walletClient.account.address;
  const nonce = await publicClient.getTransactionCount({ address: deployer, blockTag: "pending" });
  const first = options.asset === undefined ? nonce + 1 : nonce;
  const at = (position: number) => getContractAddress({ from: deployer, nonce: BigInt(first + position) });

  const given = options.asset && (await describeAsset(publicClient, options.asset));
  const asset = options.asset ?? getContractAddress({ from: deployer, nonce: BigInt(nonce) });
  const [relay, factory, registry, protocolToken] = [at(0), at(1), at(2), at(3)];
  const parameters = { ...DEFAULT_PARAMETERS, ...options.parameters };
  const dependencies = { factory, asset, operator: relay, registry, rewardToken: protocolToken };

  const creations: Hex[] = [
    ...(options.asset === undefined ? [creation("TestUSD", testUsdAbi, [])] : []),
    creation("Relay", relayAbi, [deployer, factory, domain]),
    creation("WorkingContractFactory", factoryAbi, [
      owner,
      options.treasury,
      options.reviewer,
      parameters,
      dependencies,
    ]),
    creation("BackupAgentRegistry", registryAbi, [protocolToken, factory, relay]),
    creation("ProtocolToken", protocolTokenAbi, [owner, factory, registry, dailyCap, grantDelay]),
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
    grants.map((data, index) => ({ to: relay, data, nonce: next + index, gas: CALL_GAS })),
  );

  const [startBlock = 0n] = receipts.map(({ blockNumber }) => blockNumber).sort((a, b) => (a < b ? -1 : 1));
  const lower = (address: Address) => address.toLowerCase() as Address;
  // A read, too, can reach a node that does not have the contracts yet.
  return withRetry(async () => {
    const deployment: Deployment = {
      chainId: walletClient.chain.id,
      networkName: shortNameOf(walletClient.chain.id),
      startBlock: Number(startBlock),
      startBlockHash: (await publicClient.getBlock({ blockNumber: startBlock })).hash,
      domain,
      factory: lower(factory),
      implementation: lower(
        await publicClient.readContract({
          address: factory,
          abi: factoryAbi,
          functionName: "IMPLEMENTATION",
        }),
      ),
      relay: lower(relay),
      delegation: lower(relay),
      registry: lower(registry),
      protocolToken: lower(protocolToken),
      asset: given ?? (await describeAsset(publicClient, asset)),
    };
    await verifyDeployment({ publicClient, deployment });
    const [fault] = await signerFaults({ publicClient, deployment, signers });
    if (fault !== undefined) throw new Error(fault);
    return deployment;
  }, UNTIL_EVERY_NODE_HAS_THEM);
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

/** Sends the calls in order, then waits for all of them. */
async function carryOut(sender: Sender, calls: readonly Call[]): Promise<TransactionReceipt[]> {
  const sent: Awaited<ReturnType<typeof sendTransaction>>[] = [];
  for (const call of calls) sent.push(await sendTransaction(sender, call));
  const receipts: TransactionReceipt[] = [];
  for (const included of sent) receipts.push(await included());
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

/** Milliseconds until a transaction without a receipt is sent again. */
const RESEND_AFTER_MS = 30_000;
const ATTEMPTS = 6;

interface Sender {
  walletClient: WalletClient<Transport, Chain, LocalAccount>;
  publicClient: PublicClient<Transport, Chain>;
  /** Milliseconds. */
  resendAfterMs?: number | undefined;
}

interface Call {
  to?: Address;
  data: Hex;
  nonce: number;
  gas?: bigint;
}

/**
 * Sends a transaction at the current fee. Throws if gas estimation fails or the node rejects it. The returned function
 * waits for its receipt, and sends it again with both fees raised by 25% while there is none; it throws if it reverted, or
 * if none of six attempts was included in time.
 */
export async function sendTransaction(
  sender: Sender,
  call: Call,
): Promise<() => Promise<TransactionReceipt>> {
  const { walletClient, publicClient, resendAfterMs: timeout = RESEND_AFTER_MS } = sender;
  const { account, chain } = walletClient;
  const prepared = await walletClient.prepareTransactionRequest({ ...call, type: "eip1559" });
  const request = { gas: prepared.gas, ...call, chainId: chain.id, type: "eip1559" } as const;
  let { maxFeePerGas, maxPriorityFeePerGas } = prepared;
  /** They share a nonce, so at most one is included. */
  const hashes: Hash[] = [];

  /** Resolves to the failure, if any: if the response was lost, the transaction can still be pending. */
  const broadcast = async (): Promise<unknown> => {
    const fees = { maxFeePerGas, maxPriorityFeePerGas };
    const serializedTransaction = await account.signTransaction({ ...request, ...fees });
    hashes.push(keccak256(serializedTransaction));
    return walletClient.sendRawTransaction({ serializedTransaction }).then(
      () => null,
      (error) => error,
    );
  };
  const refused = await broadcast();
  if (refused instanceof BaseError && refused.walk((cause) => cause instanceof RpcRequestError))
    throw refused;

  return async () => {
    let refusal: unknown;
    for (let attempt = 1; ; attempt++) {
      const receipts = hashes.map((hash) => publicClient.waitForTransactionReceipt({ hash, timeout }));
      const receipt = await Promise.any(receipts).catch((error: unknown) => {
        refusal ??= error;
        return null;
      });
      if (receipt?.status === "success") return receipt;
      if (receipt !== null) throw new Error(`Transaction ${hashes[0]} reverted.`);
      if (attempt === ATTEMPTS) {
        const message = `Transaction ${hashes[0]} was not included after ${ATTEMPTS} attempts.`;
        throw new Error(message, { cause: refusal });
      }
      maxFeePerGas = quarterMore(maxFeePerGas);
      maxPriorityFeePerGas = quarterMore(maxPriorityFeePerGas);
      // The node also rejects it if an earlier attempt was just included. The receipts decide.
      refusal = (await broadcast()) ?? refusal;
    }
  };
}

const quarterMore = (fee: bigint): bigint => (fee * 5n + 3n) / 4n;
