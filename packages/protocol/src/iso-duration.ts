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
