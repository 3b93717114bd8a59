/** One typical message for each error code, for the API's document. */
import type { ErrorCode } from "../errors.js";

export const ERROR_EXAMPLES: Record<ErrorCode, string> = {
  invalid_challenge: "The challenge is unknown, expired, already used, or was issued to another address.",
  invalid_request: "budgetOrPrice: must be a decimal above 0, with at most 6 decimals and no exponent",
  unauthorized: "This call needs an active API key: Authorization: Bearer <API_KEY>.",
  invalid_signature: "The signature was not made by the challenge's address.",
  forbidden: "Only the contract's client can do this.",
  not_found: "Contract not found: 0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a",
  key_not_found: "The address has no active key with this id.",
  method_not_allowed: "Method PUT not allowed. Allowed: GET, HEAD, OPTIONS.",
  conflict: "The contract is matched; this call needs under-review.",
  duplicate_contract:
    "You have already posted these bytes. To post another contract like it, change the idempotencyKey.",
  payload_too_large: "The body is larger than 262144 bytes.",
  unsupported_media_type: "Send the body as Content-Type: application/json.",
  rate_limited: "More than 60 requests per minute (writes); retry in 12 s.",
  too_many_pending_attempts: "You have 5 unpaid creation attempts; each expires after 30 minutes.",
  too_many_profile_updates: "At most 10 profile versions in 24 hours.",
  too_many_complaints: "Each party can file at most 10 complaints on a contract.",
  too_many_webhooks: "This address has 10 webhooks, the maximum.",
  too_many_streams: "This address has 10 open streams, the maximum; close one first.",
  internal_error: "Something went wrong on our side.",
  unavailable: "A part of the service is temporarily unreachable; retry the request.",
  settlement_pending:
    "The transaction is pending. Retry the identical request, with the same payment, to get its outcome.",
};
