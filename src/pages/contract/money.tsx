import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import type {
  LedgerEntry,
  LedgerView,
  SettlementLeg,
  SettlementView,
} from "../../features/contracts/ledger.js";
import { AgentLink, Amount, Region, Rows, Time, Transaction } from "../components.js";
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

interface FlowEnd {
  label: string;
  /** Base units. */
  amount: bigint;
  /** Not paid yet; drawn as an outline. */
  pending?: boolean;
}

const WIDTH = 400;
/** Width of the label column on each side. */
const COLUMN = 124;
const LINE = 38;
const GAP = 10;
/** Height of all bands together. */
const THICKNESS = 110;
const MIN_BAND = 2;
const ESCROW = { x: WIDTH / 2 - 6, width: 12 };

interface Placed extends FlowEnd {
  /** Top and height of the label's box, and the thickness of the band. */
  y: number;
  height: number;
  band: number;
  /** Top of the band at the escrow. */
  inner: number;
}

/**
 * Inline SVG of money flows: bands from the sources through the escrow to the payees. Renders nothing if no money moved.
 * Ends of zero are omitted.
 */
export function FlowPicture({ from, to, title }: { from: FlowEnd[]; to: FlowEnd[]; title: string }) {
  // Before settlement the two sides can differ; the larger one sets the scale. Floats are fine for a picture.
  const total = Math.max(Number(sum(from)), Number(sum(to)));
  if (total === 0) return null;
  const sources = place(from, total);
  const targets = place(to, total);
  const height = Math.max(heightOf(sources), heightOf(targets), innerHeight(sources), innerHeight(targets));
  const left = centre(sources, height);
  const right = centre(targets, height);
  const inner = Math.max(innerHeight(sources), innerHeight(targets));
  return (
    <svg
      class="flow"
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="img"
      aria-label={`${title}. ${describe(from, to)}`}
    >
      <title>{title}</title>
      {left.map((end) => (
        <path
          class="band in"
          d={band(COLUMN, end.y + (end.height - end.band) / 2, ESCROW.x, end.inner, end.band)}
        />
      ))}
      {right.map((end) => (
        <path
          class={end.pending ? "band pending" : "band out"}
          d={band(
            WIDTH - COLUMN,
            end.y + (end.height - end.band) / 2,
            ESCROW.x + ESCROW.width,
            end.inner,
            end.band,
          )}
        />
      ))}
      <rect class="escrow" x={ESCROW.x} y={(height - inner) / 2} width={ESCROW.width} height={inner} rx={3} />
      {left.map((end) => (
        <Words end={end} x={COLUMN - 8} anchor="end" />
      ))}
      {right.map((end) => (
        <Words end={end} x={WIDTH - COLUMN + 8} anchor="start" />
      ))}
    </svg>
  );
}

function Words({ end, x, anchor }: { end: Placed; x: number; anchor: "start" | "end" }) {
  const middle = end.y + end.height / 2;
  return (
    <text x={x} y={middle} text-anchor={anchor}>
      <tspan x={x} y={middle - 3}>
        {end.label}
      </tspan>
      <tspan class="figure" x={x} y={middle + 14}>
        {formatDecimal(end.amount)}
      </tspan>
    </text>
  );
}

function place(ends: FlowEnd[], total: number): Placed[] {
  let y = 0;
  let inner = 0;
  return ends
    .filter(({ amount }) => amount > 0n)
    .map((end) => {
      const band = Math.max(MIN_BAND, (Number(end.amount) / total) * THICKNESS);
      const height = Math.max(LINE, band);
      const placed = { ...end, y, height, band, inner };
      y += height + GAP;
      inner += band;
      return placed;
    });
}

/** Centres a column and its bands vertically. */
function centre(ends: Placed[], height: number): Placed[] {
  const offset = (height - heightOf(ends)) / 2;
  const innerOffset = (height - innerHeight(ends)) / 2;
  return ends.map((end) => ({ ...end, y: end.y + offset, inner: end.inner + innerOffset }));
}

const heightOf = (ends: Placed[]): number =>
  ends.reduce((height, end) => height + end.height, 0) + Math.max(0, ends.length - 1) * GAP;

const innerHeight = (ends: Placed[]): number => ends.reduce((height, end) => height + end.band, 0);

const sum = (ends: FlowEnd[]): bigint => ends.reduce((total, { amount }) => total + amount, 0n);

/** A band of even thickness; (x1, y1) and (x2, y2) are its upper corners. */
function band(x1: number, y1: number, x2: number, y2: number, thickness: number): string {
  const middle = round((x1 + x2) / 2);
  const [top1, top2, bottom1, bottom2] = [y1, y2, y1 + thickness, y2 + thickness].map(round);
  return `M${x1} ${top1}C${middle} ${top1} ${middle} ${top2} ${x2} ${top2}V${bottom2}C${middle} ${bottom2} ${middle} ${bottom1} ${x1} ${bottom1}Z`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

function describe(from: FlowEnd[], to: FlowEnd[]): string {
  const list = (ends: FlowEnd[]) =>
    ends
      .filter(({ amount }) => amount > 0n)
      .map(
        ({ label, amount, pending }) =>
          `${label} ${formatDecimal(amount)}${pending ? " (not paid yet)" : ""}`,
      )
      .join(", ");
  return `In: ${list(from)}. Out: ${list(to)}.`;
}
