/** Settlement without the service: anyone may send these transactions once they are due. index.ts documents them. */
import { encodeWords } from "@working-contracts/protocol/calls";
import { findVotes, packOutcomes } from "@working-contracts/protocol/outcomes";
import type { Address } from "@working-contracts/protocol/types";
import {
  type Account,
  BaseError,
  ContractFunctionRevertedError,
  createClient,
  type Hex,
  http,
  parseAbi,
} from "viem";
import { getChainId, getCode, readContract, waitForTransactionReceipt, writeContract } from "viem/actions";
import { voteSalt } from "./votes.js";
import type { Signer } from "./wallets.js";

const ESCROW = parseAbi([
  "function settle()",
  "function claim(address backupAgent)",
  "function ballotOf(address backupAgent) view returns (uint256)",
  "function openVote(address backupAgent, uint24 votes, bytes32 salt)",
  "error AlreadySettled()",
]);

export interface OnChainOptions {
  rpcUrl: string;
  /** Pays the gas. */
  account: Account;
}

export async function settleOnChain(id: string, options: OnChainOptions): Promise<Hex | null> {
  try {
    return await transact(id, options, (client, escrow) =>
      writeContract(client, { ...escrow, functionName: "settle", chain: null }),
    );
  } catch (error) {
    const cause =
      error instanceof BaseError ? error.walk((one) => one instanceof ContractFunctionRevertedError) : null;
    if (cause instanceof ContractFunctionRevertedError && cause.data?.errorName === "AlreadySettled")
      return null;
    throw error;
  }
}

export function claimOnChain(id: string, backupAgent: string, options: OnChainOptions): Promise<Hex> {
  const args = [backupAgent as Address] as const;
  return transact(id, options, (client, escrow) =>
    writeContract(client, { ...escrow, functionName: "claim", args, chain: null }),
  );
}

export async function openVoteOnChain(
  id: string,
  { salt: given, ...options }: OnChainOptions & { salt?: Hex },
): Promise<Hex> {
  const { account } = options;
  const voter = account.address.toLowerCase() as Address;
  const reader = clientOf(options);
  const ballot = { chainId: await getChainId(reader), escrow: id.toLowerCase() as Address, voter };
  const salt = given ?? (await voteSalt(account as unknown as Signer, ballot));
  const contract = { address: ballot.escrow, abi: ESCROW, functionName: "ballotOf", args: [voter] } as const;
  const words = findVotes(encodeWords(await readContract(reader, contract)), { ...ballot, salt });
  if (words === null) throw new Error(`${voter} has no sealed vote on ${id} that this salt opens`);
  const args = [voter, packOutcomes(words), salt] as const;
  return transact(id, options, (client, escrow) =>
    writeContract(client, { ...escrow, functionName: "openVote", args, chain: null }),
  );
}

function clientOf({ rpcUrl, account }: OnChainOptions) {
  return createClient({ account, transport: http(rpcUrl) });
}

async function transact(
  id: string,
  options: OnChainOptions,
  send: (
    client: ReturnType<typeof clientOf>,
    escrow: { address: Address; abi: typeof ESCROW },
  ) => Promise<Hex>,
): Promise<Hex> {
  const client = clientOf(options);
  const address = id as Address;
  // A call to an address without code would succeed and do nothing.
  if ((await getCode(client, { address })) === undefined)
    throw new Error(`No escrow at ${id} on this chain.`);
  const hash = await send(client, { address, abi: ESCROW });
  const { status, transactionHash } = await waitForTransactionReceipt(client, { hash });
  if (transactionHash !== hash) throw new Error(`The transaction ${hash} was replaced by ${transactionHash}`);
  if (status !== "success") throw new Error(`The transaction ${hash} reverted`);
  return hash;
}
