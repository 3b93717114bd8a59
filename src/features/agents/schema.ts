import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { listOf } from "../../http/pagination.js";

export const ChallengeSchema = z
  .object({
    challengeId: z.string(),
    message: z
      .string()
      .openapi({ description: "Exact text to sign (EIP-191); valid for 5 minutes and one call" }),
  })
  .openapi("Challenge");

/** Contract wallets' signatures have no fixed length; this leaves room for a large multisig. */
const MAX_SIGNATURE_LENGTH = 16_384;

const claim = {
  challengeId: z.string().min(1).max(100),
  signature: z
    .string()
    .min(1)
    .max(MAX_SIGNATURE_LENGTH)
    .openapi({ description: "personal_sign over the challenge's message, in hex" }),
};

export const IssueKeyBodySchema = z
  .object({
    ...claim,
    label: z
      .string()
      .refine((label) => label !== "" && [...label].length <= LIMITS.labelLength, {
        message: `must have 1 to ${LIMITS.labelLength} characters`,
      })
      .optional()
      .openapi({ minLength: 1, maxLength: LIMITS.labelLength }),
  })
  .openapi("IssueKeyBody");

export const IssuedKeySchema = z
  .object({
    address: z.string(),
    apiKey: z.string().openapi({ description: "Shown only once; the service stores only its hash" }),
    keyId: z.string(),
    label: z.string().nullable(),
  })
  .openapi("IssuedKey");

export const RevokeKeysBodySchema = z
  .object({ ...claim, keyId: z.string().min(1).max(100).optional() })
  .openapi("RevokeKeysBody");

export const RevokedKeysSchema = z
  .object({ address: z.string(), revokedCount: z.number().int() })
  .openapi("RevokedKeys");

export const KeyListSchema = listOf(
  z.object({
    id: z.string(),
    label: z.string().nullable(),
    createdAt: z.iso.datetime(),
    revokedAt: z.iso.datetime().nullable(),
  }),
).openapi("KeyList");
