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
--> statement-breakpoint
CREATE TABLE "app"."event_deadline" (
	"contract_id" text NOT NULL,
	"name" text NOT NULL,
	"deadline" bigint NOT NULL,
	"due_at" bigint NOT NULL,
	CONSTRAINT "event_deadline_contract_id_name_pk" PRIMARY KEY("contract_id","name")
);
--> statement-breakpoint
CREATE TABLE "app"."event_log" (
	"id" integer PRIMARY KEY NOT NULL,
	"last_position" bigint NOT NULL,
	"scanned_id" text,
	"scanned_block" bigint,
	"scanned_hash" text
);
--> statement-breakpoint
CREATE TABLE "app"."event_reader" (
	"name" text PRIMARY KEY NOT NULL,
	"position" bigint NOT NULL
);
--> statement-breakpoint
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
	"paused_until" timestamp with time zone,
	"claimed_until" timestamp with time zone,
	"disabled_at" timestamp with time zone,
	"disabled_reason" text
);
--> statement-breakpoint
CREATE TABLE "app"."webhook_retry" (
	"webhook_id" text NOT NULL,
	"position" bigint NOT NULL,
	"attempts" smallint NOT NULL,
	"first_attempt_at" timestamp with time zone DEFAULT now() NOT NULL,
	"next_attempt_at" timestamp with time zone,
	"last_status" integer,
	"last_error" text,
	CONSTRAINT "webhook_retry_webhook_id_position_pk" PRIMARY KEY("webhook_id","position")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "event_position" ON "app"."event" USING btree ("position");--> statement-breakpoint
CREATE UNIQUE INDEX "event_source" ON "app"."event" USING btree ("source") WHERE reverted_by is null;--> statement-breakpoint
CREATE INDEX "event_staged" ON "app"."event" USING btree ("id") WHERE position is null;--> statement-breakpoint
CREATE INDEX "event_by_contract" ON "app"."event" USING btree ("contract_id","position");--> statement-breakpoint
CREATE INDEX "event_chain_tail" ON "app"."event" USING btree ("position") WHERE chain_event_id is not null and reverted_by is null;--> statement-breakpoint
CREATE INDEX "event_deadline_due" ON "app"."event_deadline" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "webhook_by_owner" ON "app"."webhook" USING btree ("owner","created_at","id");--> statement-breakpoint
CREATE INDEX "webhook_by_agent" ON "app"."webhook" USING btree ("agent") WHERE disabled_at is null;--> statement-breakpoint
CREATE INDEX "webhook_due" ON "app"."webhook" USING btree ("next_attempt_at") WHERE disabled_at is null and next_attempt_at is not null;--> statement-breakpoint
CREATE INDEX "webhook_retry_due" ON "app"."webhook_retry" USING btree ("webhook_id","next_attempt_at");