/** The payout ledger (docs/rules.md 45 to 51), as in Settlement.sol and EscrowJury.sol: integers, divisions round down. */

import { share, TOKEN_DECIMALS } from "./amounts.js";
import {
  countOutcomes,
  type Outcome,
  type OutcomeTally,
  outcomeAt,
  packOutcomes,
  tallyOutcomes,
} from "./outcomes.js";
import type { Parameters } from "./terms.js";
import type { EscrowTerms } from "./types.js";

/** Base units for each payee, without the jury's payouts. */
export interface Payout {
  client: bigint;
  worker: bigint;
  treasury: bigint;
}

/** Payments to the parties and the Treasury (docs/rules.md 51). Those to Backup Agents are `jury-payout`. */
export const LEG_NAMES = [
  "worker-pay",
  "protocol-fee",
  "price-refund",
  "slashed-stake-to-client",
  "slashed-stake-to-treasury",
  "stake-back",
  "dispute-bond-lost",
  "dispute-bond-back",
  "deposit-refund",
  "jury-leftover",
] as const;
/** The `name` of a payment in the API's settlement. */
export type LegName = (typeof LEG_NAMES)[number];

/** One payment of the ledger. Legs of zero are omitted. */
export interface Leg {
  name: LegName;
  payee: keyof Payout;
  amount: bigint;
}

export const workerStake = (price: bigint, { workerStakeRatio }: Pick<Parameters, "workerStakeRatio">) =>
  share(price, workerStakeRatio);

/** The initiator's deposit to open a Working Contract, and the acceptor's to match it: one price, one Worker Stake. */
export function depositsOf(terms: Pick<EscrowTerms, "price" | "workerInitiated" | "parameters">) {
  const { price } = terms;
  const stake = workerStake(price, terms.parameters);
  return terms.workerInitiated
    ? { initiator: stake, acceptor: price }
    : { initiator: price, acceptor: stake };
}

export const disputeBond = (price: bigint, { disputeBondRatio }: Pick<Parameters, "disputeBondRatio">) =>
  share(price, disputeBondRatio);

/** A Backup Agent's bond for one criterion. */
export const voteBond = (price: bigint, { backupAgentBondRatio }: Parameters) =>
  share(price, backupAgentBondRatio);

/** The sum of the bonds that a Backup Agent pays to vote on all criteria. */
export const voteDeposit = (price: bigint, criteriaCount: number, parameters: Parameters) =>
  BigInt(criteriaCount) * voteBond(price, parameters);

/** The Worker's part of the price, before the fee. */
export function released(price: bigint, tally: OutcomeTally): bigint {
  const criteria = tally.met + tally.notMet + tally.unclear;
  return (price * BigInt(2 * tally.met + tally.unclear)) / BigInt(2 * criteria);
}

/** Amounts are in base units. */
interface ResolvedContract {
  price: bigint;
  tally: OutcomeTally;
  /** Whether a Dispute Bond was posted. */
  disputed: boolean;
  /** Slashed jury bonds that no voter receives; see {@link juryDues}. */
  juryLeftover?: bigint;
  parameters: FeeParameters;
}

/** Legs of a Working Contract that ended with an outcome for each criterion. */
export function resolvedLegs(ended: ResolvedContract): Leg[] {
  const { price, tally, juryLeftover = 0n, parameters } = ended;
  const criteria = BigInt(tally.met + tally.notMet + tally.unclear);
  const stake = workerStake(price, parameters);
  const bond = ended.disputed ? disputeBond(price, parameters) : 0n;
  const gross = released(price, tally);
  const fee = share(gross, parameters.protocolFee);
  const slash = (stake * BigInt(tally.notMet)) / criteria;
  const slashToClient = share(slash, parameters.absentNoneMetClientShare);
  const bondLost = (bond * BigInt(tally.met)) / criteria;

  return nonZero([
    { name: "worker-pay", payee: "worker", amount: gross - fee },
    { name: "protocol-fee", payee: "treasury", amount: fee },
    { name: "price-refund", payee: "client", amount: price - gross },
    { name: "slashed-stake-to-client", payee: "client", amount: slashToClient },
    { name: "slashed-stake-to-treasury", payee: "treasury", amount: slash - slashToClient },
    { name: "stake-back", payee: "worker", amount: stake - slash },
    { name: "dispute-bond-lost", payee: "worker", amount: bondLost },
    { name: "dispute-bond-back", payee: "client", amount: bond - bondLost },
    { name: "jury-leftover", payee: "treasury", amount: juryLeftover },
  ]);
}

/** Legs if the Worker never delivered: the whole stake is slashed, and no fee is charged. */
export function absentLegs(price: bigint, parameters: Parameters): Leg[] {
  const stake = workerStake(price, parameters);
  const slashToClient = share(stake, parameters.absentNoneMetClientShare);
  return nonZero([
    { name: "price-refund", payee: "client", amount: price },
    { name: "slashed-stake-to-client", payee: "client", amount: slashToClient },
    { name: "slashed-stake-to-treasury", payee: "treasury", amount: stake - slashToClient },
  ]);
}

/** Legs if the Worker withdrew in time: part of the stake goes to the Client, and no fee is charged. */
export function withdrawnLegs(price: bigint, parameters: Parameters): Leg[] {
  const stake = workerStake(price, parameters);
  const slash = share(stake, parameters.earlyWithdrawalSlashRatio);
  return nonZero([
    { name: "price-refund", payee: "client", amount: price },
    { name: "slashed-stake-to-client", payee: "client", amount: slash },
    { name: "stake-back", payee: "worker", amount: stake - slash },
  ]);
}

/** The only leg if no one accepted: the full refund of the initiator's deposit. */
export function unmatchedLegs(price: bigint, workerInitiated: boolean, parameters: Parameters): Leg[] {
  return nonZero([
    workerInitiated
      ? { name: "deposit-refund", payee: "worker", amount: workerStake(price, parameters) }
      : { name: "deposit-refund", payee: "client", amount: price },
  ]);
}

/** Sums the legs by payee, as WorkingContractSettled reports them. */
export function payoutOf(legs: readonly Leg[]): Payout {
  const payout: Payout = { client: 0n, worker: 0n, treasury: 0n };
  for (const leg of legs) payout[leg.payee] += leg.amount;
  return payout;
}

/** Mirrors Settlement.resolve, plus the jury's leftover. */
export const resolve = (ended: ResolvedContract): Payout => payoutOf(resolvedLegs(ended));

const nonZero = (legs: Leg[]): Leg[] => legs.filter((leg) => leg.amount !== 0n);

/** The result of a Backup Agent's bond for one criterion (docs/rules.md 46). */
type BondOutcome = "returned" | "slashed" | "partially slashed";

/** Number of opened votes on one criterion, by outcome, and of sealed votes that were never opened. */
interface CriterionVotes extends OutcomeTally {
  unopened: number;
}

/** The outcome of a criterion: that of more than half of the opened votes, otherwise unclear. */
export function majority(votes: CriterionVotes): Outcome {
  const cast = votes.met + votes.notMet + votes.unclear;
  if (2 * votes.met > cast) return "met";
  return 2 * votes.notMet > cast ? "not met" : "unclear";
}

/** Slashed bonds on one criterion, and how many voters share them. With zero winners, the Treasury receives the pot. */
export function pot(votes: CriterionVotes, bond: bigint, unclearSlash: bigint) {
  const outcome = majority(votes);
  if (outcome === "unclear") return { pot: BigInt(votes.unopened) * bond, winners: 0 };

  const [winners, losers] = outcome === "met" ? [votes.met, votes.notMet] : [votes.notMet, votes.met];
  return { pot: BigInt(losers + votes.unopened) * bond + BigInt(votes.unclear) * unclearSlash, winners };
}

/** Counts the votes on one criterion over packed ballots. A null ballot was never opened. */
function countVotes(ballots: readonly (number | null)[], criterion: number): CriterionVotes {
  const votes = ballots.map((ballot) => (ballot === null ? null : outcomeAt(ballot, criterion)));
  return { ...countOutcomes(votes), unopened: votes.filter((vote) => vote === null).length };
}

/** The fate of a vote's bond, and its reward in whole tokens. One that was never opened (null) forfeits its bond. */
export function verdictOn(
  vote: Outcome | null,
  majorityOutcome: Outcome,
  rewards: Rewards,
): { bondOutcome: BondOutcome; reward: number } {
  if (vote === null) return { bondOutcome: "slashed", reward: 0 };
  const matches = vote === majorityOutcome;
  if (majorityOutcome === "unclear") {
    return { bondOutcome: "returned", reward: matches ? rewards.tokenMintRewardReduced : 0 };
  }
  if (matches) return { bondOutcome: "returned", reward: rewards.tokenMintRewardFull };
  return { bondOutcome: vote === "unclear" ? "partially slashed" : "slashed", reward: 0 };
}

/** Whole tokens that a dispute can mint for 1.0 paid to the Treasury. */
export const REWARD_PER_FEE = 200n;
const STABLECOIN_UNIT = 1_000_000n;

/** Base units of an amount in whole protocol tokens. */
export const tokenUnits = (whole: number | bigint): bigint => BigInt(whole) * 10n ** BigInt(TOKEN_DECIMALS);

/** Whole tokens for a vote with the majority: if it is decisive, and if it is unclear (docs/rules.md 46). */
export type Rewards = Pick<Parameters, "tokenMintRewardFull" | "tokenMintRewardReduced">;
/** The parameters that divide price, Worker Stake and Dispute Bond (docs/rules.md 51), in basis points. */
export type FeeParameters = Pick<
  Parameters,
  "workerStakeRatio" | "disputeBondRatio" | "protocolFee" | "absentNoneMetClientShare"
>;

/** Rewards of one vote in whole tokens, capped by what the contract pays to the Treasury, against farming. Mirrors EscrowJury. */
export function cappedRewards(dispute: {
  price: bigint;
  tally: OutcomeTally;
  openedVotes: number;
  parameters: FeeParameters & Rewards;
}): Rewards {
  const { price, tally, openedVotes, parameters } = dispute;
  const votes = BigInt(openedVotes * (tally.met + tally.notMet + tally.unclear));
  const paid = resolve({ price, tally, disputed: false, parameters }).treasury;
  const cap = votes === 0n ? 0 : Number((paid * REWARD_PER_FEE) / (STABLECOIN_UNIT * votes));
  return {
    tokenMintRewardFull: Math.min(parameters.tokenMintRewardFull, cap),
    tokenMintRewardReduced: Math.min(parameters.tokenMintRewardReduced, cap),
  };
}

/** Outcomes, the payout of each packed ballot in order (a null one, never opened, gets nothing), and what no voter receives. */
export function juryDues(
  ballots: readonly (number | null)[],
  { price, criteriaCount, parameters }: { price: bigint; criteriaCount: number; parameters: Parameters },
) {
  const bond = voteBond(price, parameters);
  const unclearSlash = share(bond, parameters.baUnclearSlashRatio);
  const criteria = Array.from({ length: criteriaCount }, (_, i) => {
    const votes = countVotes(ballots, i);
    return { outcome: majority(votes), ...pot(votes, bond, unclearSlash) };
  });
  const outcomes = packOutcomes(criteria.map(({ outcome }) => outcome));
  const tally = tallyOutcomes(outcomes, criteriaCount);
  const openedVotes = ballots.filter((ballot) => ballot !== null).length;
  const rewards = cappedRewards({ price, tally, openedVotes, parameters });

  const dueOn = (vote: Outcome | null, { outcome, pot, winners }: (typeof criteria)[number]) => {
    const verdict = verdictOn(vote, outcome, rewards);
    const slash = { returned: 0n, "partially slashed": unclearSlash, slashed: bond }[verdict.bondOutcome];
    const potShare = vote === outcome && winners > 0 ? pot / BigInt(winners) : 0n;
    return { majorityOutcome: outcome, ...verdict, bondBack: bond - slash, potShare };
  };
  const dues = ballots.map((ballot) => {
    const own = criteria.map((one, i) => dueOn(ballot === null ? null : outcomeAt(ballot, i), one));
    const amount = own.reduce((sum, due) => sum + due.bondBack + due.potShare, 0n);
    return { criteria: own, amount, reward: own.reduce((sum, due) => sum + due.reward, 0) };
  });
  const leftover = criteria.reduce(
    (sum, { pot, winners }) => sum + (winners === 0 ? pot : pot % BigInt(winners)),
    0n,
  );
  return { outcomes, dues, leftover };
}
