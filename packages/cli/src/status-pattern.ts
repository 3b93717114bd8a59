import type { StatusPattern } from "@working-contracts/client/index";
import { STATUSES, type Status } from "@working-contracts/protocol/status";
import { UsageError } from "./errors.js";

/** Statuses and prefixes, separated by commas. Throws UsageError if no contract can have one: waiting would never end. */
export function statusPattern(text: string): StatusPattern {
  return text.split(",").map((one) => {
    const prefix = one.endsWith("*") ? one.slice(0, -1) : null;
    if (STATUSES.some((status) => (prefix === null ? status === one : status.startsWith(prefix))))
      return one as Status;
    throw new UsageError(
      `${one} is no status. Use one of ${STATUSES.join(", ")}, or a prefix such as settled-*.`,
    );
  });
}
