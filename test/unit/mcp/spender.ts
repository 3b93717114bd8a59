/** Spends a dollar at a time from the ledger in argv until the ledger throws, then prints the count. */
import { createSpendingLedger } from "@working-contracts/cli/files";

const DOLLAR = 1_000_000n;
const ledger = createSpendingLedger(process.argv[2] as string, { perCall: DOLLAR, perDay: 25n * DOLLAR });
let counted = 0;
try {
  for (;;) {
    ledger.count({
      amount: DOLLAR,
      decimal: "1.0",
      currency: "stablecoin",
      resource: "POST /v1/contracts",
      payTo: "0x",
      role: "Worker",
      token: "0x",
    });
    counted++;
  }
} catch (error) {
  if ((error as Error).name !== "SpendingLimitError") throw error;
}
console.log(counted);
