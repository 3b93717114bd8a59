/** Repeats the draw of a panel, by the hash of a block and the stakes from before the match, and votes' commitments. */
import { encodeCall, encodeWords, keccak256 } from "@working-contracts/protocol/hex";
import { tokenUnits } from "@working-contracts/protocol/ledger";
import { voteCommitment } from "@working-contracts/protocol/outcomes";
import type { Address, Client } from "viem";
import { getBlock, getContractEvents, getTransaction, readContract } from "viem/actions";
import { clientAbi } from "../abi.js";
import { type EscrowOnChain, inRanges, lower, type Protocol } from "./read-chain.js";

const LOOKS_PER_SEAT = 4n;
const UNBONDING_SECONDS = 48 * 3600;

/** The panel by the rule of `draw`; null if none was drawn. */
export async function juryByRule(
  client: Client,
  { escrow, network }: { escrow: EscrowOnChain; network: Protocol },
) {
  const { terms, events, blockNumber } = escrow;
  const draw = events.find(({ name }) => name === "BackupAgentsDrawn");
  const match = events.find(({ name }) => name === "Matched");
  if (!draw || !match) return null;
  const registry = { address: network.registry as Address, abi: clientAbi } as const;
  const parties = [terms.initiator, lower(match.args.counterparty)];
  const before = match.timestamp;
  const required = tokenUnits(terms.parameters.baEligibilityStake);

  const history = { ...network, toBlock: draw.blockNumber };
  const changes = await inRanges(history, (blocks) => getContractEvents(client, { ...registry, ...blocks }));

  /** As `isEligible` of the registry was then: few nodes still serve the state of that block. */
  async function wasEligible(agent: string): Promise<boolean> {
    const stake = { amount: 0n, since: 0, leftAt: Infinity };
    for (const { eventName, args, ...at } of changes) {
      if (!("agent" in args) || lower(args.agent) !== agent) continue;
      if (at.blockNumber === draw?.blockNumber && at.logIndex > draw.logIndex) break;
      if (eventName === "Staked") {
        stake.amount = args.total ?? 0n;
        stake.since = Number((await getBlock(client, { blockNumber: at.blockNumber })).timestamp);
      } else if (eventName === "UnstakeRequested")
        stake.leftAt = (args.releasableAt ?? 0) - UNBONDING_SECONDS;
      else if (eventName === "Unstaked") Object.assign(stake, { amount: 0n, leftAt: Infinity });
    }
    return stake.amount !== 0n && stake.amount >= required && stake.since < before && before <= stake.leftAt;
  }

  const { hash: seed } = await getBlock(client, { blockNumber: escrow.drawBlock });
  const pool = { ...registry, blockNumber };
  const poolSize = await readContract(client, { ...pool, functionName: "poolSize", args: [before] });
  const seats = BigInt(terms.parameters.baRecruitCount);
  /** The agents of the pool that the draw looked at. */
  const candidates: string[] = [];
  const drawn: string[] = [];
  /** The slots at places of the pool that the shuffle has changed so far. */
  const moved = new Map<bigint, bigint>();
  for (let i = 0n; i < seats * LOOKS_PER_SEAT && i < poolSize && drawn.length < seats; i++) {
    const at = i + (BigInt(keccak256(encodeWords(seed, i))) % (poolSize - i));
    const slot = moved.get(at) ?? at;
    moved.set(at, moved.get(i) ?? i);
    const candidate = lower(
      await readContract(client, { ...pool, functionName: "poolAt", args: [slot, before] }),
    );
    candidates.push(candidate);
    if (!parties.includes(candidate) && (await wasEligible(candidate))) drawn.push(candidate);
  }
  return { seed, poolSize, candidates, drawn };
}

/** The opened votes, each with the commitment that was paid for and the one that its opening leads to. */
export async function openedVotes(
  client: Client,
  { id, escrow, network }: { id: Address; escrow: EscrowOnChain; network: Pick<Protocol, "chainId"> },
) {
  const named = (name: string) => escrow.events.filter((event) => event.name === name);
  const sealed = new Map(named("VoteSealed").map(({ args }) => [lower(args.backupAgent), args.commitment]));
  return Promise.all(
    named("VoteOpened").map(async ({ args, transactionHash }) => {
      const voter = lower(args.backupAgent);
      const votes = Number(args.votes);
      const { input } = await getTransaction(client, { hash: transactionHash });
      // The Relay carries the call with others.
      const call = encodeCall("openVote(address,uint24,bytes32)", voter, votes).slice(2);
      const ballot = { chainId: network.chainId, escrow: id, voter, votes };
      const found = input
        .split(call)
        .slice(1)
        .map((rest) => voteCommitment({ ...ballot, salt: `0x${rest.slice(0, 64).padEnd(64, "0")}` }));
      /** The commitment that the vote had while it was sealed. */
      const committed = sealed.get(voter);
      /** The commitment to the votes that were opened, with the salt of that call; null if the call does not show it. */
      const opened = found.find((one) => one === committed) ?? found[0] ?? null;
      return { voter, committed, opened };
    }),
  );
}
