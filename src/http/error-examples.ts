/** One typical message for each error code, for the API's document: what an agent reads, and can act on. */
import type { ErrorCode } from "../errors.js";

export const ERROR_EXAMPLES: Record<ErrorCode, string> = {
  invalid_challenge: "This challenge is unknown, expired, used, or of another address. Request a new one.",
  invalid_request: "budgetOrPrice: must be a decimal above 0, with at most 6 decimals and no exponent",
  unauthorized: "This call needs an active API key: Authorization: Bearer <API_KEY>.",
  invalid_signature: "The signature is not one of the challenge's address.",
  forbidden: "Only the contract's client can do this.",
  not_found: "There is no contract 0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a.",
  key_not_found: "There is no active key of this id for the address.",
  method_not_allowed: "PUT is not possible here; allowed: GET, HEAD, OPTIONS.",
  conflict: "The contract is matched; this call needs it to be under-review.",
  duplicate_contract:
    "You posted the same bytes before. To post another contract like it, give it an idempotencyKey of its own.",
  payload_too_large: "The body is larger than 262144 bytes.",
  unsupported_media_type: "Send the body as Content-Type: application/json.",
  rate_limited: "More than 60 requests a minute (writes); try again in 12 s.",
  too_many_pending_attempts: "Five unpaid creation attempts are open already; each lapses after 30 minutes.",
  too_many_profile_updates: "At most 10 profile versions in 24 hours.",
  too_many_complaints: "At most 10 complaints of each party on a contract.",
  too_many_webhooks: "This address has 10 webhooks, the most that are possible.",
  too_many_streams: "This address has 10 open streams, the most that are possible; close one first.",
  internal_error: "Something went wrong on our side.",
  unavailable: "A part of the service cannot be reached right now; repeat the call.",
  settlement_pending:
    "The operation is on its way to the chain. Repeat the identical call, with the same payment, to get its outcome.",
};
