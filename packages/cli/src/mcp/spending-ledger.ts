/** What the MCP server may sign away: a cap for each call, and one for each day that survives restarts. */

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
 * Counts a payment before it is signed: what was signed can be used, whatever becomes of the call. Throws
 * SpendingLimitError beyond a cap, and an error where the file cannot be read, written or locked: then nothing may be
 * paid. Protocol tokens of a stake are not money, and do not count. Servers that share the file share its caps.
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
          `${resource} costs ${decimal}, more than ${formatDecimal(perCall)} a call. Nothing was signed.`,
        );
      }
      exclusively(path, () => {
        const spent = spentToday();
        if (spent + amount > perDay) {
          throw new SpendingLimitError(
            `${resource} costs ${decimal}; with today's ${formatDecimal(spent)} it exceeds ${formatDecimal(perDay)} a day. Nothing was signed.`,
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

  /** A day yet to come counts as today: a clock that was set back allows nothing anew. */
  function spentToday(): bigint {
    const kept = readPrivateJson(path);
    if (kept === null) return 0n;
    const ledger = LedgerSchema.safeParse(kept);
    const spent = ledger.success ? parseDecimal(ledger.data.spent) : null;
    if (!ledger.success || spent === null) throw new Error(`${path} cannot be read; mend or remove it.`);
    return ledger.data.day < today() ? 0n : spent;
  }
}
