DROP INDEX "app"."batch_open";--> statement-breakpoint
ALTER TABLE "app"."batch" ADD COLUMN "quarantined_at_block" bigint;--> statement-breakpoint
ALTER TABLE "app"."operation" ADD COLUMN "tries" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "app"."operation" ADD COLUMN "retry_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "app"."operation" ADD COLUMN "signer" text;--> statement-breakpoint
ALTER TABLE "app"."operation" ADD COLUMN "claimed_until" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "operation_by_once_key" ON "app"."operation" USING btree ("once_key","id") WHERE once_key is not null;--> statement-breakpoint
CREATE INDEX "operation_by_batch" ON "app"."operation" USING btree ("batch_id","batch_index") WHERE batch_id is not null;--> statement-breakpoint
CREATE INDEX "batch_open" ON "app"."batch" USING btree ("signer") WHERE state in ('sent', 'mined', 'quarantined');