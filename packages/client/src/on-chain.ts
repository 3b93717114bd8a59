/** Settlement without the service: anyone may send these transactions once they are due. */

import type { Address } from "@working-contracts/protocol/types";
import type { Account, Hex } from "viem";
import { createWalletClient, defineChain, http, parseAbi, publicActions } from "viem";
import type { PinnedNetwork } from "./types.js";

const ESCROW = parseAbi(["function settle()", "function claim(address backupAgent)"]);

export interface OnChainOptions {
  rpcUrl: string;
  /** Pays the gas. */
  account: Account;
  network: Pick<PinnedNetwork, "chainId">;
}

/** Settles an ended contract with the account's own transaction. Throws viem's error if settlement is not due. */
export function settleOnChain(id: string, options: OnChainOptions): Promise<Hex> {
  return transact(options, (client) => client.writeContract({ ...escrow(id), functionName: "settle" }));
}

/** Pays a Backup Agent its bond, its share of slashed bonds and its reward for a tallied contract. */
export function claimOnChain(id: string, backupAgent: string, options: OnChainOptions): Promise<Hex> {
  const args = [backupAgent as Address] as const;
  return transact(options, (client) => client.writeContract({ ...escrow(id), functionName: "claim", args }));
}

function escrow(id: string) {
  return { address: id as Address, abi: ESCROW } as const;
}

function clientOf({ rpcUrl, account, network }: OnChainOptions) {
  const chain = defineChain({
    id: network.chainId,
    name: `eip155:${network.chainId}`,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  return createWalletClient({ account, chain, transport: http(rpcUrl) }).extend(publicActions);
}

async function transact(
  options: OnChainOptions,
  send: (client: ReturnType<typeof clientOf>) => Promise<Hex>,
): Promise<Hex> {
  const client = clientOf(options);
  const hash = await send(client);
  const { status, transactionHash } = await client.waitForTransactionReceipt({ hash });
  if (transactionHash !== hash) throw new Error(`The transaction ${hash} was replaced by ${transactionHash}`);
  if (status !== "success") throw new Error(`The transaction ${hash} reverted`);
  return hash;
}
