import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import type {
  LedgerEntry,
  LedgerView,
  SettlementLeg,
  SettlementView,
} from "../../features/contracts/ledger.js";
import { AgentLink, Amount, Region, Rows, ScrollTable, say, Time, Transaction } from "../components.js";
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
              {entry.party !== null &&
                say` ${entry.direction === "in" ? "from" : "to"} ${<AgentLink address={entry.party} />}`}
            </span>
            <span class={entry.direction === "in" ? "figure good" : "figure bad"}>
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
  const isCovered = balance === held || unbooked !== "0.0";
  return (
    <p class={isCovered ? "notice good" : "notice bad"}>
      The token reports <Amount value={balance} /> at block {asOfBlock}
      {isCovered ? ", which covers these accounts." : ", which is less than these accounts hold."}
      {unbooked !== null &&
        unbooked !== "0.0" &&
        say` Another ${<Amount value={unbooked} />} arrived by direct transfer.`}
    </p>
  );
}

export function Settlement({ data: { settlement } }: { data: ContractPageData }) {
  const { ending, legs, endedAt, settledAt, heldUntil } = settlement;
  if (ending === null) return null;
  return (
    <Region id="settlement" title="Settlement">
      <p>
        {ENDING_WORDS[ending]} {endedAt !== null && say`Ended ${<Time at={endedAt} />}`}
        {settledAt !== null
          ? say`, paid out ${<Time at={settledAt} />}.`
          : heldUntil !== null && legs.some(({ state }) => state === "held")
            ? say`, payouts held for review until ${<Time at={heldUntil} />}.`
            : "; the payout is pending."}
      </p>
      <ScrollTable label="Payments of the settlement">
        <Rows
          columns={["Payment", "To", "#Amount", "State"]}
          rows={legs.map((leg) => [
            LEG_WORDS[leg.name],
            leg.address === null || leg.to === "treasury"
              ? PAYEE_WORDS[leg.to]
              : say`${leg.to === "backup-agent" ? "" : PAYEE_WORDS[leg.to]} ${<AgentLink address={leg.address} />}`,
            leg.amount,
            settledAt !== null && leg.state === "queued" && leg.name !== "jury-payout"
              ? "refused by the token; claimable"
              : STATE_WORDS[leg.state],
          ])}
        />
      </ScrollTable>
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
  /** Height of the label's box, and thickness of the band. */
  height: number;
  band: number;
  /** Top of the box, and of the band at the escrow. Both columns are centred at 0. */
  y: number;
  inner: number;
}

/** Bands from the sources through the escrow to the payees, without ends of zero. Nothing if no money moved. */
export function FlowPicture({ from, to, title }: { from: FlowEnd[]; to: FlowEnd[]; title: string }) {
  // Before settlement the two sides can differ; the larger one sets the scale. Floats are fine for a picture.
  const total = Math.max(sum(from.map(numberOf)), sum(to.map(numberOf)));
  if (total === 0) return null;
  const sides = [
    { ends: place(from, total), edge: COLUMN, door: ESCROW.x, text: COLUMN - 8, anchor: "end", way: "in" },
    {
      ends: place(to, total),
      edge: WIDTH - COLUMN,
      door: ESCROW.x + ESCROW.width,
      text: WIDTH - COLUMN + 8,
      anchor: "start",
      way: "out",
    },
  ] as const;
  const inner = Math.max(...sides.map(({ ends }) => sum(ends.map((end) => end.band))));
  const height = Math.max(inner, ...sides.map(({ ends }) => heightOf(ends)));
  return (
    <svg
      class="flow"
      viewBox={`0 ${-height / 2} ${WIDTH} ${height}`}
      role="img"
      aria-label={`${title}. In: ${describe(from)}. Out: ${describe(to)}.`}
    >
      <title>{title}</title>
      {sides.map(({ ends, edge, door, text, anchor, way }) =>
        ends.map((end) => (
          <>
            <path
              class={end.pending && way === "out" ? "band pending" : `band ${way}`}
              d={band(edge, end.y + (end.height - end.band) / 2, door, end.inner, end.band)}
            />
            <text text-anchor={anchor}>
              <tspan x={text} y={end.y + end.height / 2 - 3}>
                {end.label}
              </tspan>
              <tspan class="figure" x={text} y={end.y + end.height / 2 + 14}>
                {formatDecimal(end.amount)}
              </tspan>
            </text>
          </>
        )),
      )}
      <rect x={ESCROW.x} y={-inner / 2} width={ESCROW.width} height={inner} rx={3} />
    </svg>
  );
}

function place(ends: FlowEnd[], total: number): Placed[] {
  const shown = ends.filter(isShown).map((end) => {
    const band = Math.max(MIN_BAND, (numberOf(end) / total) * THICKNESS);
    return { ...end, band, height: Math.max(LINE, band) };
  });
  let y = -heightOf(shown) / 2;
  let inner = -sum(shown.map((end) => end.band)) / 2;
  return shown.map((end) => {
    const placed = { ...end, y, inner };
    y += end.height + GAP;
    inner += end.band;
    return placed;
  });
}

const isShown = ({ amount }: FlowEnd): boolean => amount > 0n;
const numberOf = ({ amount }: FlowEnd): number => Number(amount);
const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
const heightOf = (ends: Pick<Placed, "height">[]): number =>
  sum(ends.map(({ height }) => height + GAP)) - (ends.length > 0 ? GAP : 0);

/** A band of even thickness; (x1, y1) and (x2, y2) are its upper corners. */
function band(x1: number, y1: number, x2: number, y2: number, thickness: number): string {
  const middle = (x1 + x2) / 2;
  const [top1, top2, bottom1, bottom2] = [y1, y2, y1 + thickness, y2 + thickness].map(round);
  return `M${x1} ${top1}C${middle} ${top1} ${middle} ${top2} ${x2} ${top2}V${bottom2}C${middle} ${bottom2} ${middle} ${bottom1} ${x1} ${bottom1}Z`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

const describe = (ends: FlowEnd[]): string =>
  ends
    .filter(isShown)
    .map(
      ({ label, amount, pending }) => `${label} ${formatDecimal(amount)}${pending ? " (not paid yet)" : ""}`,
    )
    .join(", ");
