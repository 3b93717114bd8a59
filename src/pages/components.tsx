/** Components that several pages share, and how they put times, amounts and states into words. */

import { visibleJson } from "@working-contracts/protocol/json";
import type { Outcome } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Child, PropsWithChildren } from "hono/jsx";
import { useSite } from "./layout.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Formats seconds in the largest units: `2 d 3 h`, `4 min`, `12 s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const units: [number, string][] = [
    [Math.floor(whole / DAY), "d"],
    [Math.floor((whole % DAY) / HOUR), "h"],
    [Math.floor((whole % HOUR) / MINUTE), "min"],
    [whole % MINUTE, "s"],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + (first < 2 ? 2 : 1))
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

/** Formats an ISO 8601 time as `2026-01-31 12:00 UTC`. */
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

/** Display name and colour of each status. */
const STATUS_WORDS: Record<Status, { label: string; tone: Tone }> = {
  created: { label: "Open", tone: "open" },
  matched: { label: "In work", tone: "active" },
  "under-review": { label: "Under review", tone: "active" },
  disputed: { label: "Disputed", tone: "alert" },
  resolved: { label: "Resolved", tone: "active" },
  "settled-all-met": { label: "Settled: all met", tone: "good" },
  "settled-partial": { label: "Settled: in part", tone: "mixed" },
  "settled-none-met": { label: "Settled: none met", tone: "bad" },
  "cancelled-unmatched": { label: "Unmatched", tone: "quiet" },
  "cancelled-by-initiator": { label: "Cancelled", tone: "quiet" },
  "cancelled-withdrawn": { label: "Withdrawn", tone: "quiet" },
  "cancelled-absent": { label: "Not delivered", tone: "bad" },
};

type Tone = "open" | "active" | "alert" | "good" | "mixed" | "bad" | "quiet";

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

/** The header of a table. A name that starts with `#` heads a column of numbers. */
export function Head({ columns }: { columns: string[] }) {
  return (
    <thead>
      <tr>
        {columns.map((name) => (
          <th scope="col" class={name.startsWith("#") ? "number" : undefined}>
            {name.replace(/^#/, "")}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** The rows of a table, and its header if it has one, as in {@link Head}; if `headed`, the first cell heads its row. */
export function Rows({
  columns = [],
  rows,
  headed = false,
}: {
  columns?: string[];
  rows: Child[][];
  headed?: boolean;
}) {
  return (
    <>
      {columns.length > 0 && <Head columns={columns} />}
      <tbody>
        {rows.map((cells) => (
          <tr>
            {cells.map((cell, i) =>
              headed && i === 0 ? (
                <th scope="row">{cell}</th>
              ) : (
                <td class={columns[i]?.startsWith("#") ? "number" : undefined}>{cell}</td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </>
  );
}

/** A part of a page that live updates replace. */
export function Region({ id, title, children }: PropsWithChildren<{ id: string; title: string }>) {
  return (
    <section id={id} data-region="" class="panel">
      <h2>{title}</h2>
      {children}
    </section>
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
