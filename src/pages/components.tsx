/** Components that several pages share, and how they put times, amounts and states into words. */

import { visibleJson } from "@working-contracts/protocol/json";
import type { Outcome } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Child, PropsWithChildren } from "hono/jsx";
import { useSite } from "./layout.js";

/** A sentence with components in it. */
export const say = (words: TemplateStringsArray, ...parts: Child[]): Child => (
  <>{words.flatMap((word, i) => [word, parts[i] ?? ""])}</>
);

/** Formats seconds in the largest units: `2 d 3 h`, `4 min`, `12 s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const units: [number, string][] = [
    [Math.floor(whole / 86_400), "d"],
    [Math.floor(whole / 3_600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + (first < 2 ? 2 : 1))
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

function moment(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}

/** Seconds since 1970 of an ISO 8601 time, rounded down. */
export function secondsOf(iso: string): number {
  return Math.floor(Date.parse(iso) / 1000);
}

/** Abbreviates an address or hash to its first and last digits. */
export function short(hex: string): string {
  return hex.length <= 14 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

/** Formats a fraction as a percentage: `5 %`, `12.5 %`. */
export function percent(fraction: number): string {
  return `${Number((fraction * 100).toFixed(2))} %`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

const STATUS_WORDS: Record<Status, { label: string; tone: Tone }> = {
  created: { label: "Open", tone: "open" },
  matched: { label: "In work", tone: "active" },
  "under-review": { label: "Under review", tone: "active" },
  disputed: { label: "Disputed", tone: "bad" },
  resolved: { label: "Resolved", tone: "active" },
  "settled-all-met": { label: "Settled: all met", tone: "good" },
  "settled-partial": { label: "Settled: in part", tone: "mixed" },
  "settled-none-met": { label: "Settled: none met", tone: "bad" },
  "cancelled-unmatched": { label: "Unmatched", tone: "quiet" },
  "cancelled-by-initiator": { label: "Cancelled", tone: "quiet" },
  "cancelled-withdrawn": { label: "Withdrawn", tone: "quiet" },
  "cancelled-absent": { label: "Not delivered", tone: "bad" },
};

type Tone = "open" | "active" | "good" | "mixed" | "bad" | "quiet";

export function StatusBadge({ status }: { status: Status }) {
  const { label, tone } = STATUS_WORDS[status];
  return (
    <span class={`badge ${tone}`} title={status}>
      {label}
    </span>
  );
}

const OUTCOME_TONES: Record<Outcome, string> = { met: "good", "not met": "bad", unclear: "mixed" };

export function OutcomeBadge({ outcome }: { outcome: Outcome | null }) {
  if (outcome === null) return <span class="badge quiet">undecided</span>;
  return <span class={`badge ${OUTCOME_TONES[outcome]}`}>{outcome}</span>;
}

/** An amount of the stablecoin, with its symbol. */
export function Amount({ value }: { value: string }) {
  const { symbol } = useSite();
  return (
    <span class="amount">
      {value} <span class="unit">{symbol}</span>
    </span>
  );
}

export function Time({ at }: { at: string }) {
  return <time datetime={at}>{moment(at)}</time>;
}

/** Time from `now` (seconds) to a moment, or since it, as of the response. */
export function TimeLeft({ at, now }: { at: string; now: number }) {
  const left = secondsOf(at) - now;
  return (
    <time datetime={at} title={moment(at)}>
      {left > 0 ? `${duration(left)} left` : `${duration(-left)} ago`}
    </time>
  );
}

/** Link to an agent's page with its display name, if any. Names are not unique, so the address is always shown. */
export function AgentLink({ address, name = null }: { address: string; name?: string | null }) {
  return (
    <a href={`/agents/${address}`} title={address}>
      {name !== null && <bdi class="name">{name}</bdi>}
      {name !== null && " "}
      <code>{short(address)}</code>
    </a>
  );
}

export function ContractLink({ id }: { id: string }) {
  return (
    <a href={`/contracts/${id}`} title={id}>
      <code>{short(id)}</code>
    </a>
  );
}

/** A link to the block explorer. If none is configured, shows the full value. */
export function ChainLink({ kind, value }: { kind: "tx" | "address" | "block"; value: string }) {
  const { explorerUrl } = useSite();
  if (explorerUrl === undefined) return kind === "block" ? value : <code class="whole">{value}</code>;
  return (
    <a href={`${explorerUrl}/${kind}/${value}`} title={value} rel="noreferrer">
      {kind === "block" ? value : <code>{short(value)}</code>}
    </a>
  );
}

export function Transaction({ hash, block }: { hash: string; block: number }) {
  return (
    <span class="tx">
      tx <ChainLink kind="tx" value={hash} /> in block <ChainLink kind="block" value={String(block)} />
    </span>
  );
}

/** A table that scrolls on its own if the screen is too narrow. It can be scrolled with the keyboard. */
export function ScrollTable({ label, children }: PropsWithChildren<{ label: string }>) {
  return (
    <section class="scroll" aria-label={label} tabindex={0}>
      <table>{children}</table>
    </section>
  );
}

/** A table's rows, and its header if it has one; `#` marks a column of numbers. If `headed`, the first cell heads its row. */
export function Rows({
  columns = [],
  rows,
  headed = false,
}: {
  columns?: string[];
  rows: Child[][];
  headed?: boolean;
}) {
  const classOf = (column = "") => (column.startsWith("#") ? "number" : undefined);
  return (
    <>
      {columns.length > 0 && (
        <thead>
          <tr>
            {columns.map((name) => (
              <th scope="col" class={classOf(name)}>
                {name.replace(/^#/, "")}
              </th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>
        {rows.map((cells) => (
          <tr>
            {cells.map((cell, i) =>
              headed && i === 0 ? <th scope="row">{cell}</th> : <td class={classOf(columns[i])}>{cell}</td>,
            )}
          </tr>
        ))}
      </tbody>
    </>
  );
}

/** A titled part of a page, which live updates replace if it has an `id`. */
export function Region({ id, title, children }: PropsWithChildren<{ id?: string; title: string }>) {
  return (
    <section id={id} data-region={id === undefined ? undefined : ""} class="panel">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Names and their values. */
export function Pairs({ rows }: { rows: [Child, Child][] }) {
  return (
    <dl class="pairs">
      {rows.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

/** A list without marks, or `none` in words. */
export function PlainList({ items, none = "none" }: { items: Child[]; none?: string }) {
  if (items.length === 0) return none;
  return (
    <ul class="plain">
      {items.map((item) => (
        <li>{item}</li>
      ))}
    </ul>
  );
}

/** A labelled list of options, by value. */
export function Choice({
  label,
  name,
  chosen = "",
  options,
}: {
  label: string;
  name: string;
  chosen?: string | undefined;
  options: Record<string, string>;
}) {
  return (
    <label>
      {label}
      <select name={name}>
        {Object.entries(options).map(([value, text]) => (
          <option value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Characters of stored JSON on a page. Indentation can make it 65 times as long, and escaping five times. */
const MAX_JSON = 4_096;

/** Stored JSON as text; the beginning of a long one. */
export function Json({ value, summary }: { value: unknown; summary: string }) {
  const text = visibleJson(value);
  const isLong = text.length > MAX_JSON;
  return (
    <details>
      <summary>
        {isLong ? `${summary} (the first ${MAX_JSON} of ${text.length} characters)` : summary}
      </summary>
      <pre>{isLong ? text.slice(0, MAX_JSON) : visibleJson(value, 2)}</pre>
    </details>
  );
}
