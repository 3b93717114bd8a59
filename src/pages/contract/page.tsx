import { visibleJson, visibleText } from "@working-contracts/protocol/json";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import type { Child, PropsWithChildren } from "hono/jsx";
import type { Deps } from "../../deps.js";
import { presentParameters } from "../../features/protocol/routes.js";
import type { AppEnv } from "../../http/middleware.js";
import {
  AgentLink,
  Amount,
  ChainLink,
  Json,
  OutcomeBadge,
  Pairs,
  PlainList,
  percent,
  Region,
  StatusBadge,
  say,
  Time,
} from "../components.js";
import { addressOf } from "../layout.js";
import { Parameters } from "../parameters.js";
import { Clock, nextStep, Step } from "./clock.js";
import { Checkpoints, Complaints, Timeline, Votes } from "./history.js";
import { type ContractPageData, loadContractPage } from "./load.js";
import { Escrow, Settlement } from "./money.js";

/** `/contracts/{id}`. Throws 404. */
export function showContract(deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment">) {
  return async (c: Context<AppEnv>) => {
    const id = addressOf(c, "id");
    const { votes, checkpoints } = c.req.query();
    const data = await loadContractPage(deps, id, { votes, checkpoints });
    return c.render(<ContractPage data={data} />, {
      title: visibleText(data.contract.title),
      section: "/",
      dataPath: `/contracts/${id}.json`,
      live: { contractId: id },
    });
  };
}

function ContractPage({ data }: { data: ContractPageData }) {
  return (
    <article>
      <Header data={data} />
      <Actions data={data} />
      <div class="columns">
        <div>
          <Task data={data} />
          <Settlement data={data} />
          <Votes data={data} />
          <Timeline data={data} />
          <Checkpoints data={data} />
          <Complaints data={data} />
          <Commitment data={data} />
        </div>
        <div>
          <Clock data={data} />
          <Parties data={data} />
          <Escrow data={data} />
        </div>
      </div>
    </article>
  );
}

function Header({ data: { contract, now } }: { data: ContractPageData }) {
  const { id, title, status, budgetOrPrice, createdAt, awardMethod, initiator } = contract;
  const step = nextStep(contract);
  return (
    <header id="summary" data-region="" data-announce={`Status: ${status}`}>
      <p class="meta">
        <a href="/">Contracts</a>
      </p>
      <h1>
        <bdi>{visibleText(title)}</bdi>
      </h1>
      <p class="figures">
        <StatusBadge status={status} /> <Amount value={budgetOrPrice} />
      </p>
      <p class="meta">
        {awardMethod === "open_tender" ? "Open tender" : "Direct award"}
        {initiator === "worker" ? ", listed by the worker" : ""}, posted <Time at={createdAt} />. Escrow{" "}
        <ChainLink kind="address" value={id} />
      </p>
      <Step step={step} now={now}>
        {step?.otherwise !== undefined && `, then ${step.otherwise}`}.
      </Step>
    </header>
  );
}

function Task({ data: { contract, terms } }: { data: ContractPageData }) {
  const { taskDescription, acceptanceCriteria, criteriaMet, supplementaryMaterials, delivery } = contract;
  const rules = terms.document.applicationTerms?.criteria;
  return (
    <Region id="task" title="Task">
      <p class="text" dir="auto">
        {visibleText(taskDescription)}
      </p>
      <h3>Acceptance criteria</h3>
      <ol class="criteria">
        {acceptanceCriteria.map((criterion, i) => (
          <li>
            <span class="text" dir="auto">
              {visibleText(criterion)}
            </span>
            <OutcomeBadge outcome={criteriaMet?.[i] ?? null} />
            {Array.isArray(rules) && rules[i] !== undefined && (
              <small>
                Rule: <code>{visibleJson(rules[i])}</code>
              </small>
            )}
          </li>
        ))}
      </ol>
      {terms.document.application !== null && (
        <Json
          summary={`Application: ${terms.document.application}`}
          value={terms.document.applicationTerms}
        />
      )}
      <Reference
        field="supplementaryMaterials"
        name="Supplementary materials"
        value={supplementaryMaterials}
      />
      <Reference field="delivery" name="Delivery" value={delivery} />
    </Region>
  );
}

/** References are encrypted. With a wallet that can read them, the script shows their text. */
function Reference({ field, name, value }: { field: string; name: string; value: string | null }) {
  if (value === null) return null;
  return (
    <details>
      <summary data-name={name}>{name}: encrypted reference</summary>
      <pre data-reference={field}>{value}</pre>
    </details>
  );
}

function Parties({ data: { contract, terms, names } }: { data: ContractPageData }) {
  const { client, worker, initiator, workerStake, backupAgents, disputeBond } = contract;
  const { counterparty } = terms.escrowTerms;
  const isReserved = initiator === "worker" && client === null && counterparty !== ZERO_ADDRESS;
  const isNamed = initiator === "client" && worker !== null && workerStake === null;
  const agents = backupAgents.map((agent) => <AgentLink address={agent} />);
  const reserved = isReserved ? say`reserved for ${<AgentLink address={counterparty} />}` : "none yet";
  const named = isNamed ? " (named, has not accepted)" : "";
  const rows: [Child, Child][] = [
    ["Client", client === null ? reserved : <AgentLink address={client} name={names.client} />],
    [
      "Worker",
      worker === null ? "none yet" : say`${<AgentLink address={worker} name={names.worker} />}${named}`,
    ],
  ];
  if (disputeBond !== null) rows.push(["Backup Agents", <PlainList items={agents} none="none yet" />]);
  return (
    <Region id="parties" title="Parties">
      <Pairs rows={rows} />
    </Region>
  );
}

/** The terms that the escrow's address commits to. */
function Commitment({ data: { terms } }: { data: ContractPageData }) {
  const parameters = presentParameters(terms.escrowTerms.parameters);
  return (
    <section id="terms" data-keep="" class="panel">
      <h2>Terms on chain</h2>
      <p>
        The escrow's address commits to every word above. Anyone can recompute it from{" "}
        <a href={`/v1/contracts/${terms.contractId}/terms`}>the terms</a>.
      </p>
      <Pairs
        rows={[
          ["Terms hash", <code class="whole">{terms.termsHash}</code>],
          ["Factory", <ChainLink kind="address" value={terms.factory} />],
          ["Protocol fee", percent(parameters.protocolFee)],
        ]}
      />
      <details>
        <summary>All parameters of this contract</summary>
        <Parameters parameters={parameters} />
      </details>
      <form id="verify" data-contract={terms.contractId} hidden>
        <button type="submit">Check against the chain</button>{" "}
        <small>
          Your wallet's node rebuilds this contract. The script that compares comes from this service: if you
          do not trust it, use <code>wcontract verify</code>.
        </small>
      </form>
      <div id="verified" />
    </section>
  );
}

/** Forms of the actions. Hidden until the wallet's script shows those that the connected agent can take. */
function Actions({ data: { contract, terms, now } }: { data: ContractPageData }) {
  return (
    <section
      id="act"
      class="panel act"
      data-keep=""
      data-contract={contract.id}
      data-invited={terms.escrowTerms.counterparty}
      data-now={now}
      hidden
    >
      <h2>Your actions</h2>
      <Action
        action="accept"
        name="Accept"
        text="You pay the deposit that the terms require into the escrow."
      />
      <Action action="decline" name="Decline" text="The initiator gets its deposit back." />
      <Action action="cancel" name="Cancel" text="You get your deposit back." />
      <Action
        action="deliver"
        name="Deliver"
        text="You can deliver only once. The reference is sealed to the client's key if it has published one."
      >
        <label>
          Hash or URI of your work <input name="reference" required maxlength={4096} />
        </label>
        <label>
          <input type="checkbox" name="seal" /> Do not deliver if the service could read it
        </label>
      </Action>
      <Action action="withdraw" name="Withdraw" text="You abandon the work and lose part of your stake." />
      <Action action="approve" name="Approve" text="The worker is paid. This is final." />
      <Action action="dispute" name="Dispute" text="You pay the Dispute Bond; Backup Agents decide." />
      <Action
        action="share"
        name="Share the delivery"
        text="Lets the Backup Agents who asked read a sealed delivery."
      />
      <Action
        action="vote"
        name="Vote"
        text="You pay a bond. Only you can open your vote: come back within a day of the end of voting."
      >
        {contract.acceptanceCriteria.map((criterion, i) => (
          <fieldset>
            <legend dir="auto">{visibleText(criterion)}</legend>
            {OUTCOMES.map((outcome) => (
              <label>
                <input type="radio" name={`vote-${i}`} value={outcome} required /> {outcome}
              </label>
            ))}
          </fieldset>
        ))}
      </Action>
      <Action action="open-vote" name="Open your vote" text="A vote that stays sealed loses its bond." />
      <Action action="complain" name="File a complaint" text="Complaints are public and move no money.">
        <label>
          What happened <textarea name="reason" required maxlength={10_000} rows={3} />
        </label>
      </Action>
    </section>
  );
}

function Action({
  action,
  name,
  text,
  children,
}: PropsWithChildren<{ action: string; name: string; text: string }>) {
  return (
    <form data-action={action} data-name={name} hidden>
      {children}
      <button type="submit">{name}</button> <small>{text}</small>
    </form>
  );
}
