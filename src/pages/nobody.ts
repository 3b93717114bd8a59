import { type Address, ZERO_ADDRESS } from "../protocol/types.js";

/** Who a reader without a key is: sealed votes stay sealed to it. */
export const NOBODY: Address = ZERO_ADDRESS;
