/** Reads everything about one escrow from the chain: its code, its events and the token's transfers out of it. */
import { escrowAddress } from "@working-contracts/protocol/terms";
import { type Address, type Client, getAddress, type Hex, parseAbi, parseEventLogs } from "viem";
import { getBlock, getCode, getLogs, readContract } from "viem/actions";
import { clientAbi } from "../abi.js";
import { termsIn } from "../chain-check.js";
import { type History, type Range, rangesBack } from "../rpc.js";
import type { Addresses } from "../types.js";

/** EIP-20 and EIP-3009. */
export const tokenAbi = parseAbi([
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
]);

/** The addresses that a verification trusts. */
export type Protocol = Omit<Addresses, "domain" | "asset"> & { asset: { address: string } };

/** An event that the escrow emitted and the protocol's ABI declares. */
export interface EscrowEvent {
  /** Without the prefix `WorkingContract`. */
  name: string;
  args: Record<string, unknown>;
  /** Seconds. */
  timestamp: number;
  transactionHash: Hex;
  blockNumber: bigint;
  logIndex: number;
}

/** All facts about one escrow at one block. Amounts are in base units. */
export type EscrowOnChain = Awaited<ReturnType<typeof readEscrow>>;

/** Reads everything at one block, by default the newest. Throws if there is no escrow at the address. */
export async function readEscrow(
  client: Client,
  { id, network, blockNumber }: { id: Address; network: Protocol; blockNumber?: bigint | undefined },
) {
  const block = await getBlock(client, blockNumber === undefined ? { blockTag: "latest" } : { blockNumber });
  const terms = termsIn(await getCode(client, { address: id, blockNumber: block.number }));
  if (terms === undefined) throw new Error(`No escrow at ${id} on chain ${network.chainId}.`);
  const history = { ...network, toBlock: block.number };
  const state = { address: id, abi: clientAbi, blockNumber: block.number } as const;
  const [logs, transfers, status, jury] = await Promise.all([
    inRanges(history, (blocks) => getLogs(client, { address: id, ...blocks })),
    inRanges(history, (blocks) => {
      const address = network.asset.address as Address;
      return getLogs(client, { address, event: tokenAbi[0], args: { from: id }, ...blocks });
    }),
    readContract(client, { ...state, functionName: "status" }),
    readContract(client, { ...state, functionName: "jury" }),
  ]);
  const blocks = [...new Set(logs.map(({ blockNumber }) => blockNumber))];
  const found = await Promise.all(blocks.map((blockNumber) => getBlock(client, { blockNumber })));
  const times = new Map(found.map(({ number, timestamp }) => [number, Number(timestamp)]));
  const paid = new Map<string, bigint>();
  for (const { args } of transfers) addTo(paid, lower(args.to), args.value ?? 0n);
  return {
    terms,
    /** The address that these terms lead to, with the trusted factory. */
    address: escrowAddress({ ...(network as Record<"factory" | "implementation", Address>), terms }),
    events: parseEventLogs({ abi: clientAbi, logs }).map(
      ({ eventName, args, blockNumber, logIndex, transactionHash }): EscrowEvent => ({
        name: eventName.replace("WorkingContract", ""),
        args: (args ?? {}) as Record<string, unknown>,
        timestamp: times.get(blockNumber) ?? 0,
        transactionHash,
        blockNumber,
        logIndex,
      }),
    ),
    /** Amounts that the token transferred out of the escrow, by payee. */
    paid,
    /** Index of the status that the escrow itself reports. */
    status,
    /** The block whose hash is the seed of the draw; zero before a dispute. */
    drawBlock: BigInt(jury.drawBlock),
    blockNumber: block.number,
    /** The block's time, in seconds. */
    now: Number(block.timestamp),
  };
}

/** All that was found, oldest first, however few blocks the node allows at once. */
export async function inRanges<T>(history: History, read: (range: Range) => Promise<T[]>): Promise<T[]> {
  const found: T[][] = [];
  for await (const some of rangesBack(history, read)) found.unshift(some);
  return found.flat();
}

/** Changes `sums`. An address without a sum starts at zero. */
export function addTo(sums: Map<string, bigint>, payee: string, amount: bigint): void {
  sums.set(payee, (sums.get(payee) ?? 0n) + amount);
}

/** Lower case, as the API writes addresses. */
export function lower(address: unknown): Address {
  return getAddress(String(address)).toLowerCase() as Address;
}
