/** Keys and shares with which agents read references that the service cannot (docs/rules.md 68). */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { encryptionKeyText } from "@working-contracts/protocol/signatures";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, sql } from "drizzle-orm";
import { hashMessage } from "viem";
import { recoverSigner, verifySignature } from "../../chain/signatures.js";
import { draw, type IndexReader, vote } from "../../db/onchain.js";
import { deliveryShare, encryptionKey, keyRelease } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError, forbidden } from "../../errors.js";
import { data, endpoints } from "../../http/endpoint.js";
import {
  AddressParamsSchema,
  AddressSchema,
  AddressViewSchema,
  ContractParamsSchema,
} from "../../http/schemas.js";
import { loadContractForAction, requireStatus, roleOf } from "../contracts/actions.js";

const EncryptionKeyBodySchema = z
  .object({
    key: z
      .string()
      .regex(/^[\w-]{43}$/, "must be 32 bytes in base64url")
      .openapi({
        description: "An X25519 public key, as `x` in a JWK",
        example: "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08",
      }),
    signature: z
      .string()
      .max(LIMITS.signatureLength, `must have at most ${LIMITS.signatureLength} characters`)
      .openapi({ description: "EIP-191 signature of the caller over the text that publishes the key" }),
  })
  .openapi("PublishEncryptionKey");

const EncryptionKeySchema = z
  .object({
    address: AddressViewSchema,
    key: z.string().nullable(),
    signature: z.string().nullable().openapi({ description: "Proves that the key is the agent's own" }),
    publishedAt: z.iso.datetime().nullable(),
  })
  .openapi("EncryptionKey");
type EncryptionKeyView = z.infer<typeof EncryptionKeySchema>;

const ShareBodySchema = z
  .object({
    recipient: AddressSchema,
    jwe: z
      .string()
      .regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/, "must be a compact JWE")
      .max(LIMITS.shareLength, `must have at most ${LIMITS.shareLength} characters`)
      .openapi({
        description: "The delivery, encrypted to the recipient's key",
        example: "eyJhbGciOiJFQ0RILUVTK0EyNTZLVyIsImVuYyI6IkEyNTZHQ00ifQ.a2V5.aXY.dGV4dA.dGFn",
      }),
  })
  .openapi("ShareDelivery");

const ShareSchema = z
  .object({
    contractId: AddressViewSchema,
    recipient: AddressViewSchema,
    sender: AddressViewSchema,
    jwe: z.string(),
    sharedAt: z.iso.datetime(),
  })
  .openapi("DeliveryShare");
type ShareView = z.infer<typeof ShareSchema>;

/** Stores the caller's key in place of an earlier one. Throws `invalid_signature` unless the caller signed it. */
async function publishKey(
  { db, publicClient, deployment }: Pick<Deps, "db" | "publicClient" | "deployment">,
  { caller, key, signature }: { caller: Address; key: string; signature: string },
): Promise<EncryptionKeyView> {
  const { domain, chainId } = deployment;
  const message = encryptionKeyText({ domain, chainId, address: caller, key });
  const hash = hashMessage(message);
  const verdict = await verifySignature(publicClient, { address: caller, hash, signature });
  if (!verdict.ok) {
    throw new AppError("invalid_signature", {
      message: "Your address did not make this signature over the text in details.message.",
      details: { message },
    });
  }
  // Whoever seals a delivery checks the signature without a node, as it cannot do for a contract wallet (ERC-1271).
  if (recoverSigner(hash, verdict.signature) !== caller) {
    throw new AppError("invalid_signature", {
      message: "Contract wallets cannot publish encryption keys: senders cannot check their signatures.",
    });
  }
  const row = { key, signature: verdict.signature, publishedAt: new Date() };
  await db
    .insert(encryptionKey)
    .values({ agent: caller, ...row })
    .onConflictDoUpdate({ target: encryptionKey.agent, set: row });
  return { address: caller, key, signature: row.signature, publishedAt: row.publishedAt.toISOString() };
}

/** Stores what a party encrypted for a Backup Agent, in place of what it shared before; the same text keeps its first time. */
async function shareDelivery(
  deps: IndexReader & Pick<Deps, "db">,
  { id, caller, recipient, jwe }: { id: Address; caller: Address; recipient: Address; jwe: string },
): Promise<ShareView> {
  const { db, clock } = deps;
  const row = await loadContractForAction(deps, id);
  if (roleOf(row, caller) === null)
    throw forbidden("Only the contract's client and worker may share its delivery.");
  requireStatus(row, "disputed", clock.now());
  const { rows } = await db.execute<{ asked: boolean }>(sql`
    select exists (select 1 from ${keyRelease}
        where ${keyRelease.contractId} = ${id} and ${keyRelease.releasedTo} = ${recipient})
      or exists (select 1 from ${draw} where ${draw.contractId} = ${id} and ${draw.backupAgent} = ${recipient})
      or exists (select 1 from ${vote} where ${vote.contractId} = ${id} and ${vote.backupAgent} = ${recipient})
      as asked`);
  if (rows[0]?.asked !== true) {
    throw forbidden(
      `${recipient} is not a Backup Agent of this dispute: it was not drawn, has not voted and has not asked for the keys.`,
    );
  }
  const [stored] = await db
    .insert(deliveryShare)
    .values({ contractId: id, recipient, sender: caller, jwe, sharedAt: new Date() })
    .onConflictDoUpdate({
      target: [deliveryShare.contractId, deliveryShare.recipient, deliveryShare.sender],
      set: {
        jwe,
        sharedAt: sql`case when ${deliveryShare.jwe} = excluded.jwe then ${deliveryShare.sharedAt} else excluded.shared_at end`,
      },
    })
    .returning();
  return toShare(stored as ShareRow);
}

type ShareRow = typeof deliveryShare.$inferSelect;

const toShare = (row: ShareRow) => ({ ...row, sharedAt: row.sharedAt.toISOString() }) as ShareView;

const { get, post } = endpoints("Reference keys");
const sharesPath = "/v1/contracts/{id}/delivery/shares";
const params = ContractParamsSchema;

export const encryptionEndpoints = [
  post("/v1/agents/me/encryption-key", {
    operationId: "publishEncryptionKey",
    summary: "Publish the key to which others encrypt deliveries",
    description: "Replaces an earlier key.",
    body: EncryptionKeyBodySchema,
    returns: data("The published key", EncryptionKeySchema),
    errors: ["invalid_signature"],
    handle: (deps, { body, caller }) => publishKey(deps, { caller, ...body }),
  }),
  get("/v1/agents/{address}/encryption-key", {
    operationId: "getEncryptionKey",
    summary: "Read an agent's encryption key",
    description: "Check its signature before you encrypt to it.",
    auth: "none",
    params: AddressParamsSchema,
    returns: data("The key; null fields if none was ever published", EncryptionKeySchema),
    handle: async ({ db }, { params: { address } }) => {
      const [row] = await db.select().from(encryptionKey).where(eq(encryptionKey.agent, address));
      const { key = null, signature = null } = row ?? {};
      return { address, key, signature, publishedAt: row?.publishedAt.toISOString() ?? null };
    },
  }),
  post(sharesPath, {
    operationId: "shareDelivery",
    summary: "Share a sealed delivery with a Backup Agent (client and worker)",
    params,
    body: ShareBodySchema,
    returns: data("The share", ShareSchema),
    errors: ["forbidden", "not_found", "conflict"],
    handle: (deps, { params: { id }, body, caller }) => shareDelivery(deps, { id, caller, ...body }),
  }),
  get(sharesPath, {
    operationId: "listDeliveryShares",
    summary: "Read what the parties shared with the caller",
    params,
    returns: data("At most one share of each party", z.array(ShareSchema)),
    errors: ["not_found"],
    handle: async (deps, { params: { id }, caller }) => {
      await loadContractForAction(deps, id);
      const rows = await deps.db
        .select()
        .from(deliveryShare)
        .where(and(eq(deliveryShare.contractId, id), eq(deliveryShare.recipient, caller)))
        .orderBy(asc(deliveryShare.sender));
      return rows.map(toShare);
    },
  }),
];
