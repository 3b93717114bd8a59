import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import {
  disputeBond,
  juryDues,
  resolve,
  resolvedLegs,
  voteDeposit,
  workerStake,
} from "@working-contracts/protocol/ledger";
import { packOutcomes, tallyOutcomes } from "@working-contracts/protocol/outcomes";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ballotsOf, bondOutcomesOf, outcomesOf, WORKED_RESULTS } from "../../support/worked-results.js";
import { outcomeArbitrary, parametersArbitrary, priceArbitrary } from "./fixtures.js";

const parameters = DEFAULT_PARAMETERS;

function amount(text: string): bigint {
  const parsed = parseDecimal(text);
  if (parsed === null) throw new Error(`Not an amount: ${text}`);
  return parsed;
}

it.each(WORKED_RESULTS)("worked result of docs/rules.md 52: $name", (story) => {
  const price = amount(story.price);
  const outcomes = packOutcomes(outcomesOf(story.criteriaMet));
  const jury = juryDues(ballotsOf(story).map(packOutcomes), { price, criteriaCount: 3, parameters });
  expect(jury.outcomes).toBe(outcomes);
  expect(jury.dues.map((due) => formatDecimal(due.amount))).toEqual(story.jury);
  expect(jury.dues.map(({ reward }) => reward)).toEqual(story.tokens);
  const bonds = jury.dues.map(({ criteria }) => criteria.map(({ bondOutcome }) => bondOutcome));
  if (story.bonds !== "") expect(bonds).toEqual(bondOutcomesOf(story.bonds));
  const tally = tallyOutcomes(outcomes, 3);
  const payout = resolve({ price, tally, disputed: true, juryLeftover: jury.leftover, parameters });
  expect(payout).toEqual({
    client: amount(story.client),
    worker: amount(story.worker),
    treasury: amount(story.treasury),
  });
});

it("names every movement once", () => {
  const tally = { met: 2, notMet: 1, unclear: 0 };
  const legs = resolvedLegs({ price: amount("50"), tally, disputed: true, juryLeftover: 7n, parameters });
  expect(legs.map((leg) => `${leg.name} -> ${leg.payee}: ${formatDecimal(leg.amount)}`)).toEqual([
    "worker-pay -> worker: 31.666667",
    "protocol-fee -> treasury: 1.666666",
    "price-refund -> client: 16.666667",
    "slashed-stake-to-client -> client: 0.666666",
    "slashed-stake-to-treasury -> treasury: 0.166667",
    "stake-back -> worker: 1.666667",
    "dispute-bond-lost -> worker: 1.666666",
    "dispute-bond-back -> client: 0.833334",
    "jury-leftover -> treasury: 0.000007",
  ]);
});

describe("conservation", () => {
  const ballotsArbitrary = fc.integer({ min: 1, max: 10 }).chain((criteriaCount) =>
    fc.record({
      criteriaCount: fc.constant(criteriaCount),
      ballots: fc.array(
        fc.option(fc.array(outcomeArbitrary, { minLength: criteriaCount, maxLength: criteriaCount }), {
          freq: 5,
        }),
        { maxLength: 30 },
      ),
    }),
  );

  it("holds to the unit over any disputed contract: in = out", () => {
    fc.assert(
      fc.property(
        priceArbitrary,
        ballotsArbitrary,
        parametersArbitrary,
        (price, { criteriaCount, ballots }, p) => {
          const jury = juryDues(
            ballots.map((ballot) => ballot && packOutcomes(ballot)),
            { price, criteriaCount, parameters: p },
          );
          const payout = resolve({
            price,
            tally: tallyOutcomes(jury.outcomes, criteriaCount),
            disputed: true,
            juryLeftover: jury.leftover,
            parameters: p,
          });
          const paidIn =
            price +
            workerStake(price, p) +
            disputeBond(price, p) +
            BigInt(ballots.length) * voteDeposit(price, criteriaCount, p);
          const paidOut = jury.dues.reduce(
            (sum, due) => sum + due.amount,
            payout.client + payout.worker + payout.treasury,
          );
          expect(paidOut).toBe(paidIn);
          expect(
            [payout.client, payout.worker, payout.treasury, jury.leftover].every((part) => part >= 0n),
          ).toBe(true);
          expect(jury.dues.every((due) => due.amount >= 0n)).toBe(true);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
