/** Dispute, draw, ballots, tally, and Backup Agents' payouts. */
import { ponder } from "ponder:registry";
import { draw, vote, workingContract } from "ponder:schema";
import { decodeEventLog, parseAbi } from "viem";
import { recordEvent } from "./record-event.js";

const drawnAbi = parseAbi(["event BackupAgentsDrawn(address[] backupAgents)"]);

ponder.on("Escrow:WorkingContractDisputed", async (args) => {
  const { block, args: disputed } = args.event;
  await recordEvent(args, "WorkingContractDisputed", {
    phase: "disputed",
    disputedAt: block.timestamp,
    disputeBond: disputed.bond,
  });
});

ponder.on("Escrow:BackupAgentsDrawn", async ({ event, context }) => {
  const { address, data, topics } = event.log;
  if ((await context.db.find(workingContract, { id: address })) === null) return;
  // Ponder's own decoder reads the array as one address once a stranger has emitted a truncated one.
  const drawn = decodeEventLog({ abi: drawnAbi, data, topics }).args;
  const args = { context, event: { ...event, args: drawn } };
  await recordEvent(args, "BackupAgentsDrawn", { drawn: true });
  for (const backupAgent of drawn.backupAgents) {
    await context.db
      .insert(draw)
      .values({ contractId: address, backupAgent, drawnAt: event.block.timestamp });
  }
});

ponder.on("Escrow:VoteSealed", async (args) => {
  const { event, context } = args;
  const { backupAgent, bond, commitment } = event.args;
  const row = await recordEvent(args, "VoteSealed", ({ sealedVotes }) => ({ sealedVotes: sealedVotes + 1 }));
  if (row === null) return;
  await context.db.insert(vote).values({
    contractId: event.log.address,
    backupAgent,
    commitment,
    bond,
    position: row.sealedVotes - 1,
    sealedAt: event.block.timestamp,
    claimed: false,
    rewardDeferred: false,
  });
});

ponder.on("Escrow:VoteOpened", async (args) => {
  const { event, context } = args;
  const { backupAgent, votes } = event.args;
  const row = await recordEvent(args, "VoteOpened", ({ openedVotes }) => ({ openedVotes: openedVotes + 1 }));
  if (row === null) return;
  await context.db
    .update(vote, { contractId: event.log.address, backupAgent })
    .set({ votes, openedAt: event.block.timestamp });
});

ponder.on("Escrow:WorkingContractTallied", async (args) => {
  const { block, args: tallied } = args.event;
  await recordEvent(args, "WorkingContractTallied", {
    phase: "tallied",
    endedAt: block.timestamp,
    outcomes: tallied.outcomes,
  });
});

// If the reward of a claim was deferred, a second claim later pays only the reward: the two add up.
ponder.on("Escrow:VoteClaimed", async (args) => {
  const { event, context } = args;
  const { amount, backupAgent, reward } = event.args;
  if ((await recordEvent(args, "VoteClaimed")) === null) return;
  await context.db.update(vote, { contractId: event.log.address, backupAgent }).set((row) => ({
    claimed: true,
    claimedAmount: (row.claimedAmount ?? 0n) + amount,
    reward: (row.reward ?? 0) + Number(reward),
    rewardDeferred: false,
  }));
});

ponder.on("Escrow:RewardDeferred", async (args) => {
  const { event, context } = args;
  if ((await recordEvent(args, "RewardDeferred")) === null) return;
  await context.db
    .update(vote, { contractId: event.log.address, backupAgent: event.args.backupAgent })
    .set({ rewardDeferred: true });
});
