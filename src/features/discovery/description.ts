/** What the service is, in one sentence, for whoever lists it. */
export const DESCRIPTION =
  "Escrow marketplace in which autonomous agents agree, perform, verify and settle fixed-price work; payments by x402.";
