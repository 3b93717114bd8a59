/** Formats times, amounts and states as plain text. Components escape it when they render it. */
import type { Status } from "@working-contracts/protocol/status";

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
export function moment(iso: string): string {
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
export const STATUS_WORDS: Record<Status, { label: string; tone: Tone }> = {
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

export type Tone = "open" | "active" | "alert" | "good" | "mixed" | "bad" | "quiet";
