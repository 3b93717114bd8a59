/**
 * What each ending pays for a price of 50.0 with three criteria, in base units, written down by hand from the worked
 * results of docs/decisions.md (52): the demo checks the chain against them, not against the code that it runs on.
 */
export interface LedgerRow {
  /** What the party paid in, and gets out. */
  clientIn: bigint;
  clientOut: bigint;
  workerIn: bigint;
  workerOut: bigint;
  treasuryOut: bigint;
}

const PRICE = 50_000_000n;
const STAKE = 2_500_000n;

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
} satisfies Record<string, LedgerRow>;
