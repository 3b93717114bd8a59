/** GET /v1/contracts/{id}/terms: everything that a reader needs to recompute the escrow's address (docs/rules.md 19). */

import { z } from "@hono/zod-openapi";
import { eachParameter, packTerms, type TermsDocument } from "@working-contracts/protocol/terms";
import type { Address } from "@working-contracts/protocol/types";
import { eq } from "drizzle-orm";
import { type IndexReader, parseStoredTerms, requireIndex, workingContract } from "../../db/onchain.js";
import { terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { notFound } from "../../errors.js";
import { AddressViewSchema, HexViewSchema } from "../../http/schemas.js";

const ParametersSchema = z.object(eachParameter(() => z.number()));

/** The factory deploys by CREATE2 with a salt of zero, an EIP-1167 clone of `implementation` with `packedTerms` as its arguments. */
export const TermsSchema = z
  .object({
    contractId: z.string(),
    chainId: z.number(),
    factory: AddressViewSchema,
    implementation: AddressViewSchema,
    document: z.object({
      acceptanceCriteria: z.array(z.string()),
      application: z.string().nullable(),
      applicationTerms: z.record(z.string(), z.unknown()).nullable(),
      awardMethod: z.string(),
      contractType: z.string(),
      initiator: z.string(),
      salt: HexViewSchema,
      supplementaryMaterialsHash: HexViewSchema.nullable(),
      taskDescription: z.string(),
      title: z.string(),
      verificationMode: z.string(),
    }),
    canonicalDocument: z
      .string()
      .openapi({ description: "RFC 8785 text of `document`; its keccak256 is `termsHash`" }),
    salt: HexViewSchema,
    termsHash: HexViewSchema,
    escrowTerms: z
      .object({
        initiator: AddressViewSchema,
        price: z.string(),
        counterparty: AddressViewSchema,
        criteriaCount: z.number(),
        workerInitiated: z.boolean(),
        computedCriteria: z.boolean(),
        matchDeadline: z.number(),
        withdrawalDeadline: z.number(),
        deliveryDeadline: z.number(),
        reviewDeadline: z.number(),
        termsHash: HexViewSchema,
        parameters: ParametersSchema,
      })
      .openapi({
        description:
          "The factory's `Terms`: price in the smallest unit, times in seconds, ratios in basis points",
      }),
    packedTerms: HexViewSchema.openapi({ description: "Immutable arguments behind the escrow's proxy code" }),
  })
  .openapi("Terms");

export type TermsView = z.infer<typeof TermsSchema>;

/** Terms of an open contract, and those of a quote for its caller alone: texts that no one paid for are not published. */
export async function getTerms(
  deps: IndexReader & Pick<Deps, "deployment">,
  id: Address,
  reader: Address | null = null,
): Promise<TermsView> {
  const { db, deployment } = deps;
  const [row] = await db.select().from(terms).where(eq(terms.id, id));
  const isVisible =
    row !== undefined && (row.openedAt !== null || row.caller === reader || (await isOpenOnChain(deps, id)));
  if (!isVisible) throw notFound(`Terms not found for contract ${id}.`);

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

/** Anyone can open an escrow that is paid, without the service. */
async function isOpenOnChain(deps: IndexReader, id: Address): Promise<boolean> {
  const [row] = await deps.db
    .select({ phase: workingContract.phase })
    .from(workingContract)
    .where(eq(workingContract.id, id));
  if (row !== undefined && row.phase !== "none") return true;
  await requireIndex(deps);
  return false;
}
