/** Transactions that agents and strangers send to the chain themselves, and what it says afterwards. */
import { onChain } from "@working-contracts/client/index";
import {
  delegationAbi,
  factoryAbi,
  protocolTokenAbi,
  relayAbi,
  testUsdAbi,
} from "@working-contracts/protocol/abi";
import { AGENT_ACTIONS, type AgentAction } from "@working-contracts/protocol/signatures";
import { type Parameters, packTerms } from "@working-contracts/protocol/terms";
import {
  type Address,
  encodeFunctionData,
  type Hex,
  parseAbi,
  parseAbiItem,
  parseEther,
  size,
  zeroHash,
} from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { createSigningClient } from "../../src/chain/clients.js";
import { parseStoredTerms } from "../../src/db/onchain.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import { until } from "../../tools/local/processes.js";
import type { Agent } from "./agent.js";
import { domainOf, type SignedPayment, type Stablecoin } from "./payment.js";
import { OWNER, type World } from "./world.js";

const transferred = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");
const cancelAbi = parseAbi([
  "function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)",
]);

export async function mined(world: World, hash: Hex): Promise<Hex> {
  const { status } = await world.publicClient.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error(`${hash} reverted`);
  return hash;
}

/** An agent's own wallet, with native currency for gas. */
export async function walletOf(world: World, { account, address }: Pick<Agent, "account" | "address">) {
  await world.testClient.setBalance({ address, value: parseEther("1") });
  return createSigningClient({ rpcUrl: world.info.rpcUrl, chain: world.publicClient.chain, account });
}

/** The agent's own transactions, by the client and without the service. */
export async function alone(world: World, { account }: Pick<Agent, "account">) {
  await world.testClient.setBalance({ address: account.address, value: parseEther("1") });
  return onChain({ rpcUrl: world.info.rpcUrl, account, network: world.deployment });
}

/** Test dollars, in the smallest unit, that their holder sends by its own transaction. */
export async function sendUsd(
  world: World,
  from: Pick<Agent, "account" | "address">,
  to: Address,
  amount: bigint,
): Promise<void> {
  const wallet = await walletOf(world, from);
  const token = { address: world.deployment.asset.address, abi: testUsdAbi } as const;
  await mined(world, await wallet.writeContract({ ...token, functionName: "transfer", args: [to, amount] }));
}

/** The call of the token that executes an authorization. Anyone can send it. */
export const transferData = (payment: SignedPayment): Hex => {
  const { from, to, value, validAfter, validBefore, nonce, signature } = payment;
  return encodeFunctionData({
    abi: testUsdAbi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
};

/** The call of the Relay's owner that lets an account relay, or no longer. */
export const setSignerCall = (relay: Address, account: Address, allowed: boolean) => ({
  to: relay,
  data: encodeFunctionData({ abi: relayAbi, functionName: "setSigner", args: [account, allowed] }),
});

/** A stranger submits a payment's authorization to the token, outside any call. Returns the transaction's hash. */
export async function frontRun(world: World, stranger: Agent, payment: SignedPayment): Promise<Hex> {
  const wallet = await walletOf(world, stranger);
  const to = world.deployment.asset.address;
  return mined(world, await wallet.sendTransaction({ to, data: transferData(payment) }));
}

/** A stranger opens an escrow from the money that it already holds, with the terms that its caller gave away. */
export async function openFromBalance(
  world: World,
  stranger: Agent,
  { escrowTerms }: Pick<TermsView, "escrowTerms">,
): Promise<void> {
  const wallet = await walletOf(world, stranger);
  const data = openingData({ escrowTerms });
  await mined(world, await wallet.sendTransaction({ to: world.deployment.factory, data }));
  await world.indexed();
}

/** Arguments of the call of the factory that opens an escrow: from its balance, or with a deposit. */
export type Opening = Pick<TermsView, "escrowTerms"> & {
  deposit?: Pick<SignedPayment, keyof typeof NO_DEPOSIT>;
};

const NO_DEPOSIT = { validAfter: 0n, validBefore: 0n, nonce: zeroHash, signature: "0x" } as const;

const openingData = ({ escrowTerms, deposit = NO_DEPOSIT }: Opening): Hex =>
  encodeFunctionData({
    abi: factoryAbi,
    functionName: "create",
    args: [packTerms(parseStoredTerms(escrowTerms)), deposit],
  });

/**
 * A stranger submits authorizations to the token, and opens escrows, in this order: in one transaction, which creates a
 * contract that makes these calls.
 */
export async function frontRunTogether(
  world: World,
  stranger: Agent,
  steps: readonly (SignedPayment | Opening)[],
): Promise<Hex> {
  const { asset, factory } = world.deployment;
  const calls = steps.map((step) =>
    "escrowTerms" in step
      ? { to: factory, call: openingData(step) }
      : { to: asset.address, call: transferData(step) },
  );
  const word = (number: number) => number.toString(16).padStart(4, "0");
  const CALL_BYTES = 39;
  let offset = calls.length * CALL_BYTES + 1;
  const code = calls.map(({ to, call }) => {
    const [length, at] = [word(size(call)), word(offset)];
    offset += size(call);
    // CODECOPY the calldata to memory, CALL the contract with it, POP.
    return `61${length}61${at}5f395f5f61${length}5f5f73${to.slice(2)}5af150`;
  });
  const data: Hex = `0x${code.join("")}00${calls.map(({ call }) => call.slice(2)).join("")}`;
  const wallet = await walletOf(world, stranger);
  // An estimate would do without calls that run out of gas.
  return mined(world, await wallet.sendTransaction({ data, gas: 2_000_000n }));
}

/** The call that cancels the payer's authorization with this nonce. Anyone can send it. */
export async function cancellationOf(
  coin: Stablecoin,
  payer: PrivateKeyAccount,
  nonce: Hex,
): Promise<{ to: Address; data: Hex }> {
  const signature = await payer.signTypedData({
    domain: domainOf(coin),
    types: {
      CancelAuthorization: [
        { name: "authorizer", type: "address" },
        { name: "nonce", type: "bytes32" },
      ],
    },
    primaryType: "CancelAuthorization",
    message: { authorizer: payer.address, nonce },
  });
  const data = encodeFunctionData({ abi: cancelAbi, args: [payer.address, nonce, signature] });
  return { to: coin.asset.address, data };
}

/** Makes the agent a wallet that accepts every signature (ERC-1271) while gas price or base fee is 0: in simulations. */
export const signForSimulations = ({ testClient }: World, { address }: Pick<Agent, "address">) =>
  testClient.setCode({ address, bytecode: "0x631626ba7e60e01b3a480215025f5260205ff3" });

/** The wallet of the owner of Relay, factory and token. */
export const ownersWallet = ({ info, publicClient: { chain } }: World) =>
  createSigningClient({ rpcUrl: info.rpcUrl, chain, account: OWNER });

/** Changes parameters of new contracts; returns the former ones. */
export async function setParameters(world: World, changes: Partial<Parameters>) {
  const factory = { address: world.deployment.factory, abi: factoryAbi } as const;
  const former = await world.publicClient.readContract({ ...factory, functionName: "parameters" });
  const args = [{ ...former, ...changes }] as const;
  const set = { ...factory, functionName: "setParameters", args } as const;
  await mined(world, await ownersWallet(world).writeContract(set));
  // New contracts take their parameters from the index; the factory accepts the former ones for a day.
  await world.indexed();
  return former;
}

/** Sets how many Backup Agents are drawn for contracts from now on. With 0 none is drawn and all can vote. */
export async function recruit(world: World, baRecruitCount: number): Promise<void> {
  await setParameters(world, { baRecruitCount });
}

/** The jury, once it is drawn. Makes the two blocks that the draw waits for, at once. */
export async function untilDrawn(world: World, id: string): Promise<Address[]> {
  await world.testClient.mine({ blocks: 2 });
  const read = () =>
    world.query<{ agent: Address }>("select backup_agent as agent from onchain.draw where contract_id = $1", [
      id,
    ]);
  const isDrawn = async () => (await read()).length > 0;
  await until("the jury is drawn", isDrawn, { timeoutMs: 60_000 });
  return (await read()).map(({ agent }) => agent);
}

/** Whether the operator can do this for the agent. */
export const isDelegated = (
  { publicClient, deployment }: Pick<World, "publicClient" | "deployment">,
  { address }: Pick<Agent, "address">,
  action: AgentAction,
) =>
  publicClient.readContract({
    address: deployment.delegation,
    abi: delegationAbi,
    functionName: "isAuthorized",
    args: [address, deployment.relay, AGENT_ACTIONS.indexOf(action)],
  });

/** The amount that an escrow has paid to an address, in the smallest unit. */
export async function paidBy(world: World, id: string, payee: Address): Promise<bigint> {
  const logs = await world.publicClient.getLogs({
    address: world.deployment.asset.address,
    event: transferred,
    args: { from: id as Address, to: payee },
    fromBlock: 0n,
  });
  return logs.reduce((sum, { args }) => sum + (args.value ?? 0n), 0n);
}

/** Protocol tokens of an address that are not staked, in the smallest unit. */
export function tokensOf(world: World, address: Address): Promise<bigint> {
  return world.publicClient.readContract({
    address: world.deployment.protocolToken,
    abi: protocolTokenAbi,
    functionName: "balanceOf",
    args: [address],
  });
}
