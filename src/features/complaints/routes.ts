/** Complaints about the other party (docs/rules.md 53): filed and read over HTTP, resolved by the operator; no money moves. */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { complaintCall } from "@working-contracts/protocol/signatures";
import { complaintsCloseAt } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import canonicalize from "canonicalize";
import { and, asc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import { type Database, type Executor, lock, type Transaction } from "../../db/client.js";
import { complaint, event } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError, conflict, forbidden, invalidField } from "../../errors.js";
import { agentsOf, stageEvent } from "../../events/log.js";
import {
  type ActionHeaders,
  body,
  endpoints,
  IdempotencyKeySchema,
  resourceId,
} from "../../http/endpoint.js";
import {
  ContractParamsSchema,
  JsonObjectSchema,
  listOf,
  type Page,
  type PageQuery,
  PageQuerySchema,
  pageOf,
  shortList,
  shown,
} from "../../http/schemas.js";
import { isDelegable, readSignature, signatureMissing } from "../agents/delegation.js";
import { loadContractForAction, roleOf } from "../contracts/actions.js";
import { type ContractRow, loadContract } from "../contracts/view.js";

export const COMPLAINT_STATUSES = ["pending", "upheld", "dismissed"] as const;
type ComplaintStatus = (typeof COMPLAINT_STATUSES)[number];

/** A Complaint as the API shows it (docs/specification.md, "Complaint"). */
const ComplaintSchema = z
  .object({
    id: z.string(),
    contractId: z.string(),
    filedByRole: z.enum(["client", "worker"]),
    evidence: z.record(z.string(), z.unknown()),
    status: z.enum(COMPLAINT_STATUSES),
    filedAt: z.iso.datetime(),
    resolvedAt: z.iso.datetime().nullable(),
    resolutionNote: z.string().nullable(),
  })
  .openapi("Complaint");
export type ComplaintView = z.infer<typeof ComplaintSchema>;

export const toComplaint = (row: ComplaintRow): ComplaintView => shown(ComplaintSchema, row);

/** The filer's signature for a complaint. It is next to `data`, because a Complaint has only the specified fields. */
const SignedSchema = z.object({ signature: z.string(), nonce: z.string(), deadline: z.number().int() });

const ComplaintListSchema = listOf(ComplaintSchema)
  .extend({
    signed: z.record(z.string(), SignedSchema).openapi({
      description: "The filers' signatures (EIP-712) by complaint id; a complaint can have none",
    }),
  })
  .openapi("ComplaintList");

type Role = ComplaintView["filedByRole"];

interface ComplaintCall {
  id: Address;
  caller: Address;
  complaintId: string;
  evidence: Record<string, unknown>;
  actionHeaders: ActionHeaders;
}

/** Files a complaint, or returns that of an earlier call with its id. Throws 404, 403, 409 and, exactly at the limit, 429. */
async function fileComplaint(deps: Deps, call: ComplaintCall): Promise<ComplaintRow> {
  const { db, clock } = deps;
  const { id, caller, complaintId, evidence } = call;
  const row = await loadContractForAction(deps, id);
  const role = roleOf(row, caller);
  if (role === null) throw forbidden("Only the contract's client or worker may file a complaint.");
  // Before its signature or sign-in, which may have ended since the first call.
  const earlier = await findComplaint(db, complaintId);
  if (earlier !== undefined) return earlier;
  if (row.chain.matchedAt === null) {
    throw conflict("The contract was never matched: there is no counterparty to complain about.");
  }
  requireOpenWindow(row, clock.now());
  await requireBelowLimit(db, id, role);
  const signed = await authorizeComplaint(deps, call);

  return db.transaction(async (tx) => {
    await lock(tx, `complaints:${id}`);
    const first = await findComplaint(tx, complaintId);
    if (first !== undefined) return first;
    const now = clock.now();
    requireOpenWindow(row, now);
    const same = signed && (await findSigned(tx, { contractId: id, filedBy: caller, evidence, signed }));
    if (same) return same;
    await requireBelowLimit(tx, id, role);
    const by = { contractId: id, filedBy: caller, filedByRole: role };
    // The chain's time, but later than every earlier complaint's, so the list is in the order of filing.
    const filedAt = sql`greatest(to_timestamp(${now}),
      (select max(filed_at) + interval '1 millisecond' from ${complaint} where contract_id = ${id}))`;
    const [stored] = await tx
      .insert(complaint)
      .values({ ...by, id: complaintId, evidence, signed, filedAt })
      .returning();
    const filed = stored as ComplaintRow;
    await stageEvent(tx, {
      type: "complaint.filed",
      contractId: id,
      agents: agentsOf(row.chain.client, row.chain.worker),
      data: { complaintId: filed.id, filedByRole: role },
      occurredAt: filed.filedAt,
      source: `complaint:${filed.id}`,
    });
    return filed;
  });
}

async function findComplaint(db: Executor, id: string): Promise<ComplaintRow | undefined> {
  const [row] = await db.select().from(complaint).where(eq(complaint.id, id));
  return row;
}

/** The complaint that this signed message has filed: everyone can read its signature, so it counts once. */
async function findSigned(
  tx: Transaction,
  filed: Pick<ComplaintRow, "contractId" | "filedBy" | "evidence" | "signed">,
): Promise<ComplaintRow | undefined> {
  const { nonce, deadline } = filed.signed ?? {};
  const evidence = canonicalize(filed.evidence);
  const ofFiler = and(eq(complaint.contractId, filed.contractId), eq(complaint.filedBy, filed.filedBy));
  const rows = await tx
    .select()
    .from(complaint)
    .where(and(ofFiler, isNotNull(complaint.signed)));
  return rows.find(
    ({ signed, evidence: stored }) =>
      signed?.nonce === nonce && signed?.deadline === deadline && canonicalize(stored) === evidence,
  );
}

/** The filer's signature over the evidence; null if its delegation lets the key alone complain. */
async function authorizeComplaint(
  deps: Deps,
  { id: contract, caller: agent, evidence, actionHeaders: headers }: ComplaintCall,
) {
  const unsigned = { agent, contract, headers, call: complaintCall(canonicalize(evidence) ?? "") };
  const signed = await readSignature(deps, unsigned);
  if (signed !== null) return { ...signed, nonce: String(signed.nonce) };
  if (await isDelegable(deps, agent, "complain")) return null;
  throw await signatureMissing(deps, unsigned);
}

function requireOpenWindow({ chain }: ContractRow, now: number): void {
  const closesAt = complaintsCloseAt(Number(chain.reviewDeadline));
  if (now < closesAt) return;
  const closedAt = isoTime(closesAt);
  throw conflict(`The complaint window closed at ${closedAt}, 7 days after the reviewDeadline.`, {
    closedAt,
  });
}

async function requireBelowLimit(db: Executor, contractId: string, role: Role): Promise<void> {
  const ofRole = and(eq(complaint.contractId, contractId), eq(complaint.filedByRole, role));
  if ((await db.$count(complaint, ofRole)) < LIMITS.complaintsPerRole) return;
  throw new AppError("too_many_complaints", {
    message: `The ${role} of this contract has filed ${LIMITS.complaintsPerRole} complaints, the maximum.`,
    retryable: false,
  });
}

/** The most complaints that a contract can have. */
const MAX_LISTED = 2 * LIMITS.complaintsPerRole;

/** All complaints, or a page of them, oldest first, and their signatures by id. Throws 400 if the cursor names none of them. */
export async function listComplaints(
  db: Executor,
  contractId: Address,
  { limit = MAX_LISTED, cursor }: PageQuery = {},
): Promise<Page<ComplaintView> & Pick<z.input<typeof ComplaintListSchema>, "signed">> {
  const isHere = eq(complaint.contractId, contractId);
  if (cursor !== undefined && (await db.$count(complaint, and(isHere, eq(complaint.id, cursor)))) === 0) {
    throw invalidField("cursor", "names no complaint of this contract; use the nextCursor of a response");
  }
  const after =
    cursor === undefined
      ? undefined
      : sql`(${complaint.filedAt}, ${complaint.id}) > (select filed_at, id from ${complaint} where id = ${cursor})`;
  const rows = await db
    .select()
    .from(complaint)
    .where(and(isHere, after))
    .orderBy(asc(complaint.filedAt), asc(complaint.id))
    .limit(limit + 1);
  const { data, nextCursor } = pageOf(rows, limit);
  const signed = Object.fromEntries(data.flatMap((row) => (row.signed ? [[row.id, row.signed]] : [])));
  return { data: data.map(toComplaint), nextCursor, signed };
}

export type ComplaintRow = typeof complaint.$inferSelect;

/** Resolves a pending complaint once; a resolution is public and is never replaced. Otherwise returns what is stored. */
export function resolveComplaint(
  db: Database,
  { id, status, note }: { id: string; status: Exclude<ComplaintStatus, "pending">; note: string | null },
) {
  return db.transaction(async (tx) => {
    const [resolved] = await tx
      .update(complaint)
      // On a local chain whose time was moved, the filing can be ahead of this machine's clock.
      .set({ status, resolutionNote: note, resolvedAt: sql`greatest(now(), ${complaint.filedAt})` })
      .where(and(eq(complaint.id, id), eq(complaint.status, "pending")))
      .returning();
    if (resolved !== undefined) {
      await stageResolved(tx, resolved);
      return { ok: true, complaint: resolved };
    }
    const [existing] = await tx.select().from(complaint).where(eq(complaint.id, id));
    return { ok: false, complaint: existing };
  });
}

/** The resolution concerns the same agents as the filing. */
async function stageResolved(tx: Transaction, { id, contractId, filedBy, status, resolvedAt }: ComplaintRow) {
  const [filed] = await tx
    .select({ agents: event.agents })
    .from(event)
    // The index holds only events that were not reverted; a filing never is.
    .where(and(eq(event.source, `complaint:${id}`), isNull(event.revertedBy)));
  await stageEvent(tx, {
    type: "complaint.resolved",
    contractId: contractId as Address,
    agents: agentsOf(...(filed?.agents ?? [filedBy])),
    data: { complaintId: id, status },
    occurredAt: resolvedAt ?? new Date(),
    source: `complaint-resolved:${id}`,
  });
}

interface ComplaintFilter {
  status?: ComplaintStatus | undefined;
  contractId?: string | undefined;
  limit: number;
}

/** Complaints of all contracts for the operator, oldest first. */
export function findComplaints(db: Executor, { status, contractId, limit }: ComplaintFilter) {
  return db
    .select()
    .from(complaint)
    .where(
      and(
        status === undefined ? undefined : eq(complaint.status, status),
        contractId === undefined ? undefined : eq(complaint.contractId, contractId),
      ),
    )
    .orderBy(asc(complaint.filedAt), asc(complaint.id))
    .limit(limit);
}

const { get, post } = endpoints("Complaints");
const path = "/v1/contracts/{id}/complaints";
const params = ContractParamsSchema;

const ComplaintBodySchema = z
  .object({ evidence: JsonObjectSchema(LIMITS.evidenceBytes) })
  .openapi("FileComplaint");

const FiledComplaintSchema = z.object({
  data: ComplaintSchema,
  signed: SignedSchema.nullable().openapi({
    description:
      "The filer's signature for this complaint (EIP-712); null if its sign-in lets the key alone complain",
  }),
});

export const complaintEndpoints = [
  post(path, {
    operationId: "fileComplaint",
    summary: "File a complaint about the other party (client or worker)",
    signable: true,
    params,
    headers: IdempotencyKeySchema,
    body: ComplaintBodySchema,
    returns: body("The complaint", FiledComplaintSchema, 201),
    errors: ["forbidden", "not_found", "conflict", "too_many_complaints"],
    handle: async (deps, call) => {
      const { params, body, caller, actionHeaders } = call;
      const filed = await fileComplaint(deps, {
        ...params,
        ...body,
        caller,
        actionHeaders,
        complaintId: resourceId(call),
      });
      return { data: toComplaint(filed), signed: filed.signed };
    },
  }),
  get(path, {
    operationId: "listComplaints",
    summary: "List the complaints of a contract, oldest first",
    description: "Everything in one response, unless `limit` or `cursor` is given.",
    auth: "none",
    longRead: true,
    params,
    query: PageQuerySchema,
    returns: body("Complaints", ComplaintListSchema),
    errors: ["not_found"],
    handle: async (deps, { params: { id }, query }) => {
      await loadContract(deps, id);
      const { signed, ...page } = await listComplaints(deps.db, id, query);
      return { ...shortList(query, page), signed };
    },
  }),
];
