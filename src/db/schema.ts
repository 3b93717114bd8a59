/** The service's own tables (Postgres schema `app`). They store only data that is not on chain. */

import type { DeadlineName, EventType } from "@working-contracts/protocol/events";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  customType,
  index,
  integer,
  json,
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

/** The distinct words of a text, for full-text search. */
const wordSet = customType<{ data: string }>({ dataType: () => "tsvector" });

/** A challenge. One redeemed for a key keeps its signature: the delegation until every key is revoked. */
export const challenge = app.table(
  "challenge",
  {
    id: text("id").primaryKey(),
    address: text("address").$type<Address>().notNull(),
    nonce: text("nonce").$type<Hex>().notNull(),
    message: text("message").notNull(),
    /** Unix seconds, as written in the message. */
    issuedAt: bigint("issued_at", { mode: "number" }).notNull(),
    expiresAt: bigint("expires_at", { mode: "number" }).notNull(),
    /** The permission in the message: a bit per action, and its end in Unix seconds or 0. */
    actions: smallint("actions").notNull(),
    until: bigint("until", { mode: "number" }).notNull(),
    failedAttempts: smallint("failed_attempts").notNull().default(0),
    redeemedAt: at("redeemed_at"),
    signature: text("signature").$type<Hex>(),
    /** Set on redemption. Only an `issue` signature is used as a delegation, and only until it is revoked. */
    purpose: text("purpose").$type<"issue" | "revoke">(),
  },
  (t) => [
    index("challenge_by_address").on(t.address, t.issuedAt),
    index("challenge_disposable").on(t.expiresAt).where(sql`signature is null`),
  ],
);

export const apiKey = app.table(
  "api_key",
  {
    id: text("id").primaryKey(),
    address: text("address").$type<Address>().notNull(),
    /** SHA-256 of the plaintext key, hex. */
    hash: text("hash").notNull(),
    label: text("label"),
    createdAt: at("created_at").notNull().defaultNow(),
    revokedAt: at("revoked_at"),
  },
  (t) => [
    uniqueIndex("api_key_hash").on(t.hash),
    index("api_key_by_address").on(t.address, t.createdAt, t.id),
    index("api_key_revoked").on(t.revokedAt).where(sql`revoked_at is not null`),
  ],
);

/** Terms as posted, stored from the first quote on. The escrow address commits to them (docs/rules.md 19). */
export const terms = app.table(
  "terms",
  {
    /** Escrow address, lower case: the Working Contract's id. */
    id: text("id").primaryKey(),
    /** Authenticated caller that created the contract. */
    caller: text("caller").$type<Address>().notNull(),
    /** SHA-256 over the raw request body, hex. */
    bodyHash: text("body_hash").notNull(),
    /** The canonical terms document (RFC 8785 text) that `escrowTerms.termsHash` covers; contains the salt. */
    document: text("document").notNull(),
    title: text("title").notNull(),
    taskDescription: text("task_description").notNull(),
    /** Words of title and description (features/contracts/text-search.ts). */
    words: wordSet("words").notNull().default(""),
    acceptanceCriteria: jsonb("acceptance_criteria").$type<string[]>().notNull(),
    supplementaryMaterials: text("supplementary_materials"),
    application: text("application"),
    applicationTerms: json("application_terms").$type<Record<string, unknown>>(),
    awardMethod: text("award_method").$type<"direct_award" | "open_tender">().notNull(),
    initiator: text("initiator").notNull(),
    /** The on-chain half of the terms, as ABI arguments with decimal strings for large integers. */
    escrowTerms: jsonb("escrow_terms").$type<Record<string, unknown>>().notNull(),
    firstQuotedAt: at("first_quoted_at").notNull().defaultNow(),
    /** When it was known to be open, by its first response or the purge: its terms are public and kept. */
    openedAt: at("opened_at"),
  },
  (t) => [
    uniqueIndex("terms_by_attempt").on(t.caller, t.bodyHash),
    index("terms_pending").on(t.caller, t.firstQuotedAt).where(sql`opened_at is null`),
    index("terms_unopened").on(t.firstQuotedAt).where(sql`opened_at is null`),
    // Every search also reads the list of rows that are not in the index yet: keep it short (kB).
    index("terms_by_word").using("gin", t.words).with({ gin_pending_list_limit: 256 }),
  ],
);

/** An attempt that was not paid, without its texts: the same bytes still lead to the address that was quoted. */
export const expiredAttempt = app.table(
  "expired_attempt",
  {
    id: text("id").$type<Address>().primaryKey(),
    caller: text("caller").notNull(),
    bodyHash: text("body_hash").notNull(),
    escrowTerms: jsonb("escrow_terms").$type<Record<string, unknown>>().notNull(),
    expiredAt: at("expired_at").notNull().defaultNow(),
    /** Once its escrow's events are passed over, because its texts are gone: the last event in the log, or an empty text. */
    loggedUpTo: text("logged_up_to"),
  },
  (t) => [
    uniqueIndex("expired_attempt_by_bytes").on(t.caller, t.bodyHash),
    index("expired_attempt_by_time").on(t.expiredAt),
    index("expired_attempt_passed_over").on(t.id).where(sql`logged_up_to is not null`),
  ],
);

/** Random data keys of encrypted references, wrapped by the operator's master key (docs/rules.md 34). */
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

/** A Worker's delivery. It is stored before its hash is sent to the chain and shown once the chain confirms it. */
export const delivery = app.table(
  "delivery",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    contractId: text("contract_id").notNull(),
    worker: text("worker").notNull(),
    /** keccak256 of the unencrypted reference, as sent to the chain. */
    deliveryHash: text("delivery_hash").notNull(),
    /** Compact JWE of the reference. */
    encrypted: text("encrypted").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [uniqueIndex("delivery_by_hash").on(t.contractId, t.deliveryHash, t.worker)],
);

export const checkpoint = app.table(
  "checkpoint",
  {
    id: text("id").primaryKey(),
    contractId: text("contract_id").notNull(),
    /** After a reorg another agent can be the contract's Worker, with other checkpoints. */
    worker: text("worker").notNull(),
    position: integer("position").notNull(),
    fromSequence: bigint("from_sequence", { mode: "number" }).notNull(),
    toSequence: bigint("to_sequence", { mode: "number" }).notNull(),
    merkleRoot: text("merkle_root").notNull(),
    lastReceiptHash: text("last_receipt_hash").notNull(),
    teeMeasurement: text("tee_measurement").notNull(),
    teeSignature: text("tee_signature").notNull(),
    data: json("data").$type<Record<string, unknown>>().notNull(),
    /** Leaf in the tree that a delivery anchors. Reading it to build the root costs 32 bytes, not 64 KiB of `data`. */
    leaf: text("leaf").$type<Hex>().notNull(),
    /** Size of the contract's checkpoints up to and including this one, as the API serves them. */
    totalBytes: integer("total_bytes").notNull(),
    checkpointedAt: at("checkpointed_at").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [uniqueIndex("checkpoint_by_worker").on(t.contractId, t.worker, t.position)],
);

export const complaint = app.table(
  "complaint",
  {
    id: text("id").primaryKey(),
    contractId: text("contract_id").notNull(),
    filedBy: text("filed_by").notNull(),
    filedByRole: text("filed_by_role").$type<"client" | "worker">().notNull(),
    evidence: json("evidence").$type<Record<string, unknown>>().notNull(),
    /** The filer's signature over the evidence (EIP-712); null if it filed with its API key alone. */
    signed: jsonb("signed").$type<{ signature: Hex; deadline: number; nonce: string }>(),
    status: text("status").$type<"pending" | "upheld" | "dismissed">().notNull().default("pending"),
    filedAt: at("filed_at").notNull().defaultNow(),
    resolvedAt: at("resolved_at"),
    resolutionNote: text("resolution_note"),
  },
  (t) => [index("complaint_by_contract").on(t.contractId, t.filedAt, t.id)],
);

/** Agent profiles, insert-only; the newest row is current. */
export const profile = app.table(
  "profile",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    agent: text("agent").$type<Address>().notNull(),
    displayName: text("display_name"),
    bio: text("bio"),
    /** The same for a repetition with the same idempotency key. */
    requestId: text("request_id").notNull().default(sql`gen_random_uuid()`),
    createdAt: at("created_at").notNull().defaultNow(),
    /** Set by the purge if its agent had a contract, a stake or a relayed operation by then. */
    keptAt: at("kept_at"),
  },
  (t) => [
    index("profile_by_agent").on(t.agent, t.id),
    uniqueIndex("profile_by_request").on(t.requestId),
    index("profile_idle").on(t.createdAt).where(sql`kept_at is null`),
  ],
);

/** Public keys to which others seal deliveries, one per agent, with the agent's signature (docs/rules.md 68). */
export const encryptionKey = app.table("encryption_key", {
  agent: text("agent").primaryKey(),
  /** X25519, base64url. */
  key: text("key").notNull(),
  signature: text("signature").notNull(),
  publishedAt: at("published_at").notNull().defaultNow(),
});

/** Sealed deliveries that a party encrypted again for a Backup Agent. */
export const deliveryShare = app.table(
  "delivery_share",
  {
    contractId: text("contract_id").notNull(),
    recipient: text("recipient").notNull(),
    sender: text("sender").notNull(),
    jwe: text("jwe").notNull(),
    sharedAt: at("shared_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.contractId, t.recipient, t.sender] })],
);

/** Votes that the service can read and opens after voting closes (docs/rules.md 48). */
export const entrustedVote = app.table(
  "entrusted_vote",
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

/** SQL: whether the operation was applied, or failed, in a block. The planner matches it with `operation_signed`. */
export const hasOutcomeOnChain = sql`(state in ('mined', 'final') or (state = 'rejected' and block_number is not null))`;

/** SQL: whether the operation was signed and broadcast, and then rejected without a block (`operation_wasted`). */
export const isWasted = sql`(state = 'rejected' and signed and published_at is not null and block_number is null)`;

type OperationState = "queued" | "sent" | "mined" | "final" | "rejected" | "held";
/** States of an operation that took effect on chain, as far as we know. */
export const APPLIED: OperationState[] = ["mined", "final"];
/** States in which its caller no longer waits for it. */
export const ENDED: readonly OperationState[] = [...APPLIED, "rejected"];

/** The relayer's outbox. Each row is one on-chain action, stored before anything is sent. */
export const operation = app.table(
  "operation",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    kind: text("kind").notNull(),
    /** Lower case; null for actions without an escrow (delegation, stake). */
    escrow: text("escrow").$type<Address>(),
    /** Agent it is done for; null for the keeper's own operations. */
    caller: text("caller").$type<Address>(),
    target: text("target").$type<Address>().notNull(),
    data: text("data").$type<Hex>().notNull(),
    /** Whether it carries its caller's signature. */
    signed: boolean("signed").notNull().default(false),
    gasLimit: integer("gas_limit").notNull(),
    asset: text("asset").$type<Address>(),
    payer: text("payer").$type<Address>(),
    nonce: text("nonce").$type<Hex>(),
    /** SHA-256 over the call's name, idempotency key, caller and body: tells a replay from a misuse. */
    requestHash: text("request_hash"),
    /** Identifies an action that can happen only once: at most one operation per key is not rejected. */
    onceKey: text("once_key"),
    /** Unix seconds on the chain's clock after which it cannot succeed. */
    notAfter: bigint("not_after", { mode: "number" }),
    state: text("state").$type<OperationState>().notNull().default("queued"),
    /** Solidity error name or relayer reason: why it was rejected or is held. */
    reason: text("reason"),
    /** Revert data, if any. */
    reasonData: text("reason_data"),
    /** Tries that neither applied nor rejected this operation. */
    tries: integer("tries").notNull().default(0),
    /** With `held`: time of the next try. */
    retryAt: at("retry_at"),
    /** Signer that is simulating or has sent it. The lease of an unsent operation lapses at `leasedUntil`. */
    signer: text("signer"),
    leasedUntil: at("leased_until"),
    /** When it was first signed for broadcast; never unset. Since then only the chain knows its fate. */
    publishedAt: at("published_at"),
    batchId: bigint("batch_id", { mode: "bigint" }),
    transactionHash: text("transaction_hash").$type<Hex>(),
    blockNumber: bigint("block_number", { mode: "bigint" }),
    blockHash: text("block_hash").$type<Hex>(),
    /** First response sent to the caller; replays return it unchanged. */
    response: json("response").$type<{
      status: 200 | 402;
      body: string;
      headers: Record<string, string>;
      transaction: Hex;
      /** Seconds on the chain's clock. */
      settledAt: number;
    }>(),
    createdAt: at("created_at").notNull().defaultNow(),
    updatedAt: at("updated_at").notNull().defaultNow(),
  },
  (t) => [
    uniqueIndex("operation_by_authorization")
      .on(t.asset, t.payer, t.nonce)
      .where(sql`state <> 'rejected' and nonce is not null`),
    uniqueIndex("operation_once").on(t.onceKey).where(sql`state <> 'rejected' and once_key is not null`),
    index("operation_queue").on(t.id).where(sql`state in ('queued', 'held')`),
    index("operation_published")
      .on(t.asset, t.payer, t.nonce)
      .where(sql`published_at is not null and nonce is not null`),
    index("operation_by_escrow").on(t.escrow, t.kind),
    index("operation_once_rejected")
      .on(t.onceKey, t.id)
      .where(sql`state = 'rejected' and once_key is not null`),
    index("operation_by_batch").on(t.batchId).where(sql`batch_id is not null`),
    index("operation_signed").on(t.caller, t.id).where(sql`signed and ${hasOutcomeOnChain}`),
    index("operation_unanswered")
      .on(t.caller, t.kind)
      .where(sql`state <> 'rejected' and nonce is not null and response is null`),
    index("operation_stake").on(t.caller, t.id).where(sql`kind = 'stake' and state in ('mined', 'final')`),
    index("operation_unstake").on(t.caller).where(sql`kind = 'request-unstake'`),
    index("operation_rejected").on(t.caller, t.updatedAt).where(sql`state = 'rejected'`),
    index("operation_wasted").on(t.caller, t.updatedAt).where(isWasted),
    index("operation_disposable").on(t.updatedAt).where(sql`state = 'rejected' and published_at is null`),
    index("operation_delegation").on(t.caller, t.id).where(sql`kind in ('delegate', 'revoke-delegation')`),
  ],
);

/**
 * `sent` until there is a receipt, `mined` until deep enough, then `final`; `reverted` if the whole batch reverted.
 * `quarantined` if someone else used the account nonce; `superseded` once that is final.
 */
type BatchState = "sent" | "mined" | "quarantined" | "final" | "reverted" | "superseded";

/** One signed transaction of a batch: the signed bytes, gas limit, fees in wei, and the newest block when it was signed. */
export interface BatchAttempt {
  raw: Hex;
  hash: Hex;
  gas: string;
  maxFeePerGas: string;
  maxPriorityFeePerGas: string;
  signedAtBlock: string;
}

/** One account nonce of a signer and the operations sent with it. */
export const batch = app.table(
  "batch",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    signer: text("signer").notNull(),
    epoch: bigint("epoch", { mode: "bigint" }).notNull(),
    accountNonce: bigint("account_nonce", { mode: "number" }).notNull(),
    /** In order of execution. Unchanged when the operations move to another batch. */
    operationIds: bigint("operation_ids", { mode: "bigint" }).array().notNull().default(sql`'{}'`),
    /** The first transaction and its replacements (same operations, higher fees), newest last. */
    attempts: jsonb("attempts").$type<BatchAttempt[]>().notNull(),
    state: text("state").$type<BatchState>().notNull().default("sent"),
    /** Whether operations of it failed on chain: they stay `sent` until that is final. */
    hasFailures: boolean("has_failures").notNull().default(false),
    /** Set once, when its gas was charged to the accounts of its operations' agents. */
    gasUsed: bigint("gas_used", { mode: "bigint" }),
    /** Newest block when a foreign transaction was first seen on this nonce. */
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
    index("batch_by_block").on(t.blockNumber).where(sql`state in ('mined', 'final')`),
    index("batch_given_up").using("gin", t.operationIds).where(sql`state in ('reverted', 'superseded')`),
  ],
);

export type BatchRow = typeof batch.$inferSelect;

/** Only the holder of a signer's newest epoch may write for it. */
export const signerEpoch = app.table("signer_epoch", {
  signer: text("signer").primaryKey(),
  epoch: bigint("epoch", { mode: "bigint" }).notNull(),
  takenAt: at("taken_at").notNull().defaultNow(),
});

/** Gas relayed for an address and gas earned by its contracts' fees (relayer/gas-accounts.ts). */
export const gasAccount = app.table(
  "gas_account",
  {
    /** Lower case, or `*` for what all addresses together had not earned. */
    address: text("address").primaryKey(),
    used: bigint("used", { mode: "number" }).notNull(),
    earned: bigint("earned", { mode: "number" }).notNull(),
    /** At `owedAt`, what neither fees nor time had covered; negative if there is gas to spare. */
    owed: bigint("owed", { mode: "number" }).notNull(),
    owedAt: at("owed_at").notNull().defaultNow(),
  },
  (t) => [
    index("gas_account_by_owed").on(t.owed),
    index("gas_account_unearned").on(t.owedAt).where(sql`earned = 0`),
  ],
);

/** Releases of reference keys: the first of a field to a caller in each hour. */
export const keyRelease = app.table(
  "key_release",
  {
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    contractId: text("contract_id").notNull(),
    field: text("field").notNull(),
    releasedTo: text("released_to").$type<Address>().notNull(),
    role: text("role").notNull(),
    releasedAt: at("released_at").notNull().defaultNow(),
  },
  (t) => [
    index("key_release_by_contract").on(t.contractId, t.id),
    uniqueIndex("key_release_hourly").on(
      t.contractId,
      t.releasedTo,
      t.field,
      sql`date_trunc('hour', released_at at time zone 'UTC')`,
    ),
    index("key_release_by_age").on(t.releasedAt),
  ],
);

/** The event log ("Events" in docs/decisions.md). A row without a position is staged, and not in the log yet. */
export const event = app.table(
  "event",
  {
    /** Insert order, unrelated to the order of the log. */
    id: bigserial("id", { mode: "bigint" }).primaryKey(),
    position: bigint("position", { mode: "bigint" }),
    type: text("type").$type<EventType>().notNull(),
    contractId: text("contract_id").$type<Address>().notNull(),
    /** Agents it concerns, for filters. */
    agents: text("agents").array().$type<Address[]>().notNull(),
    /** Agents that may see it; null for everyone. */
    visibleTo: text("visible_to").array().$type<Address[]>(),
    data: jsonb("data").$type<Record<string, unknown>>().notNull(),
    occurredAt: at("occurred_at").notNull(),
    /** Identifies its cause. Unique among events that were not reverted by a reorg. */
    source: text("source").notNull(),
    /** The indexer's id of the on-chain event it comes from. */
    chainEventId: text("chain_event_id"),
    blockNumber: bigint("block_number", { mode: "bigint" }),
    blockHash: text("block_hash").$type<Hex>(),
    transactionHash: text("transaction_hash").$type<Hex>(),
    logIndex: integer("log_index"),
    /** Position of the `event.reverted` event that reverted it. */
    revertedBy: bigint("reverted_by", { mode: "bigint" }),
  },
  (t) => [
    uniqueIndex("event_position").on(t.position),
    uniqueIndex("event_source").on(t.source).where(sql`reverted_by is null`),
    index("event_staged").on(t.id).where(sql`position is null`),
    index("event_by_contract").on(t.contractId, t.position),
    index("event_chain_tail")
      .on(t.chainEventId)
      .where(sql`chain_event_id is not null and reverted_by is null`),
  ],
);

/** A single row with the log's progress. Locking it ensures a single appender. */
export const eventLog = app.table("event_log", {
  id: integer("id").primaryKey(),
  lastPosition: bigint("last_position", { mode: "bigint" }).notNull(),
  /** The newest indexer event scanned, whether or not it was logged. */
  scannedId: text("scanned_id"),
  scannedBlock: bigint("scanned_block", { mode: "bigint" }),
  scannedHash: text("scanned_hash").$type<Hex>(),
});

/** Deadlines that, in a contract's current state, produce an event when time passes. */
export const eventDeadline = app.table(
  "event_deadline",
  {
    contractId: text("contract_id").$type<Address>().notNull(),
    /** See events/deadlines.ts. */
    name: text("name").$type<DeadlineName>().notNull(),
    /** Both in seconds on the chain's clock: the deadline, and the time its event is due. */
    deadline: bigint("deadline", { mode: "number" }).notNull(),
    dueAt: bigint("due_at", { mode: "number" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.contractId, t.name] }), index("event_deadline_due").on(t.dueAt)],
);

/** An agent's subscription to events. `agent`, `contractId` and `types` filter them; null matches any. */
export const webhook = app.table(
  "webhook",
  {
    id: text("id").primaryKey(),
    owner: text("owner").$type<Address>().notNull(),
    url: text("url").notNull(),
    description: text("description"),
    agent: text("agent").$type<Address>(),
    contractId: text("contract_id").$type<Address>(),
    types: text("types").array().$type<EventType[]>(),
    /** The signing secret, wrapped by the operator's master key. */
    wrappedSecret: text("wrapped_secret").notNull(),
    masterKeyId: text("master_key_id").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
    /** Every event up to this position was sent or waits in `webhook_retry`. */
    sentUpTo: bigint("sent_up_to", { mode: "bigint" }).notNull(),
    /** Newest matching event. If not above `sentUpTo`, there is nothing to send. */
    wantedUpTo: bigint("wanted_up_to", { mode: "bigint" }).notNull(),
    /** Failed attempts since the last success, across all events. */
    failures: integer("failures").notNull().default(0),
    failingSince: at("failing_since"),
    lastStatus: integer("last_status"),
    lastError: text("last_error"),
    lastAttemptAt: at("last_attempt_at"),
    lastSuccessAt: at("last_success_at"),
    /** Time of the next attempt; null if none is needed. */
    nextAttemptAt: at("next_attempt_at"),
    /** After a slow response it is served in the slow lane until this time. */
    slowUntil: at("slow_until"),
    /** After failures, no attempt before this time. */
    pausedUntil: at("paused_until"),
    leasedUntil: at("leased_until"),
    disabledAt: at("disabled_at"),
    disabledReason: text("disabled_reason"),
    /** As {@link profile}'s, of its owner. */
    keptAt: at("kept_at"),
  },
  (t) => [
    index("webhook_by_owner").on(t.owner, t.createdAt, t.id),
    index("webhook_by_agent").on(t.agent).where(sql`disabled_at is null`),
    index("webhook_of_others").on(t.id).where(sql`agent is distinct from owner and disabled_at is null`),
    index("webhook_idle").on(t.createdAt).where(sql`kept_at is null and disabled_at is null`),
    index("webhook_disabled").on(t.disabledAt).where(sql`disabled_at is not null`),
    index("webhook_due").on(t.nextAttemptAt).where(sql`disabled_at is null and next_attempt_at is not null`),
    index("webhook_due_fast")
      .on(t.nextAttemptAt)
      .where(sql`disabled_at is null and failures = 0 and last_success_at is not null`),
  ],
);

/** An event whose first attempt failed. */
export const webhookRetry = app.table(
  "webhook_retry",
  {
    webhookId: text("webhook_id").notNull(),
    position: bigint("position", { mode: "bigint" }).notNull(),
    attempts: smallint("attempts").notNull(),
    firstAttemptAt: at("first_attempt_at").notNull().defaultNow(),
    /** Null once delivery is abandoned. */
    nextAttemptAt: at("next_attempt_at"),
  },
  (t) => [
    primaryKey({ columns: [t.webhookId, t.position] }),
    index("webhook_retry_due").on(t.webhookId, t.nextAttemptAt),
  ],
);

/** The log position of each reader inside the service. */
export const eventReader = app.table("event_reader", {
  name: text("name").primaryKey(),
  position: bigint("position", { mode: "bigint" }).notNull(),
});
