import { formatDecimal } from "@working-contracts/protocol/amounts";
import { MAX_CRITERIA, OUTCOMES } from "@working-contracts/protocol/outcomes";
import { Amount, OutcomeBadge, StatusBadge } from "../components.js";
import { LEG_WORDS, PAYEE_WORDS } from "../contract/money-words.js";
import { FlowPicture } from "../flow-picture.js";
import { plural } from "../format.js";
import type { SimulatorQuery } from "./query.js";
import type { End, Simulation } from "./simulate.js";

const END_WORDS: Record<End, string> = {
  accepted: "The client approves, or lets the review deadline pass",
  dispute: "The client disputes, Backup Agents vote",
  absent: "The worker never delivers",
  withdrawn: "The worker withdraws in time",
  unmatched: "No one accepts, or it is cancelled or declined",
};

export function SimulatorPage({
  query,
  result,
}: {
  query: SimulatorQuery;
  result: Simulation | { fault: string };
}) {
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
      <label>
        How it ends
        <select name="end">
          {Object.entries(END_WORDS).map(([end, words]) => (
            <option value={end} selected={end === query.end}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label>
        Posted by
        <select name="initiator">
          <option value="client" selected={query.initiator === "client"}>
            the client
          </option>
          <option value="worker" selected={query.initiator === "worker"}>
            the worker
          </option>
        </select>
      </label>
      <fieldset>
        <legend>Outcome of each criterion</legend>
        <div class="choices">
          {Array.from({ length: MAX_CRITERIA }, (_, i) => (
            <label>
              Criterion {i + 1}
              <select name="c">
                <option value="">none</option>
                {OUTCOMES.map((outcome) => (
                  <option value={outcome} selected={outcome === query.criteria[i]}>
                    {outcome}
                  </option>
                ))}
              </select>
            </label>
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
        One line per Backup Agent, one letter per criterion: m met, n not met, u unclear. Votes replace the
        outcomes above; without votes, those apply.
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
          <tbody>
            {totals.map(({ label, amount }) => (
              <tr>
                <th scope="row">{label}</th>
                <td class="number">{formatDecimal(amount)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section class="panel">
        <h2>Payments</h2>
        <table id="legs">
          <caption class="hidden">Payments of the settlement</caption>
          <thead>
            <tr>
              <th scope="col">Payment</th>
              <th scope="col">To</th>
              <th scope="col" class="number">
                Amount
              </th>
            </tr>
          </thead>
          <tbody>
            {legs.map(({ name, payee, amount }) => (
              <tr>
                <td>{LEG_WORDS[name]}</td>
                <td>{PAYEE_WORDS[payee]}</td>
                <td class="number">{formatDecimal(amount)}</td>
              </tr>
            ))}
            {jury.map(({ amount, reward }, i) => (
              <tr>
                <td>{LEG_WORDS["jury-payout"]}</td>
                <td>
                  Backup Agent {i + 1}
                  <small>and {plural(reward, "token")}</small>
                </td>
                <td class="number">{formatDecimal(amount)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
