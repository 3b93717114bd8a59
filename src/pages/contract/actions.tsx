/** Forms of the actions on a contract. Hidden until the wallet's script shows those that the connected agent can take. */
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import type { PropsWithChildren } from "hono/jsx";
import type { ContractPageData } from "./load.js";

export function Actions({ data: { contract, terms, now } }: { data: ContractPageData }) {
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
      <Action action="accept" name="Accept" text="You pay the deposit that the terms name into the escrow." />
      <Action action="decline" name="Decline" text="The initiator gets its deposit back." />
      <Action action="cancel" name="Cancel" text="You get your deposit back." />
      <Action
        action="deliver"
        name="Deliver"
        text="Once. Sealed to the client's key if it has published one."
      >
        <label>
          Hash or URI of your work <input name="reference" required maxlength={4096} />
        </label>
        <label>
          <input type="checkbox" name="seal" /> Do not deliver if the service could read it
        </label>
      </Action>
      <Action action="withdraw" name="Withdraw" text="You give up the work and part of your stake." />
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
            <legend dir="auto">{criterion}</legend>
            {OUTCOMES.map((outcome) => (
              <label>
                <input type="radio" name={`vote-${i}`} value={outcome} required /> {outcome}
              </label>
            ))}
          </fieldset>
        ))}
      </Action>
      <Action action="open-vote" name="Open your vote" text="A vote that stays sealed loses its bond." />
      <Action action="complain" name="File a complaint" text="Public, and moves no money.">
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
