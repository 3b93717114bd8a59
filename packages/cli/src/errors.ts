/** Errors: exit codes for scripts, listed by `wcontract --help`, and errors as data. */

import {
  ConnectionError,
  OutcomeUnknown,
  PaymentRejected,
  RefusedToSign,
  ServiceError,
  SpendingLimitError,
} from "@working-contracts/client/index";
import { shortOf } from "@working-contracts/client/rpc";
import { CommanderError } from "commander";

export const EXIT_HELP = `
Exit codes:
  0  success
  1  failure, or verify found a difference, or the node does not show what the service reports: use
     \`wcontract on-chain\`; after a post, do not post again until the payment that the message names has expired
  2  wrong usage, or a missing setting
  3  the service refused the request
  4  nothing was paid (over the limit, or the service's text, clock or quote was wrong), or the service reports that the
     payment was not used. If one was signed, the message says until when it can still be used: do not post again
     before that
  5  no response from the service or the node, or a 5xx, or the outcome of a payment is unknown: run the same command
     again. If an action already took effect, it is refused with 409, and \`wcontract show\` says so.
     But a post and a stake pay each time: before you repeat one, check \`wcontract list --client <your address>\` (with
     a node: \`wcontract verify\` of the escrow that the command named) or \`GET /v1/agents/<your address>/stake\`.
     After a vote, run \`wcontract open-votes\`: only you can open it, unless you entrusted it to the service`;

/** Wrong arguments or settings, which the caller has to correct. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const CODES: [code: number, ...(abstract new (...args: never[]) => Error)[]][] = [
  [2, UsageError, RangeError],
  [4, PaymentRejected, RefusedToSign, SpendingLimitError],
  [5, ConnectionError, OutcomeUnknown],
];

/** One of {@link EXIT_HELP}. Separates an unknown outcome, after which a script repeats the command, from a refusal. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ServiceError) return error.status >= 500 ? 5 : 3;
  return CODES.find(([, ...classes]) => classes.some((one) => error instanceof one))?.[0] ?? 1;
}

/** An error as data. Drops `details` if the message was shortened: both can contain the node's whole URL. */
export function refusalOf(error: Error) {
  const { name, code, details, hint } = error as Error & { code?: string; details?: unknown; hint?: string };
  const message = shortOf(error);
  return { code: code ?? name, message, details: message === error.message ? details : undefined, hint };
}
