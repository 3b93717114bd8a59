/** What a script can tell from the exit code; listed by `wcontract help`. */

import {
  ConnectionError,
  OutcomeUnknown,
  PaymentRejected,
  RefusedToSign,
  ServiceError,
  SpendingLimitError,
} from "@working-contracts/client/index";
import { CommanderError } from "commander";

export const EXIT = {
  ok: 0,
  /** Also: `wcontract verify` found a difference. */
  failed: 1,
  usage: 2,
  refused: 3,
  notPaid: 4,
  unknown: 5,
} as const;

export const EXIT_HELP = `
Exit codes:
  0  done
  1  failed, or verify found a difference
  2  wrong usage, or a setting is missing
  3  the service refused the call
  4  no payment was made: refused, over the limit, or the quote was wrong
  5  the service did not answer, or the outcome of a payment is not known: run the same command again, but
     post only after a look at \`wcontract list --client <your address>\``;

/** Something that the caller has to set right first. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof UsageError || error instanceof RangeError) return EXIT.usage;
  if (error instanceof PaymentRejected || error instanceof RefusedToSign) return EXIT.notPaid;
  if (error instanceof SpendingLimitError) return EXIT.notPaid;
  if (error instanceof ConnectionError || error instanceof OutcomeUnknown) return EXIT.unknown;
  if (error instanceof ServiceError) return error.status >= 500 ? EXIT.unknown : EXIT.refused;
  return EXIT.failed;
}
