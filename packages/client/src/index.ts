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
export type { PaymentProof } from "./payment.js";
export type { Submitted } from "./session.js";
export type { PaymentProgress, PlannedPayment, SpendingLimit } from "./spending.js";
export { provenTerms } from "./terms.js";
export type * from "./types.js";
export type { Comparison, Verification, VerifyOptions } from "./verify/verify.js";
export type { OpenOptions, VoteOptions } from "./votes.js";
export { toTheEnd } from "./wait.js";
export { contractWallet, type Eip1193Provider, providerSigner, type Signer } from "./wallets.js";

/** Loaded with the first use: what sends transactions is larger than everything else. */
const onChain = () => import("./on-chain.js");
type OnChain = Awaited<ReturnType<typeof onChain>>;

/**
 * Settles an ended contract with the account's own transaction. Returns null if it is settled already. Throws viem's
 * error if settlement is not due.
 */
export const settleOnChain: OnChain["settleOnChain"] = async (...args) =>
  (await onChain()).settleOnChain(...args);
/** Pays a Backup Agent its bond, its share of slashed bonds and its reward for a tallied contract. */
export const claimOnChain: OnChain["claimOnChain"] = async (...args) =>
  (await onChain()).claimOnChain(...args);
/**
 * Opens the account's own sealed vote, once voting has ended and for a day. Throws if `salt` (by default the one that the
 * account's signature gives) does not open it, and viem's error if it cannot be opened now.
 */
export const openVoteOnChain: OnChain["openVoteOnChain"] = async (...args) =>
  (await onChain()).openVoteOnChain(...args);
