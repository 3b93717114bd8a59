/** Shared by the dispute tests: Backup Agents with a stake, disputed contracts, votes. */

import { escrowAbi, protocolTokenAbi, registryAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Outcome } from "@working-contracts/protocol/outcomes";
import { type Address, type Hex, maxUint256, parseAbiItem, parseEther } from "viem";
import { createSigningClient } from "../../src/chain/clients.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { VoteView } from "../../src/features/votes/view.js";
import type { Agent, Answer } from "../support/agent.js";
import type { World } from "../support/world.js";
import { matchedBetween, type SignedPayment } from "./contract-actors.js";

const NO_AUTHORIZATION = {
  validAfter: 0n,
  validBefore: 0n,
  nonce: `0x${"00".repeat(32)}`,
  signature: "0x",
} as const;
const transferred = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

/** An agent's own wallet, with native currency for gas. */
export async function walletOf(world: World, { account, address }: Agent) {
  await world.testClient.setBalance({ address, value: parseEther("1") });
  return createSigningClient({ rpcUrl: world.info.rpcUrl, chain: world.publicClient.chain, account });
}

/** A fresh Backup Agent that has staked on chain, without the service. */
export async function newJuror(
  world: World,
  { usd = "1000", tokens = 1000 }: { usd?: string; tokens?: number } = {},
): Promise<Agent> {
  const juror = await world.newAgent({ usd });
  await world.grantTokens(juror.address, tokens);
  const wallet = await walletOf(world, juror);
  const { registry, protocolToken } = world.deployment;
  const approval = await wallet.writeContract({
    address: protocolToken,
    abi: protocolTokenAbi,
    functionName: "approve",
    args: [registry, maxUint256],
  });
  await mined(world, approval);
  const staked = await wallet.writeContract({
    address: registry,
    abi: registryAbi,
    functionName: "stake",
    args: [juror.address, parseEther(String(tokens)), NO_AUTHORIZATION],
    // An estimate can find the pool's newest entry in its own second, and be too low in the next one.
    gas: 400_000n,
  });
  await mined(world, staked);
  return juror;
}

/** A contract that its worker has delivered on. */
export async function deliveredBetween(
  world: World,
  client: Agent,
  worker: Agent,
  overrides: Record<string, unknown> = {},
): Promise<ContractView> {
  const { id } = await matchedBetween(world, client, worker, overrides);
  return expectOk(
    await worker.post<ContractView>(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }),
  );
}

/** A contract that its client has disputed, with the bond paid. */
export async function disputedBetween(
  world: World,
  client: Agent,
  worker: Agent,
  overrides: Record<string, unknown> = {},
): Promise<ContractView> {
  const { id } = await deliveredBetween(world, client, worker, overrides);
  return expectOk(await client.pay<ContractView>(`/v1/contracts/${id}/dispute`));
}

/** The body of Submit Votes: one word per criterion, in their order. */
export function ballot(...words: Outcome[]): { votes: { criterionIndex: number; vote: Outcome }[] } {
  return { votes: words.map((vote, criterionIndex) => ({ criterionIndex, vote })) };
}

/** Pays the bond and votes. Throws if that fails. */
export async function vote(
  juror: Agent,
  id: string,
  ...words: Outcome[]
): Promise<{ votes: VoteView[]; salt: Hex }> {
  const answer = await juror.pay<VoteView[]>(`/v1/contracts/${id}/votes`, ballot(...words));
  return { votes: expectOk(answer), salt: answer.headers.get("vote-salt") as Hex };
}

/** Makes the service lose votes that it has sealed, as after a loss in its database. */
export async function loseSealedVotes(world: World, id: string, juror?: Agent): Promise<void> {
  await world.pool.query(
    "delete from app.sealed_vote where contract_id = $1 and backup_agent = coalesce($2, backup_agent)",
    [id, juror?.address ?? null],
  );
}

/** A voter opens its ballot at the escrow, without the service. */
export async function openOnChain(
  world: World,
  juror: Agent,
  { id, packed, salt }: { id: string; packed: number; salt: Hex },
): Promise<void> {
  const wallet = await walletOf(world, juror);
  const opened = await wallet.writeContract({
    address: id as Address,
    abi: escrowAbi,
    functionName: "openVote",
    args: [juror.address, packed, salt],
  });
  await mined(world, opened);
}

/** A stranger submits a payment's authorization to the token, outside any call. Returns the transaction's hash. */
export async function frontRun(world: World, stranger: Agent, payment: SignedPayment): Promise<Hex> {
  const { from, to, value, validAfter, validBefore, nonce, signature } = payment;
  const wallet = await walletOf(world, stranger);
  const sent = await wallet.writeContract({
    address: world.deployment.asset.address,
    abi: testUsdAbi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
  await mined(world, sent);
  return sent;
}

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

export function expectOk<T>({ status, data, body }: Answer<T>): T {
  if (status !== 200) throw new Error(`Rejected: ${status} ${JSON.stringify(body)}`);
  return data;
}

export async function mined(world: World, hash: Hex): Promise<void> {
  const { status } = await world.publicClient.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error(`${hash} reverted`);
}
