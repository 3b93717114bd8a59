/** Calldata whose arguments have a fixed size, so that the client needs no ABI library to sign it. */
import { concatHex, keccak256, numberToHex, padHex, sliceHex, stringToHex } from "./hex.js";
import type { Hex } from "./types.js";

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

export const encodeCall = (signature: string, ...args: readonly Word[]): Hex =>
  concatHex([selectorOf(signature), encodeWords(...args)]);
