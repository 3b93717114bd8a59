/** The public interface of the client. */
export { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
export type { Node } from "./chain-check.js";
export {
  type Agent,
  type ConnectOptions,
  connect,
  type Duration,
  type OperatorPermission,
} from "./connect.js";
export type { DeliverOptions } from "./deliveries.js";
export {
  ConnectionError,
  OutcomeUnknown,
  PaymentRejected,
  RefusedToSign,
  ServiceError,
  SpendingLimitError,
} from "./errors.js";
export { type EventOptions, verifyWebhook } from "./events.js";
export { claimOnChain, openVoteOnChain, settleOnChain } from "./on-chain.js";
export type { PaymentProof } from "./payment.js";
export type { PaymentProgress, PlannedPayment, SpendingLimit } from "./spending.js";
export { provenTerms } from "./terms.js";
export type * from "./types.js";
export type { OpenOptions, VoteOptions } from "./votes.js";
export { contractWallet, type Eip1193Provider, providerSigner, type Signer } from "./wallets.js";
