/** Tables that the service owns (Postgres schema `app`): only what the chain does not hold. */
import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";

export const app = pgSchema("app");

const at = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

/**
 * One request for proof of an address (spec.md, "Challenge"). One redeemed for a key keeps its signature: it is the
 * delegation, until every key of the address is revoked.
 */
export const challenge = app.table(
  "challenge",
  {
    id: text("id").primaryKey(),
    address: text("address").notNull(),
    nonce: text("nonce").notNull(),
    message: text("message").notNull(),
    /** Seconds since 1970 as they stand in the message. */
    issuedAt: bigint("issued_at", { mode: "number" }).notNull(),
    expiresAt: bigint("expires_at", { mode: "number" }).notNull(),
    failedAttempts: smallint("failed_attempts").notNull().default(0),
    redeemedAt: at("redeemed_at"),
    signature: text("signature"),
    /** Set on redemption: only an issuing signature is ever used as a delegation, and only until it is revoked. */
    purpose: text("purpose").$type<"issue" | "revoke">(),
  },
  (t) => [
    index("challenge_by_address").on(t.address, t.issuedAt),
    index("challenge_disposable").on(t.expiresAt).where(sql`redeemed_at is null or purpose = 'revoke'`),
  ],
);

export const apiKey = app.table(
  "api_key",
  {
    id: text("id").primaryKey(),
    address: text("address").notNull(),
    /** SHA-256 of the plaintext key, hex. */
    hash: text("hash").notNull(),
    label: text("label"),
    createdAt: at("created_at").notNull().defaultNow(),
    revokedAt: at("revoked_at"),
  },
  (t) => [
    uniqueIndex("api_key_hash").on(t.hash),
    index("api_key_by_address").on(t.address, t.createdAt, t.id),
  ],
);

/** Terms as posted, from the first quote on; the escrow address commits to them (docs/decisions.md 19). */
export const terms = app.table(
  "terms",
  {
    /** Escrow address, lower case: the Working Contract's id. */
    id: text("id").primaryKey(),
    /** Authenticated caller of Create. */
    caller: text("caller").notNull(),
    /** SHA-256 over the raw request body, hex. */
    bodyHash: text("body_hash").notNull(),
    /** The canonical terms document (RFC 8785 text) behind `termsHash`; holds the salt. */
    document: text("document").notNull(),
    termsHash: text("terms_hash").notNull(),
    title: text("title").notNull(),
    taskDescription: text("task_description").notNull(),
    acceptanceCriteria: jsonb("acceptance_criteria").$type<string[]>().notNull(),
    supplementaryMaterials: text("supplementary_materials"),
    application: text("application"),
    applicationTerms: jsonb("application_terms").$type<Record<string, unknown>>(),
    awardMethod: text("award_method").notNull(),
    initiator: text("initiator").notNull(),
    /** The on-chain half of the terms, as ABI arguments with decimal strings for integers. */
    escrowTerms: jsonb("escrow_terms").$type<Record<string, unknown>>().notNull(),
    firstQuotedAt: at("first_quoted_at").notNull().defaultNow(),
    /** Set once the opening deposit is final enough to list; null while only quoted. */
    openedAt: at("opened_at"),
  },
  (t) => [
    uniqueIndex("terms_by_attempt").on(t.caller, t.bodyHash),
    index("terms_pending").on(t.caller, t.firstQuotedAt).where(sql`opened_at is null`),
  ],
);

/** Random data keys of encrypted references, wrapped by the operator's master key (docs/decisions.md 34). */
export const referenceKey = app.table(
  "reference_key",
  {
    contractId: text("contract_id").notNull(),
    field: text("field").notNull(),
    wrappedKey: text("wrapped_key").notNull(),
    masterKeyId: text("master_key_id").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.contractId, t.field] })],
);

/** A Worker's delivery: stored before its hash goes on chain, shown once the chain says so. */
export const delivery = app.table(
  "delivery",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    contractId: text("contract_id").notNull(),
    worker: text("worker").notNull(),
    /** keccak256 of the plain reference, as it goes on chain. */
    deliveryHash: text("delivery_hash").notNull(),
    /** Compact JWE of the reference. */
    encrypted: text("encrypted").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [uniqueIndex("delivery_by_hash").on(t.contractId, t.deliveryHash)],
);

export const checkpoint = app.table(
  "checkpoint",
  {
    id: text("id").primaryKey(),
    contractId: text("contract_id").notNull(),
    position: integer("position").notNull(),
    fromSequence: bigint("from_sequence", { mode: "number" }).notNull(),
    toSequence: bigint("to_sequence", { mode: "number" }).notNull(),
    merkleRoot: text("merkle_root").notNull(),
    lastReceiptHash: text("last_receipt_hash").notNull(),
    teeMeasurement: text("tee_measurement").notNull(),
    teeSignature: text("tee_signature").notNull(),
    data: jsonb("data").$type<Record<string, unknown>>().notNull(),
    /** Its leaf in the tree that a delivery anchors: the root costs 32 bytes a checkpoint instead of 64 KiB. */
    leaf: text("leaf").$type<`0x${string}`>().notNull(),
    checkpointedAt: at("checkpointed_at").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [uniqueIndex("checkpoint_by_contract").on(t.contractId, t.position)],
);

export const complaint = app.table(
  "complaint",
  {
    id: text("id").primaryKey(),
    contractId: text("contract_id").notNull(),
    filedBy: text("filed_by").notNull(),
    filedByRole: text("filed_by_role").notNull(),
    evidence: jsonb("evidence").$type<Record<string, unknown>>().notNull(),
    status: text("status").notNull().default("pending"),
    filedAt: at("filed_at").notNull().defaultNow(),
    resolvedAt: at("resolved_at"),
    resolutionNote: text("resolution_note"),
  },
  (t) => [index("complaint_by_contract").on(t.contractId, t.filedAt, t.id)],
);

/** Insert-only agent profiles; the newest row counts. */
export const profile = app.table(
  "profile",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    agent: text("agent").notNull(),
    displayName: text("display_name"),
    bio: text("bio"),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [index("profile_by_agent").on(t.agent, t.id)],
);

/** Sealed votes, kept until the service opens them (docs/decisions.md 48). */
export const sealedVote = app.table(
  "sealed_vote",
  {
    contractId: text("contract_id").notNull(),
    backupAgent: text("backup_agent").notNull(),
    commitment: text("commitment").notNull(),
    /** Packed outcomes, two bits per criterion. */
    votes: integer("votes").notNull(),
    salt: text("salt").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.contractId, t.backupAgent, t.commitment] })],
);

export const OPERATION_STATES = ["queued", "sent", "mined", "final", "rejected", "held"] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

/** The relayer's outbox: one on-chain act, stored before anything is sent (design: relayer). */
export const operation = app.table(
  "operation",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    kind: text("kind").notNull(),
    /** The escrow acted on, lower case; null for acts on no escrow (delegation, stake). */
    escrow: text("escrow"),
    /** The agent on whose behalf it is done; null for the keeper's. */
    caller: text("caller"),
    target: text("target").notNull(),
    data: text("data").notNull(),
    gasLimit: integer("gas_limit").notNull(),
    asset: text("asset"),
    payer: text("payer"),
    nonce: text("nonce"),
    /** SHA-256 over method, path, caller and raw body: tells a replay from a misuse. */
    requestHash: text("request_hash"),
    /** An act that can happen once: at most one operation with this key that is not rejected. */
    onceKey: text("once_key"),
    /** Seconds since 1970 on the chain's clock after which it cannot succeed. */
    notAfter: bigint("not_after", { mode: "number" }),
    state: text("state").$type<OperationState>().notNull().default("queued"),
    /** Solidity error name or relayer reason, with `rejected`; why it waits, with `held`. */
    reason: text("reason"),
    /** Revert data, where there is any. */
    reasonData: text("reason_data"),
    /** Tries that ended without a verdict on this operation. */
    tries: integer("tries").notNull().default(0),
    /** With `held`: when to try again. */
    retryAt: at("retry_at"),
    /** Signer that is simulating it, or sent it; a claim on a queued operation lapses at `claimedUntil`. */
    signer: text("signer"),
    claimedUntil: at("claimed_until"),
    batchId: bigint("batch_id", { mode: "bigint" }),
    batchIndex: integer("batch_index"),
    transactionHash: text("transaction_hash"),
    blockNumber: bigint("block_number", { mode: "bigint" }),
    blockHash: text("block_hash"),
    /** First answer that the caller got, replayed as it was. */
    response: jsonb("response").$type<{ status: number; body: unknown; headers: Record<string, string> }>(),
    createdAt: at("created_at").notNull().defaultNow(),
    updatedAt: at("updated_at").notNull().defaultNow(),
  },
  (t) => [
    uniqueIndex("operation_by_authorization")
      .on(t.asset, t.payer, t.nonce)
      .where(sql`state <> 'rejected' and nonce is not null`),
    uniqueIndex("operation_once").on(t.onceKey).where(sql`state <> 'rejected' and once_key is not null`),
    index("operation_queue").on(t.id).where(sql`state in ('queued', 'held')`),
    index("operation_open").on(t.batchId).where(sql`state in ('sent', 'mined')`),
    index("operation_by_escrow").on(t.escrow, t.kind),
    index("operation_by_once_key").on(t.onceKey, t.id).where(sql`once_key is not null`),
    index("operation_by_batch").on(t.batchId, t.batchIndex).where(sql`batch_id is not null`),
    index("operation_delegation")
      .on(t.caller, t.id)
      .where(sql`kind in ('delegate', 'revoke-delegation') and state <> 'rejected'`),
  ],
);

/**
 * `sent` until a receipt, `mined` until deep enough, then `final`, or `reverted` as a whole. `quarantined`: somebody
 * else used the account's nonce; `superseded` once that is final.
 */
export const BATCH_STATES = ["sent", "mined", "quarantined", "final", "reverted", "superseded"] as const;
export type BatchState = (typeof BATCH_STATES)[number];

/** One signed transaction of a batch: the bytes to send again, fees in wei, newest block when it was signed. */
export interface BatchAttempt {
  raw: `0x${string}`;
  hash: `0x${string}`;
  maxFeePerGas: string;
  maxPriorityFeePerGas: string;
  signedAtBlock: string;
}

/** One account nonce of a signer and the operations that ride on it (design: relayer). */
export const batch = app.table(
  "batch",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    signer: text("signer").notNull(),
    epoch: bigint("epoch", { mode: "bigint" }).notNull(),
    accountNonce: bigint("account_nonce", { mode: "number" }).notNull(),
    /** The first transaction and its replacements (other fees, the same operations), newest last. */
    attempts: jsonb("attempts").$type<BatchAttempt[]>().notNull(),
    state: text("state").$type<BatchState>().notNull().default("sent"),
    /** When a foreign transaction was first seen on this nonce: newest block then. */
    quarantinedAtBlock: bigint("quarantined_at_block", { mode: "bigint" }),
    transactionHash: text("transaction_hash"),
    blockNumber: bigint("block_number", { mode: "bigint" }),
    blockHash: text("block_hash"),
    createdAt: at("created_at").notNull().defaultNow(),
    updatedAt: at("updated_at").notNull().defaultNow(),
  },
  (t) => [
    uniqueIndex("batch_by_nonce").on(t.signer, t.accountNonce),
    index("batch_open").on(t.signer).where(sql`state in ('sent', 'mined', 'quarantined')`),
  ],
);

/** Who may write for a signer: the holder of the newest epoch. */
export const signerEpoch = app.table("signer_epoch", {
  signer: text("signer").primaryKey(),
  epoch: bigint("epoch", { mode: "bigint" }).notNull(),
  takenAt: at("taken_at").notNull().defaultNow(),
});

/** Every release of a reference key to a caller. */
export const keyRelease = app.table(
  "key_release",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    contractId: text("contract_id").notNull(),
    field: text("field").notNull(),
    releasedTo: text("released_to").notNull(),
    role: text("role").notNull(),
    releasedAt: at("released_at").notNull().defaultNow(),
  },
  (t) => [index("key_release_by_contract").on(t.contractId, t.id)],
);
