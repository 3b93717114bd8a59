import { type Address, ZERO_ADDRESS } from "@working-contracts/protocol/types";

/** Who a reader without a key is: sealed votes stay sealed to it. */
export const NOBODY: Address = ZERO_ADDRESS;
