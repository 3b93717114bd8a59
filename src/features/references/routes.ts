/** Releases the keys of encrypted references to those who may read them, and logs it (docs/rules.md 34). */
import { z } from "@hono/zod-openapi";
import { escrowAbi, registryAbi } from "@working-contracts/protocol/abi";
import { tokenUnits } from "@working-contracts/protocol/ledger";
import { LIMITS } from "@working-contracts/protocol/limits";
import { isVotingClosed, seatsOpenAt, statusOf } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, lt } from "drizzle-orm";
import type { IndexReader } from "../../db/onchain.js";
import { keyRelease } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { forbidden } from "../../errors.js";
import { agentsOf, stageEvent } from "../../events/log.js";
import { body, data, endpoints } from "../../http/endpoint.js";
import {
  AddressViewSchema,
  ContractParamsSchema,
  type Page,
  PageQuerySchema,
  pageOf,
} from "../../http/schemas.js";
import { type ActionRow, loadContractForAction, roleOf } from "../contracts/actions.js";
import { type ContractRow, factsOf } from "../contracts/view.js";
import { deliveryOf, readReferenceKey } from "./vault.js";

const FieldSchema = z.enum(["supplementaryMaterials", "delivery"]);
type ReferenceField = z.infer<typeof FieldSchema>;

/** A symmetric key as a JWK (RFC 7517). */
const ReferenceKeySchema = z
  .object({
    kty: z.literal("oct"),
    alg: z.literal("A256GCM"),
    use: z.literal("enc"),
    kid: z.string().openapi({ description: "Equals `kid` in the header of the JWE that the key decrypts" }),
    k: z.string().openapi({ description: "The key, base64url" }),
    field: FieldSchema.openapi({ description: "The Contract's field that the key decrypts" }),
  })
  .openapi("ReferenceKey");
export type ReferenceJwk = z.infer<typeof ReferenceKeySchema>;

const KeyReleaseSchema = z
  .object({
    id: z.string(),
    field: FieldSchema,
    releasedTo: AddressViewSchema,
    role: z.enum(["client", "worker", "backup-agent"]),
    releasedAt: z.iso.datetime(),
  })
  .openapi("KeyRelease");
export type KeyReleaseView = z.infer<typeof KeyReleaseSchema>;

interface Entitlement {
  role: KeyReleaseView["role"];
  fields: ReferenceField[];
}

/** The keys that the caller is entitled to now, of existing references. Their release is logged first. */
async function releaseKeys(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment" | "config">,
  { id, caller }: { id: Address; caller: Address },
): Promise<ReferenceJwk[]> {
  const row = await loadContractForAction(deps, id, caller);
  const { role, fields } = await entitlementOf(deps, row, caller);
  const keys: ReferenceJwk[] = [];
  for (const field of fields) {
    const stored = field === "delivery" ? deliveryOf(row.chain.worker) : field;
    const key = await readReferenceKey(deps.db, { ...deps.config, contractId: id, field: stored });
    if (key === null) continue;
    const k = Buffer.from(key).toString("base64url");
    keys.push({ kty: "oct", alg: "A256GCM", use: "enc", kid: `${id}#${stored}`, k, field });
  }
  const released = keys.map(({ field }) => field);
  if (released.length > 0) await logRelease(deps, { row, caller, role, fields: released });
  return keys;
}

/** Logs each field once per reader and hour: rows would otherwise cost their reader nothing. For the parties alone. */
async function logRelease(
  { db, clock }: Pick<Deps, "db" | "clock">,
  { row, caller, role, fields }: { row: ContractRow; caller: Address } & Entitlement,
): Promise<void> {
  const { id: contractId, client, worker } = row.chain;
  await db.transaction(async (tx) => {
    const releases = await tx
      .insert(keyRelease)
      .values(fields.map((field) => ({ contractId, field, releasedTo: caller, role })))
      .onConflictDoNothing()
      .returning({ id: keyRelease.id, field: keyRelease.field });
    for (const { id, field } of releases) {
      await stageEvent(tx, {
        type: "key.released",
        contractId,
        agents: agentsOf(client, worker),
        visibleTo: agentsOf(client, worker),
        data: { field, releasedTo: caller, role },
        occurredAt: new Date(clock.now() * 1000),
        source: `key-release:${id}`,
      });
    }
  });
}

const MATERIALS: ReferenceField[] = ["supplementaryMaterials"];
const BOTH: ReferenceField[] = ["supplementaryMaterials", "delivery"];

async function entitlementOf(
  deps: Pick<Deps, "clock" | "publicClient" | "deployment">,
  row: ActionRow,
  caller: Address,
): Promise<Entitlement> {
  const { client, worker, matchedAt, deliveredAt } = row.chain;
  if (caller === client) return { role: "client", fields: deliveredAt === null ? MATERIALS : BOTH };
  if (caller === worker) return { role: "worker", fields: matchedAt === null ? MATERIALS : BOTH };
  if (await isBackupAgent(deps, row, caller)) return { role: "backup-agent", fields: BOTH };
  throw forbidden(
    "Only the contract's client and worker, and while it is disputed Backup Agents who can vote, were drawn or have voted, may get these keys.",
  );
}

/** Reads eligibility from the chain: with a late index, a stake that left before the match must not release keys. */
async function isBackupAgent(
  { clock, publicClient, deployment }: Pick<Deps, "clock" | "publicClient" | "deployment">,
  row: ActionRow,
  caller: Address,
): Promise<boolean> {
  const { id, baEligibilityStake, baRecruitCount, matchedAt } = row.chain;
  const now = clock.now();
  if (statusOf(factsOf(row), now) !== "disputed" || matchedAt === null) return false;
  if (isVotingClosed(row.chain, now)) return row.voter.voted || row.voter.drawn;
  if (baRecruitCount > 0 && now < seatsOpenAt(row.chain)) {
    const escrow = { address: id, abi: escrowAbi } as const;
    return publicClient.readContract({ ...escrow, functionName: "isDrawn", args: [caller] });
  }
  return publicClient.readContract({
    address: deployment.registry,
    abi: registryAbi,
    functionName: "isEligible",
    args: [caller, tokenUnits(baEligibilityStake), Number(matchedAt)],
  });
}

/** A page of releases, newest first, for client and worker. */
async function listReleases(
  deps: IndexReader,
  { id, caller, limit, before }: { id: Address; caller: Address } & z.output<typeof KeyReleaseQuerySchema>,
): Promise<Page<KeyReleaseView>> {
  const contract = await loadContractForAction(deps, id);
  if (roleOf(contract, caller) === null)
    throw forbidden("Only the contract's client and worker may read this.");
  const rows = await deps.db
    .select()
    .from(keyRelease)
    .where(and(eq(keyRelease.contractId, id), before === undefined ? undefined : lt(keyRelease.id, before)))
    .orderBy(desc(keyRelease.id))
    .limit(limit + 1);
  const releases = rows.map((row) => ({
    id: row.id.toString(),
    field: row.field as ReferenceField,
    releasedTo: row.releasedTo,
    role: row.role as KeyReleaseView["role"],
    releasedAt: row.releasedAt.toISOString(),
  }));
  return pageOf(releases, limit);
}

/** A JWK Set (RFC 7517). */
const KeySetSchema = z.object({ keys: z.array(ReferenceKeySchema) }).openapi("ReferenceKeySet");

const KeyReleaseListSchema = z
  .object({ data: z.array(KeyReleaseSchema), nextCursor: z.string().nullable() })
  .openapi("KeyReleaseList");

const KeyReleaseQuerySchema = PageQuerySchema.extend({
  cursor: z
    .string()
    // The largest id of a Postgres bigserial has 19 digits.
    .regex(/^\d{1,18}$/, "must be the nextCursor of the previous page")
    .transform(BigInt)
    .optional()
    .openapi({ type: "string", description: "nextCursor of the previous page" }),
}).transform(({ limit, cursor }) => ({ limit: limit ?? LIMITS.pageSize, before: cursor }));

const { get } = endpoints("Reference keys");
const params = ContractParamsSchema;

export const referenceEndpoints = [
  get("/v1/contracts/{id}/keys", {
    operationId: "getReferenceKeys",
    summary: "Get the keys of the encrypted references that the caller may read",
    description:
      "Materials: client, named or matched worker. Delivery: worker, and the client from delivery on. Both: eligible Backup Agents while disputed; once voting is closed, only those that were drawn or have voted. The first release of a field to a reader in each hour is logged for the parties.",
    params,
    returns: data("A JWK Set; empty if no such reference exists yet", KeySetSchema),
    errors: ["forbidden", "not_found"],
    handle: async (deps, { params: { id }, caller, c }) => {
      const keys = await releaseKeys(deps, { id, caller });
      c.header("Cache-Control", "no-store");
      return { keys };
    },
  }),
  get("/v1/contracts/{id}/keys/releases", {
    operationId: "listKeyReleases",
    summary: "List the releases of reference keys, newest first (client and worker)",
    params,
    query: KeyReleaseQuerySchema,
    returns: body("One page of releases", KeyReleaseListSchema),
    errors: ["forbidden", "not_found"],
    handle: (deps, { params: { id }, query, caller }) => listReleases(deps, { id, caller, ...query }),
  }),
];
