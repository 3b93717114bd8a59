/** `app.terms.escrow_terms`: the on-chain half of the terms. Integers above 2^53 are stored as decimal strings. */
import type { EscrowTerms } from "@working-contracts/protocol/types";

export function toStoredTerms(terms: EscrowTerms): Record<string, unknown> {
  return { ...terms, price: terms.price.toString() };
}

/** Reads terms written by {@link toStoredTerms}; nothing else writes the column. */
export function parseStoredTerms(stored: Record<string, unknown>): EscrowTerms {
  return { ...(stored as unknown as EscrowTerms), price: BigInt(stored.price as string) };
}
