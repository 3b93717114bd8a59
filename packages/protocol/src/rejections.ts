/** Why a payment is refused. */

/** Reasons for refusing a payment: the names of the x402 specification, then two of our own. */
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

export type RejectionReason = (typeof REJECTION_REASONS)[number];
