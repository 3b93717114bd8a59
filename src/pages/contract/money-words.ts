/** What the legs of a settlement and their payees are called. */
import type { SettlementLeg } from "../../features/contracts/get-settlement.js";

export const LEG_WORDS: Record<SettlementLeg["name"], string> = {
  "worker-pay": "Pay, after the fee",
  "protocol-fee": "Protocol fee",
  "price-refund": "Price refunded",
  "slashed-stake-to-client": "Slashed stake, the client's part",
  "slashed-stake-to-treasury": "Slashed stake, the treasury's part",
  "stake-back": "Worker Stake back",
  "dispute-bond-lost": "Dispute Bond, lost by the client",
  "dispute-bond-back": "Dispute Bond back",
  "deposit-refund": "Deposit back",
  "jury-leftover": "Slashed bonds that no voter gets",
  "jury-payout": "Bond and share of slashed bonds",
};

export const PAYEE_WORDS: Record<SettlementLeg["to"], string> = {
  client: "Client",
  worker: "Worker",
  treasury: "Treasury",
  "backup-agent": "Backup Agents",
};
