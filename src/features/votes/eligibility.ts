/** Eligibility to vote on a dispute (docs/rules.md 41 to 44), by the same rule as the escrow's `vote`. */

import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, eq } from "drizzle-orm";
import { parseEther } from "viem";
import type { Executor } from "../../db/client.js";
import { draw, stake, vote } from "../../db/onchain.js";
import { AppError } from "../../errors.js";
import { requireStatus } from "../contracts/parties.js";
import { type ContractRow, isoTime } from "../contracts/view.js";

type Stake = Pick<typeof stake.$inferSelect, "amount" | "since" | "releasableAt">;

/** The facts on chain about one agent and one dispute. */
export interface VoterFacts {
  stake: Stake | null;
  drawn: boolean;
  voted: boolean;
}

/** Reads the facts about `agent`. */
export async function loadVoter(db: Executor, id: Address, agent: Address): Promise<VoterFacts> {
  const [[staked], drawn, voted] = await Promise.all([
    db
      .select({ amount: stake.amount, since: stake.since, releasableAt: stake.releasableAt })
      .from(stake)
      .where(eq(stake.agent, agent)),
    db
      .select({ drawnAt: draw.drawnAt })
      .from(draw)
      .where(and(eq(draw.contractId, id), eq(draw.backupAgent, agent))),
    db
      .select({ position: vote.position })
      .from(vote)
      .where(and(eq(vote.contractId, id), eq(vote.backupAgent, agent))),
  ]);
  return { stake: staked ?? null, drawn: drawn.length > 0, voted: voted.length > 0 };
}

/** Throws 403 for an agent that may not vote on this contract, then 409 if it is too early or too late, or if the panel is full. */
export function requireVoter(
  row: ContractRow,
  agent: Address,
  { voter, now }: { voter: VoterFacts; now: number },
): void {
  requireNoParty(row, agent);
  // An agent that has voted was eligible then, even if its stake has changed since.
  if (row.chain.disputedAt !== null && !voter.voted) {
    requireStake(row, row.chain.disputedAt, voter.stake);
    requireSeat(row, row.chain.disputedAt, { voter, now });
  }
  requireStatus(row, "disputed", now);
  if (voter.voted) {
    throw new AppError("conflict", {
      message: "You have already voted on this contract; a ballot cannot be changed.",
    });
  }
  const closesAt = votingClosesAt(row);
  if (now >= closesAt) {
    throw new AppError("conflict", { message: `The voting window closed at ${isoTime(closesAt)}.` });
  }
  const seats = row.chain.baRecruitCount || LIMITS.votersPerContract;
  if (row.chain.sealedVotes >= seats) {
    throw new AppError("conflict", { message: `The panel is full: all ${seats} seats are taken.` });
  }
}

/** First second, on the chain's clock, in which votes are no longer accepted; meaningful once disputed. */
export function votingClosesAt({ chain }: ContractRow): number {
  return Number(chain.disputedAt ?? 0n) + chain.baVotingWindow;
}

function requireNoParty({ chain }: ContractRow, agent: Address): void {
  if (agent !== chain.client && agent !== chain.worker) return;
  throw new AppError("forbidden", { message: "The contract's client and worker cannot vote on it." });
}

function requireStake({ chain }: ContractRow, disputedAt: bigint, staked: Stake | null): void {
  const required = chain.baEligibilityStake;
  const eligible =
    staked !== null &&
    staked.amount > 0n &&
    staked.amount >= parseEther(required.toString()) &&
    staked.since < disputedAt &&
    staked.releasableAt === null;
  if (eligible) return;
  throw new AppError("forbidden", {
    message: `To vote on this contract you need ${required} protocol tokens staked since before ${isoTime(Number(disputedAt))}, when the dispute began, and not being withdrawn.`,
  });
}

/** In the first half of the window only drawn agents can vote; after it the remaining seats are open to all. */
function requireSeat(
  { chain }: ContractRow,
  disputedAt: bigint,
  { voter, now }: { voter: VoterFacts; now: number },
): void {
  const openToAllAt = Number(disputedAt) + Math.floor(chain.baVotingWindow / 2);
  if (chain.baRecruitCount === 0 || voter.drawn || now >= openToAllAt) return;
  throw new AppError("forbidden", {
    message: `You were not drawn for this panel. Seats that are still empty at ${isoTime(openToAllAt)} are open to every eligible Backup Agent.`,
  });
}
