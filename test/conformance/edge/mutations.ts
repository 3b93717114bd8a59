/** Changes that a hostile client makes to a valid request. */
import fc from "fast-check";

/** Marks text in a JSON value that is written without quotes, for numbers that JSON.stringify cannot write. */
const RAW = "@raw:";

const HOSTILE: unknown[] = [
  null,
  true,
  0,
  -1,
  0.5,
  Number.MAX_SAFE_INTEGER,
  "",
  " ",
  "\0",
  "\ud800",
  "\u202e\u200b",
  "0x",
  "__proto__",
  "'; drop table app.terms; --",
  "%00",
  "../../etc/passwd",
  "x".repeat(5_000),
  "😀".repeat(300),
  [],
  {},
  [[[[[[]]]]]],
  Array(300).fill(0),
  JSON.parse(`${'{"a":'.repeat(70)}1${"}".repeat(70)}`),
  `${RAW}1e999`,
  `${RAW}-0`,
  `${RAW}12345678901234567890`,
  `${RAW}0.1000000000000000055511151231257827`,
  `${RAW}1e-7`,
  `${RAW}${"9".repeat(400)}`,
  `${RAW}NaN`,
];

export const hostileValue = fc.constantFrom(...HOSTILE);

export interface BodyMutation {
  kind: "replace" | "remove" | "add" | "nest";
  at: number;
  value: unknown;
}

export const bodyMutation: fc.Arbitrary<BodyMutation> = fc.record({
  kind: fc.constantFrom("replace", "remove", "add", "nest"),
  at: fc.nat(1000),
  value: hostileValue,
});

export interface TextMutation {
  kind: "none" | "cut" | "insert" | "double" | "bytes" | "large";
  at: number;
}

export const textMutation: fc.Arbitrary<TextMutation> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant("none" as const) },
    {
      weight: 3,
      arbitrary: fc.constantFrom("cut" as const, "insert" as const, "double" as const, "bytes" as const),
    },
    { weight: 1, arbitrary: fc.constant("large" as const) },
  ),
  at: fc.nat(10_000),
});

/** A copy of the body, changed in one place. */
export function mutate(body: unknown, { kind, at, value }: BodyMutation): unknown {
  const copy = structuredClone(body);
  const places = placesIn(copy);
  const place = places[at % Math.max(places.length, 1)];
  if (place === undefined) return value;
  const { holder, key } = place;
  if (kind === "replace") set(holder, key, value);
  else if (kind === "add") set(holder, Array.isArray(holder) ? holder.length : `x${at}`, value);
  else if (kind === "nest") set(holder, key, { [String(key)]: [read(holder, key)] });
  else if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
  return copy;
}

type Holder = Record<string | number, unknown> | unknown[];

function placesIn(node: unknown): { holder: Holder; key: string | number }[] {
  if (typeof node !== "object" || node === null) return [];
  const holder = node as Holder;
  const keys = Array.isArray(node) ? node.map((_, i) => i) : Object.keys(node);
  return keys.flatMap((key) => [{ holder, key }, ...placesIn(read(holder, key))]);
}

const read = (holder: Holder, key: string | number): unknown => (holder as Record<string, unknown>)[key];

function set(holder: Holder, key: string | number, value: unknown): void {
  Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
}

/** The body as text or bytes, changed a second time. */
export function write(body: unknown, { kind, at }: TextMutation): string | Uint8Array {
  const text = JSON.stringify(body).replaceAll(new RegExp(`"${RAW}([^"]*)"`, "g"), "$1");
  const place = at % (text.length + 1);
  switch (kind) {
    case "none":
      return text;
    case "cut":
      return text.slice(0, place);
    case "insert":
      return `${text.slice(0, place)}${'{}[]",:0\\\0'[at % 9]}${text.slice(place)}`;
    case "double":
      return text.replace(/"(\w+)":/, (key) => `${key}0,${key}`);
    case "bytes":
      return Buffer.concat([
        Buffer.from(text.slice(0, place)),
        Buffer.from([0xff, 0xc0]),
        Buffer.from(text.slice(place)),
      ]);
    case "large":
      return `{"filler":"${"y".repeat(270 * 1024)}"}`;
  }
}
