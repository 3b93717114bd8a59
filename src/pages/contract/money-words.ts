/** Display names of settlement legs and payees. */
import type { SettlementLeg } from "../../features/contracts/get-settlement.js";

export const LEG_WORDS: Record<SettlementLeg["name"], string> = {
  "worker-pay": "Pay after the fee",
  "protocol-fee": "Protocol fee",
  "price-refund": "Price refund",
  "slashed-stake-to-client": "Slashed stake, client's part",
  "slashed-stake-to-treasury": "Slashed stake, treasury's part",
  "stake-back": "Worker Stake refund",
  "dispute-bond-lost": "Dispute Bond lost by the client",
  "dispute-bond-back": "Dispute Bond refund",
  "deposit-refund": "Deposit refund",
  "jury-leftover": "Leftover slashed bonds",
  "jury-payout": "Bond and share of slashed bonds",
};

export const PAYEE_WORDS: Record<SettlementLeg["to"], string> = {
  client: "Client",
  worker: "Worker",
  treasury: "Treasury",
  "backup-agent": "Backup Agents",
};
