/** `/simulator`: computes a contract's payout with the ledger that settles real contracts. */
import { formatDecimal, MAX_PRICE, parseDecimal } from "@working-contracts/protocol/amounts";
import {
  disputeBond,
  juryDues,
  payoutOf,
  voteDeposit,
  workerStake,
} from "@working-contracts/protocol/ledger";
import {
  MAX_CRITERIA,
  OUTCOMES,
  type Outcome,
  packOutcomes,
  unpackOutcomes,
} from "@working-contracts/protocol/outcomes";
import { settlementLegs, statusOf } from "@working-contracts/protocol/status";
import type { Parameters } from "@working-contracts/protocol/terms";
import type { Context } from "hono";
import type { Deps } from "../deps.js";
import type { AppEnv } from "../http/middleware.js";
import { Amount, Choice, OutcomeBadge, plural, Region, Rows, StatusBadge, say } from "./components.js";
import { FlowPicture, LEG_WORDS, PAYEE_WORDS } from "./contract/money.js";

/** `/simulator`: computes the payout on the server. */
export function showSimulator({ readParameters }: Pick<Deps, "readParameters">) {
  return async (c: Context<AppEnv>) => {
    const query = readQuery(new URL(c.req.url).searchParams);
    const scenario = toScenario(query);
    if ("fault" in scenario) c.status(400);
    const result = "fault" in scenario ? scenario : simulate(scenario, await readParameters());
    return c.render(<SimulatorPage query={query} result={result} />, {
      title: "Payout simulator",
      section: "/simulator",
    });
  };
}

interface SimulatorQuery {
  price: string;
  end: End;
  /** One per criterion of the form; empty if the criterion is not used. */
  criteria: (Outcome | "")[];
  votes: string;
  initiator: "client" | "worker";
}

/** Keeps the result readable. */
const MAX_BALLOTS = 25;
const LETTERS: Record<string, Outcome> = { m: "met", n: "not met", u: "unclear" };
const FIRST: SimulatorQuery = {
  price: "50.0",
  end: "dispute",
  criteria: ["met", "met", "not met"],
  votes: "mmn\nmmn\nmum",
  initiator: "client",
};

/** Reads the submitted form; an example if nothing was submitted. */
export function readQuery(params: URLSearchParams): SimulatorQuery {
  if (params.size === 0) return FIRST;
  const end = params.get("end") ?? "";
  return {
    price: (params.get("price") ?? "").trim(),
    end: Object.hasOwn(ENDS, end) ? (end as End) : "accepted",
    criteria: params
      .getAll("c")
      .slice(0, MAX_CRITERIA)
      .map((word) => OUTCOMES.find((outcome) => outcome === word) ?? ""),
    votes: (params.get("votes") ?? "").trim(),
    initiator: params.get("initiator") === "worker" ? "worker" : "client",
  };
}

/** Converts the form to a scenario, or returns a sentence that says what is wrong with it. */
export function toScenario(query: SimulatorQuery): Scenario | { fault: string } {
  const price = parseDecimal(query.price);
  if (price === null || price === 0n || price > MAX_PRICE) {
    const most = formatDecimal(MAX_PRICE);
    return { fault: `The price must be a decimal above 0, at most ${most}, with at most 6 decimals.` };
  }
  const outcomes = query.criteria.filter((outcome) => outcome !== "");
  if (outcomes.length === 0) return { fault: "There must be at least one criterion." };

  const lines = query.end === "dispute" && query.votes !== "" ? query.votes.split(/\s+/) : [];
  if (lines.length > MAX_BALLOTS)
    return { fault: `The simulator supports at most ${MAX_BALLOTS} Backup Agents.` };
  const ballots = lines.map((line) => [...line.toLowerCase()].map((letter) => LETTERS[letter]));
  const isWhole = ballots.every(
    (ballot) => ballot.length === outcomes.length && ballot.every((vote) => vote !== undefined),
  );
  if (!isWhole) {
    return {
      fault: `Each line of votes must have ${outcomes.length} letters, one per criterion: m, n or u.`,
    };
  }
  const workerInitiated = query.initiator === "worker";
  return { price, end: query.end, outcomes, ballots: ballots as Outcome[][], workerInitiated };
}

const OUTCOME_WORDS = { "": "none", ...Object.fromEntries(OUTCOMES.map((word) => [word, word])) };

function SimulatorPage({ query, result }: { query: SimulatorQuery; result: Simulation | { fault: string } }) {
  return (
    <>
      <h1>Payout simulator</h1>
      <p class="lead">
        Computes the payout of a contract to the smallest unit, with the ledger that settles real contracts
        and the current parameters.
      </p>
      <div class="columns">
        <div>
          <Form query={query} />
        </div>
        <div>
          {"fault" in result ? (
            <p class="notice bad" role="alert">
              {result.fault}
            </p>
          ) : (
            <Result simulation={result} />
          )}
        </div>
      </div>
    </>
  );
}

function Form({ query }: { query: SimulatorQuery }) {
  return (
    <form class="panel stack" method="get" action="/simulator">
      <label>
        Price
        <input name="price" value={query.price} inputmode="decimal" required maxlength={30} />
      </label>
      <Choice label="How it ends" name="end" chosen={query.end} options={END_WORDS} />
      <Choice
        label="Posted by"
        name="initiator"
        chosen={query.initiator}
        options={{ client: "the client", worker: "the worker" }}
      />
      <fieldset>
        <legend>Outcome of each criterion</legend>
        <div class="choices">
          {Array.from({ length: MAX_CRITERIA }, (_, i) => (
            <Choice
              label={`Criterion ${i + 1}`}
              name="c"
              chosen={query.criteria[i]}
              options={OUTCOME_WORDS}
            />
          ))}
        </div>
        <p class="meta">
          Approval marks every criterion of an ordinary contract as met. The criteria of a usage ticket are
          computed; if the client accepts, unclear ones pay as met.
        </p>
      </fieldset>
      <label>
        Votes in a dispute
        <textarea name="votes" rows={4} maxlength={600} spellcheck={false} aria-describedby="votes-help">
          {query.votes}
        </textarea>
      </label>
      <p class="meta" id="votes-help">
        One line per Backup Agent, one letter per criterion: m met, n not met, u unclear. A dispute without
        votes leaves every criterion unclear.
      </p>
      <div class="actions">
        <button type="submit">Compute</button>
      </div>
    </form>
  );
}

function Result({ simulation }: { simulation: Simulation }) {
  const { status, outcomes, deposits, legs, jury, totals } = simulation;
  return (
    <>
      <section class="panel" aria-label="Result">
        <h2>Result</h2>
        <p class="figures">
          <StatusBadge status={status} />
          {outcomes?.map((outcome) => (
            <OutcomeBadge outcome={outcome} />
          ))}
        </p>
        <FlowPicture title="Money through the escrow" from={deposits} to={totals} />
        <p class="equation" id="balance">
          <span>
            <Amount value={formatDecimal(simulation.in)} /> in
          </span>{" "}
          ={" "}
          <span>
            <Amount value={formatDecimal(simulation.out)} /> out
          </span>
        </p>
        <table id="totals">
          <caption class="hidden">Totals</caption>
          <Rows
            headed
            columns={["To", "#Amount"]}
            rows={totals.map(({ label, amount }) => [label, formatDecimal(amount)])}
          />
        </table>
      </section>
      <Region title="Payments">
        <table id="legs">
          <caption class="hidden">Payments of the settlement</caption>
          <Rows
            columns={["Payment", "To", "#Amount"]}
            rows={[
              ...legs.map(({ name, payee, amount }) => [
                LEG_WORDS[name],
                PAYEE_WORDS[payee],
                formatDecimal(amount),
              ]),
              ...jury.map(({ amount, reward }, i) => [
                LEG_WORDS["jury-payout"],
                say`Backup Agent ${i + 1}${<small>and {plural(reward, "token")}</small>}`,
                formatDecimal(amount),
              ]),
            ]}
          />
        </table>
      </Region>
    </>
  );
}

/** Each ending in words, and the phase from which it is settled once every deadline has passed. */
const ENDS = {
  accepted: ["The client approves, or lets the review deadline pass", "approved"],
  dispute: ["The client disputes, Backup Agents vote", "tallied"],
  absent: ["The worker never delivers", "matched"],
  withdrawn: ["The worker withdraws in time", "withdrawn"],
  unmatched: ["No one accepts, or it is cancelled or declined", "declined"],
} as const;
type End = keyof typeof ENDS;
const END_WORDS = Object.fromEntries(Object.entries(ENDS).map(([end, [words]]) => [end, words]));

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

/** `jury`: payout of each ballot in base units, and its reward in whole tokens. */
export type Simulation = ReturnType<typeof simulate>;

/** Computes every leg of the scenario. Unclear outcomes of an accepted delivery pay as met (docs/rules.md 33). */
export function simulate(scenario: Scenario, parameters: Parameters) {
  const { price, end, workerInitiated } = scenario;
  const criteriaCount = scenario.outcomes.length;
  const isDisputed = end === "dispute";
  const ballots = isDisputed ? scenario.ballots.map(packOutcomes) : [];
  const dues = juryDues(ballots, { price, criteriaCount, parameters });
  const accepted = end === "accepted" ? packOutcomes(scenario.outcomes) : 0;
  const facts = {
    phase: ENDS[end][1],
    settled: true,
    outcomes: isDisputed ? dues.outcomes : accepted,
    price,
    criteriaCount,
    computedCriteria: false,
    matchDeadline: 0,
    deliveryDeadline: 0,
    reviewDeadline: 0,
    workerInitiated,
    juryLeftover: dues.leftover,
    parameters,
  };
  const legs = settlementLegs(facts, 0) ?? [];
  const jury = dues.dues;

  const isMatched = end !== "unmatched";
  const deposits = [
    { label: "Price", amount: isMatched || !workerInitiated ? price : 0n },
    { label: "Worker Stake", amount: isMatched || workerInitiated ? workerStake(price, parameters) : 0n },
    { label: "Dispute Bond", amount: isDisputed ? disputeBond(price, parameters) : 0n },
    { label: "Jury bonds", amount: BigInt(jury.length) * voteDeposit(price, criteriaCount, parameters) },
  ].filter(({ amount }) => amount > 0n);
  const payout = payoutOf(legs);
  const totals = [
    { label: "Client", amount: payout.client },
    { label: "Worker", amount: payout.worker },
    { label: "Treasury", amount: payout.treasury },
    { label: "Backup Agents", amount: jury.reduce((sum, { amount }) => sum + amount, 0n) },
  ];
  const sum = (list: { amount: bigint }[]) => list.reduce((total, { amount }) => total + amount, 0n);
  const outcomes = unpackOutcomes(facts.outcomes, criteriaCount);
  const [paidIn, paidOut] = [sum(deposits), sum(totals)];
  return { status: statusOf(facts, 0), outcomes, deposits, legs, jury, totals, in: paidIn, out: paidOut };
}
