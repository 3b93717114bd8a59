/** The public interface of the client. */
export { type Agent, type ConnectOptions, connect, type Duration } from "./connect.js";
export {
  ConnectionError,
  OutcomeUnknown,
  PaymentRejected,
  RefusedToSign,
  ServiceError,
  SpendingLimitError,
} from "./errors.js";
export { claimOnChain, settleOnChain } from "./on-chain.js";
export type { Signer } from "./sign-in.js";
export type { PlannedPayment, SpendingLimit } from "./spending.js";
export { provenTerms } from "./terms.js";
export type * from "./types.js";
