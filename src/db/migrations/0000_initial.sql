CREATE SCHEMA "app";
--> statement-breakpoint
CREATE TABLE "app"."api_key" (
	"id" text PRIMARY KEY NOT NULL,
	"address" text NOT NULL,
	"hash" text NOT NULL,
	"label" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "app"."batch" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"signer" text NOT NULL,
	"epoch" bigint NOT NULL,
	"account_nonce" bigint NOT NULL,
	"attempts" jsonb NOT NULL,
	"state" text DEFAULT 'sent' NOT NULL,
	"transaction_hash" text,
	"block_number" bigint,
	"block_hash" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."challenge" (
	"id" text PRIMARY KEY NOT NULL,
	"address" text NOT NULL,
	"nonce" text NOT NULL,
	"message" text NOT NULL,
	"issued_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"failed_attempts" smallint DEFAULT 0 NOT NULL,
	"redeemed_at" timestamp with time zone,
	"signature" text,
	"purpose" text
);
--> statement-breakpoint
CREATE TABLE "app"."checkpoint" (
	"id" text PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"position" integer NOT NULL,
	"from_sequence" bigint NOT NULL,
	"to_sequence" bigint NOT NULL,
	"merkle_root" text NOT NULL,
	"last_receipt_hash" text NOT NULL,
	"tee_measurement" text NOT NULL,
	"tee_signature" text NOT NULL,
	"data" jsonb NOT NULL,
	"checkpointed_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."complaint" (
	"id" text PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"filed_by" text NOT NULL,
	"filed_by_role" text NOT NULL,
	"evidence" jsonb NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"filed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	"resolution_note" text
);
--> statement-breakpoint
CREATE TABLE "app"."delivery" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"worker" text NOT NULL,
	"delivery_hash" text NOT NULL,
	"encrypted" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."key_release" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"contract_id" text NOT NULL,
	"field" text NOT NULL,
	"released_to" text NOT NULL,
	"role" text NOT NULL,
	"released_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."operation" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"escrow" text,
	"caller" text,
	"target" text NOT NULL,
	"data" text NOT NULL,
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
	"batch_id" bigint,
	"batch_index" integer,
	"transaction_hash" text,
	"block_number" bigint,
	"block_hash" text,
	"response" jsonb,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."profile" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"agent" text NOT NULL,
	"display_name" text,
	"bio" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."reference_key" (
	"contract_id" text NOT NULL,
	"field" text NOT NULL,
	"wrapped_key" text NOT NULL,
	"master_key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "reference_key_contract_id_field_pk" PRIMARY KEY("contract_id","field")
);
--> statement-breakpoint
CREATE TABLE "app"."sealed_vote" (
	"contract_id" text NOT NULL,
	"backup_agent" text NOT NULL,
	"commitment" text NOT NULL,
	"votes" integer NOT NULL,
	"salt" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "sealed_vote_contract_id_backup_agent_commitment_pk" PRIMARY KEY("contract_id","backup_agent","commitment")
);
--> statement-breakpoint
CREATE TABLE "app"."signer_epoch" (
	"signer" text PRIMARY KEY NOT NULL,
	"epoch" bigint NOT NULL,
	"taken_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app"."terms" (
	"id" text PRIMARY KEY NOT NULL,
	"caller" text NOT NULL,
	"body_hash" text NOT NULL,
	"document" text NOT NULL,
	"terms_hash" text NOT NULL,
	"title" text NOT NULL,
	"task_description" text NOT NULL,
	"acceptance_criteria" jsonb NOT NULL,
	"supplementary_materials" text,
	"application" text,
	"application_terms" jsonb,
	"award_method" text NOT NULL,
	"initiator" text NOT NULL,
	"escrow_terms" jsonb NOT NULL,
	"first_quoted_at" timestamp with time zone DEFAULT now() NOT NULL,
	"opened_at" timestamp with time zone
);
--> statement-breakpoint
CREATE UNIQUE INDEX "api_key_hash" ON "app"."api_key" USING btree ("hash");--> statement-breakpoint
CREATE INDEX "api_key_by_address" ON "app"."api_key" USING btree ("address","created_at","id");--> statement-breakpoint
CREATE UNIQUE INDEX "batch_by_nonce" ON "app"."batch" USING btree ("signer","account_nonce");--> statement-breakpoint
CREATE INDEX "batch_open" ON "app"."batch" USING btree ("signer") WHERE state <> 'final';--> statement-breakpoint
CREATE INDEX "challenge_by_address" ON "app"."challenge" USING btree ("address","issued_at");--> statement-breakpoint
CREATE INDEX "challenge_disposable" ON "app"."challenge" USING btree ("expires_at") WHERE redeemed_at is null or purpose = 'revoke';--> statement-breakpoint
CREATE UNIQUE INDEX "checkpoint_by_contract" ON "app"."checkpoint" USING btree ("contract_id","position");--> statement-breakpoint
CREATE INDEX "complaint_by_contract" ON "app"."complaint" USING btree ("contract_id","filed_at","id");--> statement-breakpoint
CREATE UNIQUE INDEX "delivery_by_hash" ON "app"."delivery" USING btree ("contract_id","delivery_hash");--> statement-breakpoint
CREATE INDEX "key_release_by_contract" ON "app"."key_release" USING btree ("contract_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "operation_by_authorization" ON "app"."operation" USING btree ("asset","payer","nonce") WHERE state <> 'rejected' and nonce is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "operation_once" ON "app"."operation" USING btree ("once_key") WHERE state <> 'rejected' and once_key is not null;--> statement-breakpoint
CREATE INDEX "operation_queue" ON "app"."operation" USING btree ("id") WHERE state in ('queued', 'held');--> statement-breakpoint
CREATE INDEX "operation_open" ON "app"."operation" USING btree ("batch_id") WHERE state in ('sent', 'mined');--> statement-breakpoint
CREATE INDEX "operation_by_escrow" ON "app"."operation" USING btree ("escrow","kind");--> statement-breakpoint
CREATE INDEX "operation_delegation" ON "app"."operation" USING btree ("caller") WHERE kind in ('delegate', 'revoke-delegation') and state in ('queued', 'sent', 'held');--> statement-breakpoint
CREATE INDEX "profile_by_agent" ON "app"."profile" USING btree ("agent","id");--> statement-breakpoint
CREATE UNIQUE INDEX "terms_by_attempt" ON "app"."terms" USING btree ("caller","body_hash");--> statement-breakpoint
CREATE INDEX "terms_pending" ON "app"."terms" USING btree ("caller","first_quoted_at") WHERE opened_at is null;