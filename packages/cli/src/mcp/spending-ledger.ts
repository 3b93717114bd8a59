/** Spending caps of the MCP server: one per call, and one per day that survives restarts. */

import { type PlannedPayment, SpendingLimitError } from "@working-contracts/client/index";
import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import { z } from "zod";
import { exclusively, readPrivateJson, writePrivateJson } from "../files.js";

export interface Caps {
  /** Smallest unit of the stablecoin. */
  perCall: bigint;
  perDay: bigint;
}

const LedgerSchema = z.object({
  /** UTC. */
  day: z.iso.date(),
  /** Decimal, in the stablecoin. */
  spent: z.string(),
});
type Ledger = z.infer<typeof LedgerSchema>;

/**
 * Counts a payment before it is signed, because a signature can be used regardless of the call's outcome. Throws
 * SpendingLimitError above a cap. Throws if the file cannot be read, written or locked, so that nothing is paid
 * uncounted. Staked protocol tokens do not count. Servers that share the file share its caps.
 */
export function createSpendingLedger(
  path: string,
  { perCall, perDay }: Caps,
  now: () => Date = () => new Date(),
) {
  return {
    count({ amount, decimal, currency, resource }: PlannedPayment): void {
      if (currency === "protocol-token") return;
      if (amount > perCall) {
        throw new SpendingLimitError(
          `${resource} costs ${decimal}, more than the cap of ${formatDecimal(perCall)} per call (--max-per-call). Nothing was signed.`,
        );
      }
      exclusively(path, () => {
        const spent = spentToday();
        if (spent + amount > perDay) {
          throw new SpendingLimitError(
            `${resource} costs ${decimal}. Together with today's ${formatDecimal(spent)}, this exceeds the cap of ${formatDecimal(perDay)} per day (--max-per-day). Nothing was signed.`,
          );
        }
        writePrivateJson(path, { day: today(), spent: formatDecimal(spent + amount) } satisfies Ledger);
      });
    },
    spentToday,
  };

  function today(): string {
    return now().toISOString().slice(0, 10);
  }

  /** A future day counts as today, so setting the clock back does not reset the cap. */
  function spentToday(): bigint {
    const stored = readPrivateJson(path);
    if (stored === null) return 0n;
    const ledger = LedgerSchema.safeParse(stored);
    const spent = ledger.success ? parseDecimal(ledger.data.spent) : null;
    if (!ledger.success || spent === null)
      throw new Error(`${path} is not a spending record. Repair or delete it.`);
    return ledger.data.day < today() ? 0n : spent;
  }
}
