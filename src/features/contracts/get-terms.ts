/** GET /v1/contracts/{id}/terms: everything that a reader needs to recompute the escrow's address (docs/rules.md 19). */

import { packTerms, type TermsDocument } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { eq } from "drizzle-orm";
import { terms } from "../../db/schema.js";
import { parseStoredTerms } from "../../db/stored-terms.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";

export interface TermsView {
  contractId: string;
  chainId: number;
  /** Deploys by CREATE2 with a salt of zero, as an EIP-1167 clone of `implementation` with `packedTerms` as its immutable arguments. */
  factory: Address;
  implementation: Address;
  /** Text fields, application terms and salt. */
  document: TermsDocument;
  /** RFC 8785 text of `document`; its keccak256 is `termsHash`. */
  canonicalDocument: string;
  /** keccak256 of the caller and the SHA-256 of the posted bytes; part of the document. */
  salt: Hex;
  termsHash: Hex;
  /** As on chain: the factory's `Terms`, price in the smallest unit, deadlines in seconds. */
  escrowTerms: Omit<EscrowTerms, "price"> & { price: string };
  packedTerms: Hex;
}

/** Terms of a contract, available after its first quote. Throws 404. */
export async function getTerms(
  { db, deployment }: Pick<Deps, "db" | "deployment">,
  id: Address,
): Promise<TermsView> {
  const [row] = await db
    .select({ document: terms.document, escrowTerms: terms.escrowTerms })
    .from(terms)
    .where(eq(terms.id, id));
  if (row === undefined) throw new AppError("not_found", { message: `Terms not found for contract ${id}.` });

  const escrowTerms = parseStoredTerms(row.escrowTerms);
  const document = JSON.parse(row.document) as TermsDocument;
  return {
    contractId: id,
    chainId: deployment.chainId,
    factory: deployment.factory,
    implementation: deployment.implementation,
    document,
    canonicalDocument: row.document,
    salt: document.salt,
    termsHash: escrowTerms.termsHash,
    escrowTerms: { ...escrowTerms, price: escrowTerms.price.toString() },
    packedTerms: packTerms(escrowTerms),
  };
}
