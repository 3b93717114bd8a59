import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { AddressViewSchema } from "../../http/address.js";
import { PageQuerySchema } from "../../http/pagination.js";
import type { KeyReleaseView } from "./list-releases.js";
import type { ReferenceJwk } from "./release-keys.js";

const FieldSchema = z.enum(["supplementaryMaterials", "delivery"]);

const JwkSchema = z
  .object({
    kty: z.literal("oct"),
    alg: z.literal("A256GCM"),
    use: z.literal("enc"),
    kid: z.string().openapi({ description: "Equals `kid` in the header of the JWE that the key decrypts" }),
    k: z.string().openapi({ description: "The key, base64url" }),
    field: FieldSchema.openapi({ description: "The Contract's field that the key decrypts" }),
  })
  .openapi("ReferenceKey") satisfies z.ZodType<ReferenceJwk>;

/** A JWK Set (RFC 7517). */
export const KeySetSchema = z.object({ keys: z.array(JwkSchema) }).openapi("ReferenceKeySet");

export const KeyReleaseSchema = z
  .object({
    id: z.string(),
    field: FieldSchema,
    releasedTo: AddressViewSchema,
    role: z.enum(["client", "worker", "backup-agent"]),
    releasedAt: z.iso.datetime(),
  })
  .openapi("KeyRelease") satisfies z.ZodType<KeyReleaseView>;

export const KeyReleaseListSchema = z
  .object({ data: z.array(KeyReleaseSchema), nextCursor: z.string().nullable() })
  .openapi("KeyReleaseList");

export const KeyReleaseQuerySchema = PageQuerySchema.extend({
  cursor: z
    .string()
    // The largest id of a Postgres bigserial has 19 digits.
    .regex(/^\d{1,18}$/, "must be the nextCursor of the previous page")
    .transform(BigInt)
    .optional()
    .openapi({ type: "string", description: "nextCursor of the previous page" }),
}).transform(({ limit, cursor }) => ({ limit: limit ?? LIMITS.pageSize, before: cursor }));
