-- Generated from src/db/schema.ts by `npm run migrations`.

CREATE TABLE "app"."api_key" (
	"id" text PRIMARY KEY NOT NULL,
	"address" text NOT NULL,
	"hash" text NOT NULL,
	"label" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone
);

CREATE TABLE "app"."batch" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"signer" text NOT NULL,
	"epoch" bigint NOT NULL,
	"account_nonce" bigint NOT NULL,
	"operation_ids" bigint[] DEFAULT '{}' NOT NULL,
	"attempts" jsonb NOT NULL,
	"state" text DEFAULT 'sent' NOT NULL,
	"has_failures" boolean DEFAULT false NOT NULL,
	"gas_used" bigint,
	"quarantined_at_block" bigint,
	"transaction_hash" text,
	"block_number" bigint,
	"block_hash" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."challenge" (
	"id" text PRIMARY KEY NOT NULL,
	"address" text NOT NULL,
	"nonce" text NOT NULL,
	"message" text NOT NULL,
	"issued_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"actions" smallint NOT NULL,
	"until" bigint NOT NULL,
	"failed_attempts" smallint DEFAULT 0 NOT NULL,
	"redeemed_at" timestamp with time zone,
	"signature" text,
	"purpose" text
);

CREATE TABLE "app"."checkpoint" (
	"id" text PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"worker" text NOT NULL,
	"position" integer NOT NULL,
	"from_sequence" bigint NOT NULL,
	"to_sequence" bigint NOT NULL,
	"merkle_root" text NOT NULL,
	"last_receipt_hash" text NOT NULL,
	"tee_measurement" text NOT NULL,
	"tee_signature" text NOT NULL,
	"data" json NOT NULL,
	"leaf" text NOT NULL,
	"total_bytes" integer NOT NULL,
	"checkpointed_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."complaint" (
	"id" text PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"filed_by" text NOT NULL,
	"filed_by_role" text NOT NULL,
	"evidence" json NOT NULL,
	"signed" jsonb,
	"status" text DEFAULT 'pending' NOT NULL,
	"filed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	"resolution_note" text
);

CREATE TABLE "app"."delivery" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"worker" text NOT NULL,
	"delivery_hash" text NOT NULL,
	"encrypted" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."delivery_share" (
	"contract_id" text NOT NULL,
	"recipient" text NOT NULL,
	"sender" text NOT NULL,
	"jwe" text NOT NULL,
	"shared_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "delivery_share_contract_id_recipient_sender_pk" PRIMARY KEY("contract_id","recipient","sender")
);

CREATE TABLE "app"."encryption_key" (
	"agent" text PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"signature" text NOT NULL,
	"published_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."entrusted_vote" (
	"contract_id" text NOT NULL,
	"backup_agent" text NOT NULL,
	"commitment" text NOT NULL,
	"votes" integer NOT NULL,
	"salt" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "entrusted_vote_contract_id_backup_agent_commitment_pk" PRIMARY KEY("contract_id","backup_agent","commitment")
);

CREATE TABLE "app"."event" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"position" bigint,
	"type" text NOT NULL,
	"contract_id" text NOT NULL,
	"agents" text[] NOT NULL,
	"visible_to" text[],
	"data" jsonb NOT NULL,
	"occurred_at" timestamp with time zone NOT NULL,
	"source" text NOT NULL,
	"chain_event_id" text,
	"block_number" bigint,
	"block_hash" text,
	"transaction_hash" text,
	"log_index" integer,
	"reverted_by" bigint
);

CREATE TABLE "app"."event_deadline" (
	"contract_id" text NOT NULL,
	"name" text NOT NULL,
	"deadline" bigint NOT NULL,
	"due_at" bigint NOT NULL,
	CONSTRAINT "event_deadline_contract_id_name_pk" PRIMARY KEY("contract_id","name")
);

CREATE TABLE "app"."event_log" (
	"id" integer PRIMARY KEY NOT NULL,
	"last_position" bigint NOT NULL,
	"scanned_id" text,
	"scanned_block" bigint,
	"scanned_hash" text
);

CREATE TABLE "app"."event_reader" (
	"name" text PRIMARY KEY NOT NULL,
	"position" bigint NOT NULL
);

CREATE TABLE "app"."expired_attempt" (
	"id" text PRIMARY KEY NOT NULL,
	"caller" text NOT NULL,
	"body_hash" text NOT NULL,
	"escrow_terms" jsonb NOT NULL,
	"expired_at" timestamp with time zone DEFAULT now() NOT NULL,
	"logged_up_to" text
);

CREATE TABLE "app"."gas_account" (
	"address" text PRIMARY KEY NOT NULL,
	"used" bigint NOT NULL,
	"earned" bigint NOT NULL,
	"owed" bigint NOT NULL,
	"owed_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."key_release" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"field" text NOT NULL,
	"released_to" text NOT NULL,
	"role" text NOT NULL,
	"released_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."operation" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"escrow" text,
	"caller" text,
	"target" text NOT NULL,
	"data" text NOT NULL,
	"signed" boolean DEFAULT false NOT NULL,
	"gas_limit" integer NOT NULL,
	"asset" text,
	"payer" text,
	"nonce" text,
	"request_hash" text,
	"once_key" text,
	"not_after" bigint,
	"state" text DEFAULT 'queued' NOT NULL,
	"reason" text,
	"reason_data" text,
	"tries" integer DEFAULT 0 NOT NULL,
	"retry_at" timestamp with time zone,
	"signer" text,
	"leased_until" timestamp with time zone,
	"published_at" timestamp with time zone,
	"batch_id" bigint,
	"transaction_hash" text,
	"block_number" bigint,
	"block_hash" text,
	"response" json,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."profile" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"agent" text NOT NULL,
	"display_name" text,
	"bio" text,
	"request_id" text DEFAULT gen_random_uuid() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"kept_at" timestamp with time zone
);

CREATE TABLE "app"."reference_key" (
	"contract_id" text NOT NULL,
	"field" text NOT NULL,
	"wrapped_key" text NOT NULL,
	"master_key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "reference_key_contract_id_field_pk" PRIMARY KEY("contract_id","field")
);

CREATE TABLE "app"."signer_epoch" (
	"signer" text PRIMARY KEY NOT NULL,
	"epoch" bigint NOT NULL,
	"taken_at" timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE "app"."terms" (
	"id" text PRIMARY KEY NOT NULL,
	"caller" text NOT NULL,
	"body_hash" text NOT NULL,
	"document" text NOT NULL,
	"title" text NOT NULL,
	"task_description" text NOT NULL,
	"words" "tsvector" DEFAULT '' NOT NULL,
	"acceptance_criteria" jsonb NOT NULL,
	"supplementary_materials" text,
	"application" text,
	"application_terms" json,
	"award_method" text NOT NULL,
	"initiator" text NOT NULL,
	"escrow_terms" jsonb NOT NULL,
	"first_quoted_at" timestamp with time zone DEFAULT now() NOT NULL,
	"opened_at" timestamp with time zone
);

CREATE TABLE "app"."webhook" (
	"id" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"url" text NOT NULL,
	"description" text,
	"agent" text,
	"contract_id" text,
	"types" text[],
	"wrapped_secret" text NOT NULL,
	"master_key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"sent_up_to" bigint NOT NULL,
	"wanted_up_to" bigint NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"failing_since" timestamp with time zone,
	"last_status" integer,
	"last_error" text,
	"last_attempt_at" timestamp with time zone,
	"last_success_at" timestamp with time zone,
	"next_attempt_at" timestamp with time zone,
	"slow_until" timestamp with time zone,
	"paused_until" timestamp with time zone,
	"leased_until" timestamp with time zone,
	"disabled_at" timestamp with time zone,
	"disabled_reason" text,
	"kept_at" timestamp with time zone
);

CREATE TABLE "app"."webhook_retry" (
	"webhook_id" text NOT NULL,
	"position" bigint NOT NULL,
	"attempts" smallint NOT NULL,
	"first_attempt_at" timestamp with time zone DEFAULT now() NOT NULL,
	"next_attempt_at" timestamp with time zone,
	CONSTRAINT "webhook_retry_webhook_id_position_pk" PRIMARY KEY("webhook_id","position")
);

CREATE UNIQUE INDEX "api_key_hash" ON "app"."api_key" USING btree ("hash");
CREATE INDEX "api_key_by_address" ON "app"."api_key" USING btree ("address","created_at","id");
CREATE INDEX "api_key_revoked" ON "app"."api_key" USING btree ("revoked_at") WHERE revoked_at is not null;
CREATE UNIQUE INDEX "batch_by_nonce" ON "app"."batch" USING btree ("signer","account_nonce");
CREATE INDEX "batch_open" ON "app"."batch" USING btree ("signer") WHERE state in ('sent', 'mined', 'quarantined');
CREATE INDEX "batch_by_block" ON "app"."batch" USING btree ("block_number") WHERE state in ('mined', 'final');
CREATE INDEX "batch_given_up" ON "app"."batch" USING gin ("operation_ids") WHERE state in ('reverted', 'superseded');
CREATE INDEX "challenge_by_address" ON "app"."challenge" USING btree ("address","issued_at");
CREATE INDEX "challenge_disposable" ON "app"."challenge" USING btree ("expires_at") WHERE signature is null;
CREATE UNIQUE INDEX "checkpoint_by_worker" ON "app"."checkpoint" USING btree ("contract_id","worker","position");
CREATE INDEX "complaint_by_contract" ON "app"."complaint" USING btree ("contract_id","filed_at","id");
CREATE UNIQUE INDEX "delivery_by_hash" ON "app"."delivery" USING btree ("contract_id","delivery_hash","worker");
CREATE UNIQUE INDEX "event_position" ON "app"."event" USING btree ("position");
CREATE UNIQUE INDEX "event_source" ON "app"."event" USING btree ("source") WHERE reverted_by is null;
CREATE INDEX "event_staged" ON "app"."event" USING btree ("id") WHERE position is null;
CREATE INDEX "event_by_contract" ON "app"."event" USING btree ("contract_id","position");
CREATE INDEX "event_chain_tail" ON "app"."event" USING btree ("chain_event_id") WHERE chain_event_id is not null and reverted_by is null;
CREATE INDEX "event_deadline_due" ON "app"."event_deadline" USING btree ("due_at");
CREATE UNIQUE INDEX "expired_attempt_by_bytes" ON "app"."expired_attempt" USING btree ("caller","body_hash");
CREATE INDEX "expired_attempt_by_time" ON "app"."expired_attempt" USING btree ("expired_at");
CREATE INDEX "expired_attempt_passed_over" ON "app"."expired_attempt" USING btree ("id") WHERE logged_up_to is not null;
CREATE INDEX "gas_account_by_owed" ON "app"."gas_account" USING btree ("owed");
CREATE INDEX "gas_account_unearned" ON "app"."gas_account" USING btree ("owed_at") WHERE earned = 0;
CREATE INDEX "key_release_by_contract" ON "app"."key_release" USING btree ("contract_id","id");
CREATE UNIQUE INDEX "key_release_hourly" ON "app"."key_release" USING btree ("contract_id","released_to","field",date_trunc('hour', released_at at time zone 'UTC'));
CREATE INDEX "key_release_by_age" ON "app"."key_release" USING btree ("released_at");
CREATE UNIQUE INDEX "operation_by_authorization" ON "app"."operation" USING btree ("asset","payer","nonce") WHERE state <> 'rejected' and nonce is not null;
CREATE UNIQUE INDEX "operation_once" ON "app"."operation" USING btree ("once_key") WHERE state <> 'rejected' and once_key is not null;
CREATE INDEX "operation_queue" ON "app"."operation" USING btree ("id") WHERE state in ('queued', 'held');
CREATE INDEX "operation_published" ON "app"."operation" USING btree ("asset","payer","nonce") WHERE published_at is not null and nonce is not null;
CREATE INDEX "operation_by_escrow" ON "app"."operation" USING btree ("escrow","kind");
CREATE INDEX "operation_once_rejected" ON "app"."operation" USING btree ("once_key","id") WHERE state = 'rejected' and once_key is not null;
CREATE INDEX "operation_by_batch" ON "app"."operation" USING btree ("batch_id") WHERE batch_id is not null;
CREATE INDEX "operation_signed" ON "app"."operation" USING btree ("caller","id") WHERE signed and (state in ('mined', 'final') or (state = 'rejected' and block_number is not null));
CREATE INDEX "operation_unanswered" ON "app"."operation" USING btree ("caller","kind") WHERE state <> 'rejected' and nonce is not null and response is null;
CREATE INDEX "operation_stake" ON "app"."operation" USING btree ("caller","id") WHERE kind = 'stake' and state in ('mined', 'final');
CREATE INDEX "operation_unstake" ON "app"."operation" USING btree ("caller") WHERE kind = 'request-unstake';
CREATE INDEX "operation_rejected" ON "app"."operation" USING btree ("caller","updated_at") WHERE state = 'rejected';
CREATE INDEX "operation_wasted" ON "app"."operation" USING btree ("caller","updated_at") WHERE (state = 'rejected' and signed and published_at is not null and block_number is null);
CREATE INDEX "operation_disposable" ON "app"."operation" USING btree ("updated_at") WHERE state = 'rejected' and published_at is null;
CREATE INDEX "operation_delegation" ON "app"."operation" USING btree ("caller","id") WHERE kind in ('delegate', 'revoke-delegation');
CREATE INDEX "profile_by_agent" ON "app"."profile" USING btree ("agent","id");
CREATE UNIQUE INDEX "profile_by_request" ON "app"."profile" USING btree ("request_id");
CREATE INDEX "profile_idle" ON "app"."profile" USING btree ("created_at") WHERE kept_at is null;
CREATE UNIQUE INDEX "terms_by_attempt" ON "app"."terms" USING btree ("caller","body_hash");
CREATE INDEX "terms_pending" ON "app"."terms" USING btree ("caller","first_quoted_at") WHERE opened_at is null;
CREATE INDEX "terms_unopened" ON "app"."terms" USING btree ("first_quoted_at") WHERE opened_at is null;
CREATE INDEX "terms_by_word" ON "app"."terms" USING gin ("words") WITH (gin_pending_list_limit=256);
CREATE INDEX "webhook_by_owner" ON "app"."webhook" USING btree ("owner","created_at","id");
CREATE INDEX "webhook_by_agent" ON "app"."webhook" USING btree ("agent") WHERE disabled_at is null;
CREATE INDEX "webhook_of_others" ON "app"."webhook" USING btree ("id") WHERE agent is distinct from owner and disabled_at is null;
CREATE INDEX "webhook_idle" ON "app"."webhook" USING btree ("created_at") WHERE kept_at is null and disabled_at is null;
CREATE INDEX "webhook_disabled" ON "app"."webhook" USING btree ("disabled_at") WHERE disabled_at is not null;
CREATE INDEX "webhook_due" ON "app"."webhook" USING btree ("next_attempt_at") WHERE disabled_at is null and next_attempt_at is not null;
CREATE INDEX "webhook_due_fast" ON "app"."webhook" USING btree ("next_attempt_at") WHERE disabled_at is null and failures = 0 and last_success_at is not null;
CREATE INDEX "webhook_retry_due" ON "app"."webhook_retry" USING btree ("webhook_id","next_attempt_at");

-- However a key is revoked, by a call or by hand, every process hears of it (createKeyOwners).
CREATE FUNCTION "app"."notify_key_revoked"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('api_key_revoked', OLD.address);
  RETURN NULL;
END $$;
CREATE TRIGGER "api_key_revoked" AFTER UPDATE OR DELETE ON "app"."api_key"
  FOR EACH ROW EXECUTE FUNCTION "app"."notify_key_revoked"();

CREATE FUNCTION "app"."notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(TG_ARGV[0], '');
  RETURN NULL;
END $$;
CREATE TRIGGER "operation_queued" AFTER INSERT ON "app"."operation"
  FOR EACH STATEMENT EXECUTE FUNCTION "app"."notify"('operation_queued');
CREATE TRIGGER "event_staged" AFTER INSERT ON "app"."event"
  FOR EACH ROW WHEN (NEW.position IS NULL) EXECUTE FUNCTION "app"."notify"('event_staged');

-- A caller's unpaid creation attempts, oldest first, locked until the transaction ends: two new attempts must not both
-- find the last slot free. The query sees what was committed before the lock was granted.
CREATE FUNCTION "app"."pending_attempts"(owner text, lifetime integer, maximum integer)
RETURNS TABLE (id text, first_quoted_at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('creation-attempts:' || owner, 0));
  RETURN QUERY SELECT t.id, t.first_quoted_at FROM app.terms t
    WHERE t.caller = owner AND t.opened_at IS NULL AND t.first_quoted_at > now() - make_interval(secs => lifetime)
      AND NOT EXISTS (SELECT 1 FROM onchain.working_contract c WHERE c.id = t.id AND c.phase <> 'none')
      AND NOT EXISTS (SELECT 1 FROM app.operation o
        WHERE o.escrow = t.id AND o.kind = 'create' AND o.state <> 'rejected')
    ORDER BY t.first_quoted_at LIMIT maximum;
END $$;
