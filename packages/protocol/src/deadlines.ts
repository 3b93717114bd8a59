/** Periods that the escrow fixes in code (docs/rules.md 48), in seconds. */

/** How long after the voting window a sealed vote can be opened. */
export const OPENING_PERIOD = 86_400;
