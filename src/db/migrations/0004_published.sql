ALTER TABLE "app"."batch" ADD COLUMN "operation_ids" bigint[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "app"."operation" ADD COLUMN "published_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "batch_by_block" ON "app"."batch" USING btree ("block_number") WHERE state in ('mined', 'final');--> statement-breakpoint
CREATE INDEX "batch_given_up" ON "app"."batch" USING gin ("operation_ids") WHERE state in ('reverted', 'superseded');--> statement-breakpoint
CREATE INDEX "operation_published" ON "app"."operation" USING btree ("asset","payer","nonce") WHERE published_at is not null and nonce is not null;--> statement-breakpoint
UPDATE "app"."batch" SET "operation_ids" = carried.ids FROM (
  SELECT batch_id, array_agg(id ORDER BY batch_index) AS ids FROM "app"."operation" WHERE batch_id IS NOT NULL GROUP BY batch_id
) carried WHERE "batch"."id" = carried.batch_id;--> statement-breakpoint
UPDATE "app"."operation" SET "published_at" = "updated_at" WHERE "batch_id" IS NOT NULL OR "transaction_hash" IS NOT NULL OR "reason" = 'BatchReverted';
