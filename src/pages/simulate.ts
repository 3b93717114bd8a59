/** Computes a contract's payout with the ledger that settles real contracts. */
import {
  absentLegs,
  countVotes,
  disputeBond,
  juryDues,
  type Leg,
  majority,
  payoutOf,
  released,
  resolvedLegs,
  unmatchedLegs,
  voteDeposit,
  withdrawnLegs,
  workerStake,
} from "@working-contracts/protocol/ledger";
import { type Outcome, packOutcomes, tallyOutcomes } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Parameters } from "@working-contracts/protocol/terms";

/** Possible endings. `accepted` is approval or a passed review deadline; `unmatched` includes cancelled and declined. */
export const ENDS = ["accepted", "dispute", "absent", "withdrawn", "unmatched"] as const;
export type End = (typeof ENDS)[number];

export interface Scenario {
  /** Base units. */
  price: bigint;
  end: End;
  /** One per criterion. The ballots of a dispute replace them. */
  outcomes: Outcome[];
  /** Votes of each Backup Agent, one per criterion. Without ballots, every criterion of a dispute is unclear. */
  ballots: Outcome[][];
  workerInitiated: boolean;
}

export interface Simulation {
  status: Status;
  outcomes: Outcome[] | null;
  deposits: { label: string; amount: bigint }[];
  legs: Leg[];
  /** Payout of each ballot in base units, and its reward in whole tokens. */
  jury: { amount: bigint; reward: number }[];
  totals: { label: string; amount: bigint }[];
  in: bigint;
  out: bigint;
}

/** Computes every leg of the scenario. Unclear outcomes of an accepted delivery pay as met (docs/rules.md 33). */
export function simulate(scenario: Scenario, parameters: Parameters): Simulation {
  const { price, end, ballots } = scenario;
  const criteriaCount = (end === "dispute" ? (ballots[0] ?? scenario.outcomes) : scenario.outcomes).length;
  const isDisputed = end === "dispute";
  const dues = juryDues(isDisputed ? ballots.map(packOutcomes) : [], { price, criteriaCount, parameters });
  const outcomes = outcomesOf(scenario);
  const { status, legs } = ending(scenario, { outcomes, juryLeftover: dues.leftover, parameters });
  const jury = dues.dues.map(({ amount, reward }) => ({ amount, reward }));

  const isMatched = end !== "unmatched";
  const deposits = [
    { label: "Price", amount: isMatched || !scenario.workerInitiated ? price : 0n },
    {
      label: "Worker Stake",
      amount: isMatched || scenario.workerInitiated ? workerStake(price, parameters) : 0n,
    },
    { label: "Dispute Bond", amount: isDisputed ? disputeBond(price, parameters) : 0n },
    {
      label: "Jury bonds",
      amount: BigInt(jury.length) * voteDeposit(price, criteriaCount, parameters),
    },
  ].filter(({ amount }) => amount > 0n);
  const payout = payoutOf(legs);
  const totals = [
    { label: "Client", amount: payout.client },
    { label: "Worker", amount: payout.worker },
    { label: "Treasury", amount: payout.treasury },
    { label: "Backup Agents", amount: jury.reduce((sum, { amount }) => sum + amount, 0n) },
  ];
  const sum = (list: { amount: bigint }[]) => list.reduce((total, { amount }) => total + amount, 0n);
  return { status, outcomes, deposits, legs, jury, totals, in: sum(deposits), out: sum(totals) };
}

function outcomesOf({ end, outcomes, ballots }: Scenario): Outcome[] | null {
  if (end === "accepted") return outcomes;
  if (end !== "dispute") return null;
  const packed = ballots.map(packOutcomes);
  // Without votes the tally leaves every criterion unclear.
  return ballots[0] === undefined
    ? outcomes.map(() => "unclear")
    : ballots[0].map((_, i) => majority(countVotes(packed, i)));
}

function ending(
  { price, end, workerInitiated }: Scenario,
  facts: { outcomes: Outcome[] | null; juryLeftover: bigint; parameters: Parameters },
): { status: Status; legs: Leg[] } {
  const { parameters } = facts;
  switch (end) {
    case "absent":
      return { status: "cancelled-absent", legs: absentLegs(price, parameters) };
    case "withdrawn":
      return { status: "cancelled-withdrawn", legs: withdrawnLegs(price, parameters) };
    case "unmatched":
      return { status: "cancelled-unmatched", legs: unmatchedLegs(price, workerInitiated, parameters) };
    default: {
      const outcomes = facts.outcomes ?? [];
      const { met, notMet, unclear } = tallyOutcomes(packOutcomes(outcomes), outcomes.length);
      const disputed = end === "dispute";
      const tally = disputed ? { met, notMet, unclear } : { met: met + unclear, notMet, unclear: 0 };
      const gross = released(price, tally);
      return {
        status: gross === price ? "settled-all-met" : gross === 0n ? "settled-none-met" : "settled-partial",
        legs: resolvedLegs({ price, tally, disputed, juryLeftover: facts.juryLeftover, parameters }),
      };
    }
  }
}
