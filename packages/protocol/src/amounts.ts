/** Amounts: integers in the token's smallest unit inside, decimal strings outside. The stablecoin has 6 decimals. */

/** Clients refuse a stablecoin with other decimals, because prices and limits are decimal amounts. */
export const STABLECOIN_DECIMALS = 6;
/** Decimals of the protocol token. */
export const TOKEN_DECIMALS = 18;
const BASIS_POINTS = 10_000n;
const DECIMAL_PATTERN = /^(0|[1-9]\d{0,22})(?:\.(\d{1,18}))?$/;

/** Maximum amount that a stake can hold (`uint96`). */
export const MAX_AMOUNT = 2n ** 96n - 1n;

/** Maximum price that the factory accepts. Everything an escrow can hold then fits its fields. */
export const MAX_PRICE = 2n ** 80n - 1n;

/** `12.345678` in base units, without floats. Null for a sign, exponent, leading zero, more decimals, or above {@link MAX_AMOUNT}. */
export function parseDecimal(text: string, decimals = STABLECOIN_DECIMALS): bigint | null {
  const match = DECIMAL_PATTERN.exec(text);
  if (match === null) return null;
  const [, whole = "", fraction = ""] = match;
  if (fraction.length > decimals) return null;
  const amount = BigInt(whole + fraction.padEnd(decimals, "0"));
  return amount <= MAX_AMOUNT ? amount : null;
}

/** Formats the shortest decimal with at least one fractional digit: `50.0`, `0.000001`. Throws on a negative amount. */
export function formatDecimal(amount: bigint, decimals = STABLECOIN_DECIMALS): string {
  if (amount < 0n) throw new RangeError(`Amount ${amount} is negative`);
  const digits = amount.toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  return `${digits.slice(0, -decimals)}.${fraction === "" ? "0" : fraction}`;
}

/**
 * The price band of an amount in base units, which is its length in bits. Each band is twice as wide as the one below; 80
 * cover all prices.
 */
export function priceBand(amount: bigint): number {
  return amount.toString(2).length;
}

/** Returns `ratio` basis points of `amount`, rounded down. */
export function share(amount: bigint, ratio: number): bigint {
  return (amount * BigInt(ratio)) / BASIS_POINTS;
}
