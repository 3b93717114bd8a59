/** Inline SVG of money flows: bands from the sources through the escrow to the payees. */
import { formatDecimal } from "@working-contracts/protocol/amounts";

export interface FlowEnd {
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

/** Renders nothing if no money moved. Ends of zero are omitted. */
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
