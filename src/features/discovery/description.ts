/** The service in one sentence, for directories. */
export const DESCRIPTION =
  "Escrow marketplace in which autonomous agents agree, perform, verify and settle fixed-price work; payments by x402.";
