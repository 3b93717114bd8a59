/** With the same `Idempotency-Key`, a repetition of the same bytes creates and does nothing more, and returns the first. */
import { createHash, randomUUID } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";

export const IdempotencyKeySchema = z.object({
  "idempotency-key": z.string().min(1).max(LIMITS.idempotencyKeyLength).optional().openapi({
    description:
      "Makes the call safe to repeat: the same key with the same body creates or does nothing more, and returns the first. Use a new random one for each call.",
  }),
});

/** Id of a resource to create: with a key always the same for a caller, path and bytes, otherwise random. */
export function resourceId(call: {
  caller: Address;
  rawBody: Uint8Array;
  headers: z.output<typeof IdempotencyKeySchema>;
  c: { req: { path: string } };
}): string {
  const key = call.headers["idempotency-key"];
  if (key === undefined) return randomUUID();
  const { caller, rawBody, c } = call;
  const hash = createHash("sha256").update(`${caller}\n${c.req.path}\n${key}\n`).update(rawBody).digest();
  // A UUID of version 8: its bits have a meaning of ours.
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  return hash.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
