import { formatDecimal, parseDecimal, share } from "@working-contracts/protocol/amounts";
import {
  absentLegs,
  disputeBond,
  juryDues,
  majority,
  payoutOf,
  resolve,
  resolvedLegs,
  unmatchedLegs,
  voteDeposit,
  withdrawnLegs,
  workerStake,
} from "@working-contracts/protocol/ledger";
import { type Outcome, packOutcomes, tallyOutcomes } from "@working-contracts/protocol/outcomes";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ballotsOf,
  bondOutcomesOf,
  outcomesOf,
  WORKED_RESULTS,
  type WorkedResult,
} from "../../support/worked-results.js";
import { outcomeArbitrary, parametersArbitrary, priceArbitrary } from "./fixtures.js";

const parameters = DEFAULT_PARAMETERS;
const M: Outcome = "met";
const N: Outcome = "not met";

function amount(text: string): bigint {
  const parsed = parseDecimal(text);
  if (parsed === null) throw new Error(`Not an amount: ${text}`);
  return parsed;
}

/** A dispute over three criteria, like the rows of docs/rules.md 52. */
function dispute(price: string, votes: (Outcome[] | null)[]) {
  const facts = { price: amount(price), criteriaCount: 3, parameters };
  const jury = juryDues(
    votes.map((ballot) => ballot && packOutcomes(ballot)),
    facts,
  );
  const payout = resolve({
    price: facts.price,
    tally: tallyOutcomes(jury.outcomes, 3),
    disputed: true,
    juryLeftover: jury.leftover,
    parameters,
  });
  return {
    client: formatDecimal(payout.client),
    worker: formatDecimal(payout.worker),
    treasury: formatDecimal(payout.treasury),
    jury: jury.dues.map((due) => `${formatDecimal(due.amount)}, ${due.reward} tokens`),
    outcomes: jury.outcomes,
    bonds: jury.dues.map((due) => due.criteria.map((criterion) => criterion.bondOutcome)),
  };
}

function decimals(payout: { client: bigint; worker: bigint; treasury: bigint }) {
  return [payout.client, payout.worker, payout.treasury].map((amount) => formatDecimal(amount));
}

describe("worked results of docs/rules.md 52", () => {
  it.each(WORKED_RESULTS)("$name", (story) => {
    const { price, client, worker, treasury, jury, tokens, bonds } = story;
    expect(dispute(price, ballotsOf(story))).toMatchObject({
      ...{ outcomes: packOutcomes(outcomesOf(story.criteriaMet)), client, worker, treasury },
      jury: jury.map((due, i) => `${due}, ${tokens[i]} tokens`),
      ...(bonds !== undefined && { bonds: bondOutcomesOf(bonds) }),
    });
  });

  it("dispute at an odd price pays out exactly what it received", () => {
    const { client, worker, treasury, jury } = WORKED_RESULTS.at(-1) as WorkedResult;
    const out = [client, worker, treasury, ...jury].map(amount);
    expect(formatDecimal(out.reduce((sum, part) => sum + part))).toBe("19.135791");
  });
});

describe("other worked results of docs/rules.md 52, price 50.0", () => {
  const approved = (outcomes: Outcome[]) =>
    decimals(
      resolve({
        price: amount("50"),
        tally: tallyOutcomes(packOutcomes(outcomes), 3),
        disputed: false,
        parameters,
      }),
    );

  it("approve, or review time-out", () => {
    expect(approved([M, M, M])).toEqual(["0.0", "50.0", "2.5"]);
  });

  it("usage ticket approved, 2 of 3 met", () => {
    expect(approved([M, M, N])).toEqual(["17.333333", "33.333334", "1.833333"]);
  });

  it("usage ticket approved, none met", () => {
    expect(approved([N, N, N])).toEqual(["52.0", "0.0", "0.5"]);
  });

  it("absent worker", () => {
    expect(decimals(payoutOf(absentLegs(amount("50"), parameters)))).toEqual(["52.0", "0.0", "0.5"]);
  });

  it("early withdrawal", () => {
    expect(decimals(payoutOf(withdrawnLegs(amount("50"), parameters)))).toEqual(["50.75", "1.75", "0.0"]);
  });

  it("cancelled, declined or unmatched: the initiator's deposit, in full", () => {
    expect(decimals(payoutOf(unmatchedLegs(amount("50"), false, parameters)))).toEqual([
      "50.0",
      "0.0",
      "0.0",
    ]);
    expect(decimals(payoutOf(unmatchedLegs(amount("50"), true, parameters)))).toEqual(["0.0", "2.5", "0.0"]);
  });

  it("quotes a vote on three criteria at 7500000", () => {
    expect(voteDeposit(amount("50"), 3, parameters)).toBe(7_500_000n);
  });
});

describe("price 12.345678, without a dispute", () => {
  it("rounds the slashed part of a stake down, in favour of the Worker or the Treasury", () => {
    expect(decimals(payoutOf(withdrawnLegs(amount("12.345678"), parameters)))).toEqual([
      "12.530862",
      "0.432099",
      "0.0",
    ]);
    expect(decimals(payoutOf(absentLegs(amount("12.345678"), parameters)))).toEqual([
      "12.839504",
      "0.0",
      "0.123457",
    ]);
  });
});

describe("legs", () => {
  it("name every movement once", () => {
    const legs = resolvedLegs({
      price: amount("50"),
      tally: { met: 2, notMet: 1, unclear: 0 },
      disputed: true,
      juryLeftover: 7n,
      parameters,
    });
    expect(
      legs.map((leg) => `${leg.name} -> ${leg.payee}: ${formatDecimal(leg.amount)}`),
    ).toMatchInlineSnapshot(`
      [
        "worker-pay -> worker: 31.666667",
        "protocol-fee -> treasury: 1.666666",
        "price-refund -> client: 16.666667",
        "slashed-stake-to-client -> client: 0.666666",
        "slashed-stake-to-treasury -> treasury: 0.166667",
        "stake-back -> worker: 1.666667",
        "dispute-bond-lost -> worker: 1.666666",
        "dispute-bond-back -> client: 0.833334",
        "jury-leftover -> treasury: 0.000007",
      ]
    `);
  });

  it("leave out amounts that do not move", () => {
    const legs = resolvedLegs({
      price: amount("50"),
      tally: { met: 3, notMet: 0, unclear: 0 },
      disputed: false,
      parameters,
    });
    expect(legs.map((leg) => leg.name)).toEqual(["worker-pay", "protocol-fee", "stake-back"]);
  });
});

describe("jury", () => {
  it.each([
    ["a bare majority", { met: 2, notMet: 1, unclear: 0, unopened: 0 }, "met"],
    ["exactly half", { met: 2, notMet: 1, unclear: 1, unopened: 0 }, "unclear"],
    ["2-2-1", { met: 2, notMet: 2, unclear: 1, unopened: 0 }, "unclear"],
    ["an unclear majority", { met: 1, notMet: 0, unclear: 2, unopened: 0 }, "unclear"],
    ["no opened votes", { met: 0, notMet: 0, unclear: 0, unopened: 5 }, "unclear"],
    ["one opened vote against many unopened", { met: 0, notMet: 1, unclear: 0, unopened: 9 }, "not met"],
  ] as const)("decides %s", (_, votes, outcome) => {
    expect(majority(votes)).toBe(outcome);
  });

  it("takes the bond of a vote that was never opened, for those who matched a decisive majority", () => {
    const dues = juryDues([packOutcomes([M]), null], { price: amount("50"), criteriaCount: 1, parameters });
    expect(dues.dues.map((due) => [due.amount, due.reward])).toEqual([
      [5_000_000n, 10],
      [0n, 0],
    ]);
    expect(dues.dues[1]?.criteria[0]?.bondOutcome).toBe("slashed");
    expect(dues.leftover).toBe(0n);
  });

  it("takes that bond for the Treasury if no one matched a decisive majority", () => {
    const dues = juryDues([null, null], { price: amount("50"), criteriaCount: 2, parameters });
    expect(dues.leftover).toBe(10_000_000n);
    expect(dues.dues.map((due) => due.amount)).toEqual([0n, 0n]);
  });

  it("gives the Treasury the indivisible remainder", () => {
    const facts = { price: amount("0.0002"), criteriaCount: 1, parameters };
    const [met, notMet] = [packOutcomes([M]), packOutcomes([N])];
    const dues = juryDues([met, met, met, notMet], facts);
    expect(dues.leftover).toBe(1n);
    expect(dues.dues.map((due) => due.amount)).toEqual([13n, 13n, 13n, 0n]);
  });
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

  it("holds over every other ending", () => {
    const outcomes = fc.array(outcomeArbitrary, { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(
        priceArbitrary,
        outcomes,
        parametersArbitrary,
        fc.boolean(),
        (price, criteria, p, listing) => {
          const stake = workerStake(price, p);
          const tally = tallyOutcomes(packOutcomes(criteria), criteria.length);
          const total = (payout: { client: bigint; worker: bigint; treasury: bigint }) =>
            payout.client + payout.worker + payout.treasury;
          expect(total(resolve({ price, tally, disputed: false, parameters: p }))).toBe(price + stake);
          expect(total(payoutOf(absentLegs(price, p)))).toBe(price + stake);
          expect(total(payoutOf(withdrawnLegs(price, p)))).toBe(price + stake);
          expect(total(payoutOf(unmatchedLegs(price, listing, p)))).toBe(listing ? stake : price);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("never charges the fee on more than the price", () => {
    fc.assert(
      fc.property(priceArbitrary, parametersArbitrary, (price, p) => {
        const fee = resolvedLegs({
          price,
          tally: { met: 1, notMet: 0, unclear: 0 },
          disputed: true,
          parameters: p,
        })
          .filter((leg) => leg.name === "protocol-fee")
          .reduce((sum, leg) => sum + leg.amount, 0n);
        expect(fee).toBe(share(price, p.protocolFee));
      }),
    );
  });
});
