/** Types that all modules share. Field names and units match contracts/types/Types.sol. */
import type { Parameters } from "./terms.js";

/** 20 bytes in hexadecimal, in lower case inside. The type checks neither the length nor the case. */
export type Address = `0x${string}`;
/** Bytes in hexadecimal. The type checks only the prefix. */
export type Hex = `0x${string}`;

/** Everything that an escrow's address commits to, in the shape of the ABI's `Terms`. */
export interface EscrowTerms {
  initiator: Address;
  /** Base units of the stablecoin. */
  price: bigint;
  /** Named Worker or reserved Buyer; the zero address if anyone may accept. */
  counterparty: Address;
  criteriaCount: number;
  workerInitiated: boolean;
  /** Criteria are computed at delivery (usage ticket). */
  computedCriteria: boolean;
  /** Deadlines in seconds since 1970. */
  matchDeadline: number;
  withdrawalDeadline: number;
  deliveryDeadline: number;
  reviewDeadline: number;
  termsHash: Hex;
  parameters: Parameters;
}

/** The last stored step of an escrow, in the order of the Solidity enum. */
export const PHASES = [
  "none",
  "created",
  "matched",
  "delivered",
  "disputed",
  "approved",
  "tallied",
  "declined",
  "cancelled",
  "withdrawn",
] as const;
/** `none` is an escrow that was never paid. The status follows from the phase and the time (`statusOf`). */
export type Phase = (typeof PHASES)[number];

/** As a counterparty in {@link EscrowTerms}: anyone may accept. */
export const ZERO_ADDRESS: Address = "0x0000000000000000000000000000000000000000";

/** Why a payment is refused: the names of the x402 specification, then two of our own. */
export const REJECTION_REASONS = [
  "invalid_x402_version",
  "invalid_scheme",
  "invalid_network",
  "invalid_payload",
  "invalid_payment_requirements",
  "invalid_exact_evm_payload_signature",
  "invalid_exact_evm_payload_authorization_value",
  "invalid_exact_evm_payload_authorization_valid_after",
  "invalid_exact_evm_payload_authorization_valid_before",
  "invalid_exact_evm_payload_recipient_mismatch",
  "insufficient_funds",
  "invalid_transaction_state",
  "payer_mismatch",
  "authorization_used",
] as const;

/** The `error` of a 402 response to a payment that was rejected (docs/rules.md 14). */
export type RejectionReason = (typeof REJECTION_REASONS)[number];
