/** Times and durations: whole seconds inside, ISO 8601 in JSON. */

/** Formats seconds since 1970 in UTC with milliseconds: `2026-01-31T12:00:00.000Z`. */
export function isoTime(seconds: number | bigint): string {
  return new Date(Number(seconds) * 1000).toISOString();
}

/** Formats seconds as an ISO 8601 duration without days, as in the specification: `PT24H`, `PT1H30M`, `PT0S`. */
export function isoDuration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 3600), "H"],
    [Math.floor((seconds % 3600) / 60), "M"],
    [seconds % 60, "S"],
  ] as const;
  const text = parts.map(([count, unit]) => (count > 0 ? `${count}${unit}` : "")).join("");
  return `PT${text === "" ? "0S" : text}`;
}
