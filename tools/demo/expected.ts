/**
 * Payouts of each ending for a price of 50.0 with three criteria, in base units. Written by hand from the worked
 * results of docs/rules.md 52, so that the demo checks the chain against the rules and not against its own code.
 */
export interface LedgerRow {
  /** Paid in and received by the party. */
  clientIn: bigint;
  clientOut: bigint;
  workerIn: bigint;
  workerOut: bigint;
  treasuryOut: bigint;
}

/** A Backup Agent's receipts from one dispute: base units of the stablecoin, and whole tokens. */
export interface JurorRow {
  out: bigint;
  tokens: bigint;
}

const PRICE = 50_000_000n;
const STAKE = 2_500_000n;
const BOND = 2_500_000n;

/** A Backup Agent's bond on three criteria. */
export const JUROR_BOND = 7_500_000n;

export const LEDGER = {
  approved: {
    clientIn: PRICE,
    clientOut: 0n,
    workerIn: STAKE,
    workerOut: 50_000_000n,
    treasuryOut: 2_500_000n,
  },
  unmatched: { clientIn: PRICE, clientOut: 50_000_000n, workerIn: 0n, workerOut: 0n, treasuryOut: 0n },
  withdrawn: {
    clientIn: PRICE,
    clientOut: 50_750_000n,
    workerIn: STAKE,
    workerOut: 1_750_000n,
    treasuryOut: 0n,
  },
  absent: { clientIn: PRICE, clientOut: 52_000_000n, workerIn: STAKE, workerOut: 0n, treasuryOut: 500_000n },
  allMet: disputed(0n, 52_500_000n, 2_500_000n),
  noneMet: disputed(54_500_000n, 0n, 500_000n),
  twoOfThreeMet: disputed(18_166_667n, 35_000_000n, 1_833_333n),
  twoMetOneUnclear: disputed(9_166_668n, 43_749_999n, 2_083_333n),
  undecided: disputed(27_500_000n, 26_250_000n, 1_250_000n),
} satisfies Record<string, LedgerRow>;

function disputed(clientOut: bigint, workerOut: bigint, treasuryOut: bigint): LedgerRow {
  return { clientIn: PRICE + BOND, clientOut, workerIn: STAKE, workerOut, treasuryOut };
}
