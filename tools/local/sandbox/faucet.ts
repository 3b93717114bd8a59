/** Mints test money, on a local chain only. */

import { protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { BaseError, ContractFunctionRevertedError, parseEther, parseUnits } from "viem";
import { createChainClients, createSigningClient } from "../../../src/chain/clients.js";
import { AppError } from "../../../src/errors.js";
import { localAccount } from "../network.js";

export interface Gift {
  address: `0x${string}`;
  /** Decimals; nothing if absent. */
  usd?: string | undefined;
  tokens?: string | undefined;
}

/** Resolves once the gift is mined. Rejects with `conflict` if this chain's token grants are exhausted. */
export type Faucet = (gift: Gift) => Promise<void>;

/** Gifts are sent one after another, because they all come from one account. */
export function createFaucet({ rpcUrl, deployment }: { rpcUrl: string; deployment: Deployment }): Faucet {
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const owner = createSigningClient({ rpcUrl, chain, account: localAccount(0) });
  let last: Promise<unknown> = Promise.resolve();

  // Tokens first: they can run out, and then nothing is given.
  const send = async ({ address, usd, tokens }: Gift): Promise<`0x${string}`[]> => {
    const hashes: `0x${string}`[] = [];
    if (tokens !== undefined) {
      const args = [address, parseEther(tokens)] as const;
      const token = { address: deployment.protocolToken, abi: protocolTokenAbi } as const;
      hashes.push(await owner.writeContract({ ...token, functionName: "grant", args }).catch(explain));
    }
    if (usd !== undefined) {
      const { address: asset, decimals } = deployment.asset;
      const args = [address, parseUnits(usd, decimals)] as const;
      hashes.push(await owner.writeContract({ address: asset, abi: testUsdAbi, functionName: "mint", args }));
    }
    return hashes;
  };

  return async (gift) => {
    const turn = last.then(() => send(gift));
    last = turn.catch(() => undefined);
    for (const hash of await turn) {
      const { status } = await publicClient.waitForTransactionReceipt({ hash });
      if (status !== "success") throw new Error(`The transaction ${hash} of the gift reverted.`);
    }
  };
}

function explain(error: unknown): never {
  const reverted =
    error instanceof BaseError ? error.walk((cause) => cause instanceof ContractFunctionRevertedError) : null;
  if ((reverted as ContractFunctionRevertedError | null)?.data?.errorName === "GrantsExhausted") {
    throw new AppError("conflict", {
      message:
        "All tokens that can be granted on this chain have been granted. Start over with npm start -- --reset.",
      cause: error,
    });
  }
  throw error;
}
