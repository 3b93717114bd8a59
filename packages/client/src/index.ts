/** The public interface of the client. */
import type { OnChainOptions } from "./on-chain.js";

export type { RejectionReason } from "@working-contracts/protocol/types";
export { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
export {
  type Agent,
  type ConnectOptions,
  connect,
  type Duration,
} from "./connect.js";
export type { DeliverOptions, ShareOptions } from "./deliveries.js";
export {
  ConnectionError,
  type ContractError,
  type ErrorCode,
  NotOnChain,
  OutcomeUnknown,
  PaymentRejected,
  RefusedToSign,
  Reverted,
  ServiceError,
  SpendingLimitError,
  UnreadableReference,
  type UnusedPayment,
} from "./errors.js";
export { type EventOptions, verifyWebhook } from "./events.js";
export type { DeliverOnChainOptions, OnChainOptions } from "./on-chain.js";
export type { PaymentProgress, PaymentProof, PlannedPayment, SpendingLimit } from "./payment.js";
export type { ChainNode } from "./rpc.js";
export type { Endpoint, InputArguments, ResponseOf, SubmissionStore } from "./session.js";
export type { OperatorPermission } from "./signing.js";
export { provenTerms } from "./terms.js";
export type * from "./types.js";
export type { Comparison, Verification, VerifyOptions } from "./verify/verify.js";
export type { OpenOptions, VoteOptions } from "./votes.js";
export { type StatusPattern, untilOutcome, type WaitOptions } from "./wait.js";
export { contractWallet, type Eip1193Provider, providerSigner, type Signer } from "./wallets.js";

/** Own transactions, without the service; each returns its hash or throws Reverted. Loaded with the first use: it is large. */
export const onChain = async (options: OnChainOptions) =>
  (await import("./on-chain.js")).onChainActions(options);
