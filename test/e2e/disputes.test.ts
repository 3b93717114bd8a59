/** Disputes: the payouts that follow from the tally (docs/rules.md 39, 45 to 52). */

import { escrowAbi } from "@working-contracts/protocol/abi";
import { STATUSES } from "@working-contracts/protocol/status";
import { formatUnits, parseEther, parseUnits } from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import type { SettlementView } from "../../src/features/contracts/ledger.js";
import type { VoteView } from "../../src/features/votes/view.js";
import type { Agent } from "../support/agent.js";
import { paidBy, tokensOf } from "../support/chain.js";
import { DAY, disputed, newJuror, untilStatus, vote } from "../support/contracts.js";
import { allEvents } from "../support/event-log.js";
import {
  ballotsOf,
  bondOutcomesOf,
  outcomesOf,
  WORKED_RESULTS,
  type WorkedResult,
} from "../support/worked-results.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
/** A, B and C of the worked results. Each case has a separate client and worker. */
const jury = await Promise.all([newJuror(world), newJuror(world), newJuror(world)]);

const usd = (amount: string) => parseUnits(amount, 6);

const bondOf = ({ price }: WorkedResult) => usd(price) / 20n;

describe("after the tally", () => {
  const played = new Map<string, { id: string; client: Agent; worker: Agent }>();
  let dollars: bigint[];

  beforeAll(async () => {
    dollars = await Promise.all(jury.map(({ address }) => world.usdOf(address)));
    const plays = WORKED_RESULTS.map(async (story) => {
      const client = await world.newAgent({ usd: formatUnits(usd(story.price) + bondOf(story), 6) });
      const worker = await world.newAgent({ usd: formatUnits(bondOf(story), 6) });
      const { id } = await disputed(world, { client, worker }, { budgetOrPrice: story.price });
      // One after another: the order of the bonds becomes the order of `backupAgents`.
      for (const [i, words] of ballotsOf(story).entries()) await vote(jury[i] as Agent, id, ...words);
      played.set(story.name, { id, client, worker });
    });
    await Promise.all(plays);
    await world.increaseTime(DAY);
  });

  test.each(WORKED_RESULTS)("$name: everyone is paid what it is due, to the unit", async (story) => {
    const { id, client, worker } = played.get(story.name) as { id: string; client: Agent; worker: Agent };
    const ballots = ballotsOf(story);
    const criteriaMet = outcomesOf(story.criteriaMet);
    const voters = jury.slice(0, ballots.length);
    const settled = await untilStatus(client, id, story.status);
    expect(settled).toMatchObject({
      criteriaMet,
      backupAgents: voters.map(({ address }) => address),
      budgetOrPrice: story.price,
      escrowedFunds: story.price,
    });

    const juryDues = story.jury.map(usd);
    const paid = () => Promise.all(voters.map(({ address }) => paidBy(world, id, address)));
    await expect.poll(paid).toEqual(juryDues);
    expect(await world.usdOf(client.address)).toBe(usd(story.client));
    expect(await world.usdOf(worker.address)).toBe(usd(story.worker));
    const escrow = { address: id as `0x${string}`, abi: escrowAbi };
    expect(await world.usdOf(escrow.address)).toBe(0n);
    const read = (functionName: "status" | "booked") =>
      world.publicClient.readContract({ ...escrow, functionName });
    expect(STATUSES[Number(await read("status")) - 1]).toBe(story.status);
    expect(await read("booked")).toBe(0n);
    const claimed = { ...escrow, eventName: "VoteClaimed", fromBlock: 0n } as const;
    const claims = await world.publicClient.getContractEvents(claimed);
    const rewardOf = ({ address }: Agent) =>
      claims
        .filter(({ args }) => args.backupAgent?.toLowerCase() === address)
        .reduce((sum, { args }) => sum + Number(args.reward), 0);
    expect(voters.map(rewardOf)).toEqual(story.tokens);

    await world.indexed();
    const { data: settlement } = await client.get<SettlementView>(`/v1/contracts/${id}/settlement`);
    expect(settlement).toMatchObject({ status: story.status, ending: "dispute" });
    expect(new Set(settlement.legs.map(({ state }) => state))).toEqual(new Set(["confirmed"]));
    const sumTo = (to: string) =>
      settlement.legs.filter((leg) => leg.to === to).reduce((sum, { amount }) => sum + usd(amount), 0n);
    expect([sumTo("client"), sumTo("worker"), sumTo("treasury"), sumTo("backup-agent")]).toEqual([
      usd(story.client),
      usd(story.worker),
      usd(story.treasury),
      juryDues.reduce((sum, due) => sum + due, 0n),
    ]);
    const treasury = settlement.legs.find(({ to }) => to === "treasury")?.address as `0x${string}`;
    expect(await paidBy(world, id, treasury)).toBe(usd(story.treasury));

    const { data: votes } = await client.get<VoteView[]>(`/v1/contracts/${id}/votes`);
    for (const [i, { address }] of voters.entries()) {
      const own = votes.filter(({ backupAgent }) => backupAgent === address);
      expect(own.map((vote) => vote.vote)).toEqual(ballots[i]);
      expect(own.map((vote) => vote.majorityOutcome)).toEqual(criteriaMet);
      if (story.bonds !== "")
        expect(own.map((vote) => vote.bondOutcome)).toEqual(bondOutcomesOf(story.bonds)[i]);
      expect(own.reduce((sum, { reward }) => sum + (reward ?? Number.NaN), 0)).toBe(story.tokens[i]);
    }
  });

  test("the jury holds all its money and tokens on chain", async () => {
    for (const [i, { address }] of jury.entries()) {
      const stories = WORKED_RESULTS.filter((story) => i < ballotsOf(story).length);
      const due = stories.reduce((sum, story) => sum + usd(story.jury[i] ?? "0") - 3n * bondOf(story), 0n);
      const tokens = stories.reduce((sum, story) => sum + (story.tokens[i] ?? 0), 0);
      expect(await world.usdOf(address)).toBe((dollars[i] ?? 0n) + due);
      expect(await tokensOf(world, address)).toBe(parseEther(String(tokens)));
      const received = stories.filter((story) => story.jury[i] !== "0.0" || story.tokens[i] !== 0);
      const logged = async () =>
        (await allEvents(jury[0], `agent=${address}&type=payout.paid`)).map(({ data }) => data.amount).sort();
      await expect.poll(logged).toEqual(received.map((story) => story.jury[i]).sort());
    }
  });
});
