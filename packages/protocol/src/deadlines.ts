/** Periods fixed in the escrow's code (docs/rules.md 48), in seconds. */

/** How long a sealed vote can be opened after the voting window closes. */
export const OPENING_PERIOD = 86_400;
