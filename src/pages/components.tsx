/** Components that several pages share. */

import type { Outcome } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Child, PropsWithChildren } from "hono/jsx";
import { duration, moment, STATUS_WORDS, secondsOf, short } from "./format.js";
import { useSite } from "./layout.js";

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

/** The header and rows of a table. Columns of numbers are as in {@link Head}; if `headed`, the first cell heads its row. */
export function Rows({
  columns,
  rows,
  headed = false,
}: {
  columns: string[];
  rows: Child[][];
  headed?: boolean;
}) {
  return (
    <>
      <Head columns={columns} />
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

/** Indentation can make deep JSON 65 times as long. */
const MAX_INDENTED = 4_096;

/** Stored JSON as text. */
export function Json({ value, summary }: { value: unknown; summary: string }) {
  const text = JSON.stringify(value);
  return (
    <details>
      <summary>{summary}</summary>
      <pre>{text.length > MAX_INDENTED ? text : JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
