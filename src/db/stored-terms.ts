/** `app.terms.escrow_terms`: the on-chain half of the terms, with every integer beyond 2^53 as a decimal string. */
import type { EscrowTerms } from "@working-contracts/protocol/types";

export function toStoredTerms(terms: EscrowTerms): Record<string, unknown> {
  return { ...terms, price: terms.price.toString() };
}

/** The terms as they were stored by {@link toStoredTerms}; nothing else writes the column. */
export function parseStoredTerms(stored: Record<string, unknown>): EscrowTerms {
  return { ...(stored as unknown as EscrowTerms), price: BigInt(stored.price as string) };
}
