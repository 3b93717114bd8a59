/** A private anvil that mines one block per call, at the given time. */
import { spawn } from "node:child_process";
import type { Address, Hex } from "@working-contracts/protocol/types";
import {
  type Abi,
  type Chain,
  encodeFunctionData,
  type Hash,
  type Log,
  type PublicClient,
  type Transport,
} from "viem";
import { LOCAL_CHAIN_ID } from "../../../tools/local/chain.js";
import { foundryBinary } from "../../../tools/local/foundry.js";

/** Starts anvil on a free port, without fees and with every account unlocked. */
export async function startAnvil(): Promise<{ url: string; stop: () => Promise<void> }> {
  const child = spawn(foundryBinary("anvil"), [
    ...["--port", "0", "--chain-id", String(LOCAL_CHAIN_ID), "--base-fee", "0", "--gas-price", "0"],
    ...["--auto-impersonate", "--disable-block-gas-limit"],
  ]);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      const address = /Listening on (\S+)/.exec(output)?.[1];
      if (address !== undefined) resolve(`http://${address}`);
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`anvil ended early: ${output}`)));
  });
  const stop = () => {
    child.kill("SIGKILL");
    return exited;
  };
  return { url, stop };
}

export interface Call {
  from: Address;
  to: Address;
  data: Hex;
}

export interface Receipt {
  transactionHash: Hash;
  status: Hex;
  logs: Log[];
}

/** A call of a contract, encoded. */
export const callOf = (
  from: Address,
  { address, abi }: { address: Address; abi: Abi },
  functionName: string,
  args: readonly unknown[],
): Call => ({ from, to: address, data: encodeFunctionData({ abi, functionName, args }) });

export type Stepper = Awaited<ReturnType<typeof createStepper>>;

const GAS: Hex = "0x4c4b40";

/** Takes over block production. Nothing else may send to the node afterwards. */
export async function createStepper(client: PublicClient<Transport, Chain>) {
  const request = client.request as (call: { method: string; params: unknown[] }) => Promise<unknown>;
  await request({ method: "evm_setAutomine", params: [false] });
  const nonces = new Map<Address, number>();
  let newest = Number((await client.getBlock()).timestamp);

  return {
    /** Time of the newest block. */
    time: () => newest,
    /** Mines all calls in one block at `now`, in the given order per sender. Receipts come in the order of the calls. */
    async mine(calls: readonly Call[], now: number): Promise<Receipt[]> {
      for (const from of new Set(calls.map((call) => call.from))) {
        if (!nonces.has(from)) nonces.set(from, await client.getTransactionCount({ address: from }));
      }
      const hashes = await Promise.all(
        calls.map((call) => {
          const nonce = nonces.get(call.from) ?? 0;
          nonces.set(call.from, nonce + 1);
          const params = [{ ...call, gas: GAS, gasPrice: "0x0", nonce: `0x${nonce.toString(16)}` }];
          return request({ method: "eth_sendTransaction", params }) as Promise<Hash>;
        }),
      );
      await request({ method: "evm_setNextBlockTimestamp", params: [now] });
      await request({ method: "evm_mine", params: [] });
      newest = now;
      const mined = (await request({ method: "eth_getBlockReceipts", params: ["latest"] })) as Receipt[];
      const byHash = new Map(mined.map((receipt) => [receipt.transactionHash, receipt]));
      return hashes.map((hash) => {
        const receipt = byHash.get(hash);
        if (receipt === undefined) throw new Error(`Transaction ${hash} was not mined`);
        return receipt;
      });
    },
  };
}
