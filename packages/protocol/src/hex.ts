/** Hashes, hex and calldata by viem's rules. Importing viem brings most of it along, and browsers need a small client. */
import { sha256 as sha256Of } from "@noble/hashes/sha2";
import { keccak_256 } from "@noble/hashes/sha3";
import { bytesToHex, hexToBytes as toBytes, utf8ToBytes } from "@noble/hashes/utils";
import type { Hex } from "./types.js";

type Size = { size: number };

/** Lower case, with the prefix `0x`. */
export const toHex = (bytes: Uint8Array): Hex => `0x${bytesToHex(bytes)}`;
/** Encodes the text as UTF-8. A lone surrogate becomes U+FFFD. */
export const stringToHex = (text: string): Hex => toHex(utf8ToBytes(text));
/** Throws on anything but whole bytes in hexadecimal. */
export const hexToBytes = (hex: Hex): Uint8Array<ArrayBuffer> => Uint8Array.from(toBytes(hex.slice(2)));

/** Hashes the bytes that the text stands for. Throws on anything but whole bytes in hexadecimal. */
export const keccak256 = (hex: Hex): Hex => toHex(keccak_256(toBytes(hex.slice(2))));
/** Hashes bytes, unlike {@link keccak256}, which takes hexadecimal. */
export const sha256 = (bytes: Uint8Array): Hex => toHex(sha256Of(bytes));

/** Number of bytes. */
export const size = (hex: Hex): number => Math.ceil((hex.length - 2) / 2);

/** Joins the digits as they are. The result is whole bytes only if each part is. */
export const concatHex = (parts: readonly Hex[]): Hex => `0x${parts.map((part) => part.slice(2)).join("")}`;

/** Bytes `start` to `end`, by default to the last. Throws if the text is shorter. */
export function sliceHex(hex: Hex, start: number, end = size(hex)): Hex {
  if (start > end || end > size(hex)) throw new RangeError(`${hex} has no bytes ${start} to ${end}`);
  return `0x${hex.slice(2 + 2 * start, 2 + 2 * end)}`;
}

/** Pads on the left. Throws if the value is longer. */
export function padHex(hex: Hex, { size: bytes }: Size): Hex {
  if (hex.length > 2 + 2 * bytes) throw new RangeError(`${hex} is longer than ${bytes} bytes`);
  return `0x${hex.slice(2).padStart(2 * bytes, "0")}`;
}

/** Throws unless the number is an integer that fits. */
export function numberToHex(value: bigint | number, bytes: Size): Hex {
  // BigInt would take text.
  if (typeof value !== "bigint" && !Number.isInteger(value))
    throw new RangeError(`${value} is not an integer`);
  if (value < 0) throw new RangeError(`${value} is negative`);
  return padHex(`0x${BigInt(value).toString(16)}`, bytes);
}

type Word = Hex | bigint | number;

/** The first four bytes of the hash of a signature such as `deliver(bytes32,bytes32,uint24)`. */
export const selectorOf = (signature: string): Hex => sliceHex(keccak256(stringToHex(signature)), 0, 4);

/** 32 bytes each: addresses and numbers are padded on the left. Throws if a value is longer. */
export const encodeWords = (...values: readonly Word[]): Hex =>
  concatHex(
    values.map((value) =>
      typeof value === "string"
        ? padHex(value.toLowerCase() as Hex, { size: 32 })
        : numberToHex(value, { size: 32 }),
    ),
  );

/** Calldata of a function whose parameters have static types, one word each. Throws if a value is longer. */
export const encodeCall = (signature: string, ...args: readonly Word[]): Hex =>
  concatHex([selectorOf(signature), encodeWords(...args)]);
