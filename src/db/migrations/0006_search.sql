CREATE EXTENSION IF NOT EXISTS pg_trgm;--> statement-breakpoint
CREATE INDEX "operation_unanswered" ON "app"."operation" USING btree ("caller","kind") WHERE state <> 'rejected' and nonce is not null and response is null;--> statement-breakpoint
CREATE INDEX "terms_title_search" ON "app"."terms" USING gin ("title" gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "terms_description_search" ON "app"."terms" USING gin ("task_description" gin_trgm_ops);