/** Money as integers in the stablecoin's smallest unit (6 decimals) inside, decimal text outside. */

const DECIMALS = 6;
const BASIS_POINTS = 10_000n;
const DECIMAL_PATTERN = /^(0|[1-9]\d{0,22})(?:\.(\d{1,6}))?$/;

/** Largest amount that an escrow's price can hold (`uint96`). */
export const MAX_AMOUNT = 2n ** 96n - 1n;

/**
 * Base units of a decimal such as `12.345678`, without going through a float. Null for anything else: sign, exponent,
 * leading zero, more than 6 decimals, more than {@link MAX_AMOUNT}.
 */
export function parseDecimal(text: string): bigint | null {
  const match = DECIMAL_PATTERN.exec(text);
  if (match === null) return null;
  const [, whole = "", fraction = ""] = match;
  const amount = BigInt(whole + fraction.padEnd(DECIMALS, "0"));
  return amount <= MAX_AMOUNT ? amount : null;
}

/** The shortest decimal with at least one fractional digit: `50.0`, `0.000001`. Throws on a negative amount. */
export function formatDecimal(amount: bigint): string {
  if (amount < 0n) throw new RangeError(`Amount ${amount} is negative`);
  const digits = amount.toString().padStart(DECIMALS + 1, "0");
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${digits.slice(0, -DECIMALS)}.${fraction === "" ? "0" : fraction}`;
}

/** `ratio` basis points of `amount`, rounded down. */
export function share(amount: bigint, ratio: number): bigint {
  return (amount * BigInt(ratio)) / BASIS_POINTS;
}
