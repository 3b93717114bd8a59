import { parseDecimal } from "@working-contracts/protocol/amounts";
import type {
  LedgerEntry,
  LedgerView,
  SettlementLeg,
  SettlementView,
} from "../../features/contracts/ledger.js";
import { AgentLink, Amount, Region, Rows, Time, Transaction } from "../components.js";
import { type FlowEnd, FlowPicture } from "../flow-picture.js";
import type { ContractPageData } from "./load.js";

export const LEG_WORDS: Record<SettlementLeg["name"], string> = {
  "worker-pay": "Pay after the fee",
  "protocol-fee": "Protocol fee",
  "price-refund": "Price refund",
  "slashed-stake-to-client": "Slashed stake, client's part",
  "slashed-stake-to-treasury": "Slashed stake, treasury's part",
  "stake-back": "Worker Stake refund",
  "dispute-bond-lost": "Dispute Bond lost by the client",
  "dispute-bond-back": "Dispute Bond refund",
  "deposit-refund": "Deposit refund",
  "jury-leftover": "Leftover slashed bonds",
  "jury-payout": "Bond and share of slashed bonds",
};

export const PAYEE_WORDS: Record<SettlementLeg["to"], string> = {
  client: "Client",
  worker: "Worker",
  treasury: "Treasury",
  "backup-agent": "Backup Agents",
};

const ENTRY_WORDS: Record<LedgerEntry["name"], string> = {
  price: "Price",
  "worker-stake": "Worker Stake",
  "dispute-bond": "Dispute Bond",
  "jury-bond": "Backup Agent's bond",
  payout: "Payout",
  "jury-payout": "Backup Agent's payout",
  "late-payout": "Payout on a later attempt",
};

const ENDING_WORDS: Record<NonNullable<SettlementView["ending"]>, string> = {
  approved: "The client approved.",
  "review-timeout": "The review deadline passed, which counts as approval.",
  dispute: "Backup Agents decided the dispute.",
  absent: "The worker did not deliver in time.",
  withdrawn: "The worker withdrew.",
  declined: "The offer was declined.",
  cancelled: "The initiator cancelled.",
  unmatched: "No one accepted in time.",
};

const STATE_WORDS: Record<SettlementLeg["state"], string> = {
  held: "held for review",
  queued: "pending",
  confirmed: "paid",
};

/** The escrow's accounts, compared with the balance that the token reports. */
export function Escrow({ data: { contract, ledger, settlement } }: { data: ContractPageData }) {
  return (
    <Region id="escrow" title="Escrow">
      <FlowPicture
        title="Money through the escrow"
        from={sourcesOf(ledger)}
        to={
          settlement.legs.length === 0 ? [{ label: "Held", amount: base(ledger.held) }] : payeesOf(settlement)
        }
      />
      <p class="equation" id="balance">
        <span>
          <Amount value={ledger.in} /> in
        </span>{" "}
        −{" "}
        <span>
          <Amount value={ledger.out} /> out
        </span>{" "}
        ={" "}
        <strong>
          <Amount value={ledger.held} /> held
        </strong>
      </p>
      <Balance ledger={ledger} />
      <ul class="entries">
        {ledger.entries.map((entry) => (
          <li>
            <span>
              {ENTRY_WORDS[entry.name]}
              {entry.party !== null && (
                <>
                  {entry.direction === "in" ? " from " : " to "}
                  <AgentLink address={entry.party} />
                </>
              )}
            </span>
            <span class={`figure ${entry.direction}`}>
              {entry.direction === "in" ? "+" : "−"}
              {entry.amount}
            </span>
            <small>
              <Transaction hash={entry.transactionHash} block={entry.blockNumber} />
            </small>
          </li>
        ))}
      </ul>
      {contract.status === "created" && contract.escrowedFunds === null && (
        <p class="meta">The client pays the price on acceptance.</p>
      )}
    </Region>
  );
}

function Balance({ ledger: { asOfBlock, balance, held, unbooked } }: { ledger: LedgerView }) {
  if (asOfBlock === null) return <p class="meta">The index is catching up. The balance is not known yet.</p>;
  if (balance === null) {
    return (
      <p class="notice mixed">
        The node returned no balance for block {asOfBlock}, so these accounts are not checked against it.
      </p>
    );
  }
  const isCovered = base(balance) >= base(held);
  return (
    <p class={isCovered ? "notice good" : "notice bad"}>
      The token reports <Amount value={balance} /> at block {asOfBlock}
      {isCovered ? ", which covers these accounts." : ", which is less than these accounts hold."}
      {unbooked !== null && unbooked !== "0.0" && (
        <>
          {" "}
          Another <Amount value={unbooked} /> arrived by direct transfer.
        </>
      )}
    </p>
  );
}

/** The payments of the settlement. */
export function Settlement({ data: { settlement } }: { data: ContractPageData }) {
  const { ending, legs, endedAt, settledAt, heldUntil } = settlement;
  if (ending === null) return null;
  return (
    <Region id="settlement" title="Settlement">
      <p>
        {ENDING_WORDS[ending]}{" "}
        {endedAt !== null && (
          <>
            Ended <Time at={endedAt} />
          </>
        )}
        {settledAt !== null ? (
          <>
            , paid out <Time at={settledAt} />.
          </>
        ) : heldUntil !== null && legs.some(({ state }) => state === "held") ? (
          <>
            , payouts held for review until <Time at={heldUntil} />.
          </>
        ) : (
          "; the payout is pending."
        )}
      </p>
      <table class="legs">
        <caption class="hidden">Payments of the settlement</caption>
        <Rows
          columns={["Payment", "To", "#Amount", "State"]}
          rows={legs.map((leg) => [
            LEG_WORDS[leg.name],
            leg.address === null || leg.to === "treasury" ? (
              PAYEE_WORDS[leg.to]
            ) : (
              <>
                {leg.to === "backup-agent" ? "" : `${PAYEE_WORDS[leg.to]} `}
                <AgentLink address={leg.address} />
              </>
            ),
            leg.amount,
            settledAt !== null && leg.state === "queued" && leg.name !== "jury-payout"
              ? "refused by the token; claimable"
              : STATE_WORDS[leg.state],
          ])}
        />
      </table>
    </Region>
  );
}

const base = (decimal: string): bigint => parseDecimal(decimal) ?? 0n;

function sourcesOf({ entries }: LedgerView): FlowEnd[] {
  return grouped(
    entries
      .filter(({ direction }) => direction === "in")
      .map(({ name, amount }) => ({
        label: name === "jury-bond" ? "Jury bonds" : ENTRY_WORDS[name],
        amount: base(amount),
      })),
  );
}

function payeesOf({ legs }: SettlementView): FlowEnd[] {
  return grouped(
    legs.map(({ to, amount, state }) => ({
      label: PAYEE_WORDS[to],
      amount: base(amount),
      pending: state !== "confirmed",
    })),
  );
}

/** Merges ends with the same label. The result is pending while any part is. */
function grouped(ends: FlowEnd[]): FlowEnd[] {
  const byLabel = new Map<string, FlowEnd>();
  for (const { label, amount, pending = false } of ends) {
    const end = byLabel.get(label) ?? { label, amount: 0n };
    byLabel.set(label, { label, amount: end.amount + amount, pending: pending || end.pending === true });
  }
  return [...byLabel.values()];
}
