/** Repeats the draw of a jury: the seed is a block's hash, the pool the stakes from before the match. */
import { registryAbi } from "@working-contracts/protocol/abi";
import { TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { encodeWords } from "@working-contracts/protocol/calls";
import { keccak256 } from "@working-contracts/protocol/hex";
import type { Address, Client } from "viem";
import { getBlock, getContractEvents, readContract } from "viem/actions";
import { type EscrowOnChain, inRanges, lower, type Protocol } from "./read-chain.js";

const TRIES_PER_SEAT = 4;
const UNBONDING_SECONDS = 48 * 3600;

/** The agents that the rule of `draw` chooses, in order; null if none were drawn. */
export async function juryByRule(
  client: Client,
  { escrow, network }: { escrow: EscrowOnChain; network: Protocol },
): Promise<string[] | null> {
  const { terms, events, blockNumber } = escrow;
  const draw = events.find(({ name }) => name === "BackupAgentsDrawn");
  const match = events.find(({ name }) => name === "WorkingContractMatched");
  if (draw === undefined || match === undefined) return null;
  const registry = { address: network.registry as Address, abi: registryAbi } as const;
  const parties = [terms.initiator, lower(match.args.counterparty)];
  const before = match.timestamp;
  const required = BigInt(terms.parameters.baEligibilityStake) * 10n ** BigInt(TOKEN_DECIMALS);

  const changes = await inRanges({ from: BigInt(network.startBlock), to: draw.blockNumber }, (range) =>
    getContractEvents(client, { ...registry, fromBlock: range.from, toBlock: range.to }),
  );

  /** As `isEligible` of the registry was then: few nodes still serve the state of that block. */
  async function wasEligible(agent: string): Promise<boolean> {
    const stake = { amount: 0n, since: 0, leftAt: Number.POSITIVE_INFINITY };
    for (const { eventName, args, ...at } of changes) {
      if (!("agent" in args) || lower(args.agent) !== agent) continue;
      if (at.blockNumber === draw?.blockNumber && at.logIndex > draw.logIndex) break;
      if (eventName === "Staked") {
        stake.amount = args.total ?? 0n;
        stake.since = Number((await getBlock(client, { blockNumber: at.blockNumber })).timestamp);
      } else if (eventName === "UnstakeRequested")
        stake.leftAt = (args.releasableAt ?? 0) - UNBONDING_SECONDS;
      else if (eventName === "Unstaked")
        Object.assign(stake, { amount: 0n, leftAt: Number.POSITIVE_INFINITY });
    }
    return stake.amount !== 0n && stake.amount >= required && stake.since < before && before <= stake.leftAt;
  }

  const { hash: seed } = await getBlock(client, { blockNumber: escrow.drawBlock });
  const pool = await readContract(client, {
    ...registry,
    ...{ functionName: "poolSize", args: [before], blockNumber },
  });
  const seats = terms.parameters.baRecruitCount;
  const chosen = new Set<string>();
  for (let i = 0; i < seats * TRIES_PER_SEAT && chosen.size < seats && pool !== 0n; i++) {
    const slot = BigInt(keccak256(encodeWords(seed, i))) % pool;
    const place = { functionName: "poolAt", args: [slot, before], blockNumber } as const;
    const candidate = lower(await readContract(client, { ...registry, ...place }));
    if (parties.includes(candidate) || chosen.has(candidate)) continue;
    if (await wasEligible(candidate)) chosen.add(candidate);
  }
  return [...chosen];
}
