import { type Address, ZERO_ADDRESS } from "@working-contracts/protocol/types";

/** The caller of a page: a reader without an API key, for whom sealed votes stay sealed. */
export const NOBODY: Address = ZERO_ADDRESS;
