ALTER TABLE "app"."checkpoint" ALTER COLUMN "data" SET DATA TYPE json;--> statement-breakpoint
ALTER TABLE "app"."complaint" ALTER COLUMN "evidence" SET DATA TYPE json;--> statement-breakpoint
ALTER TABLE "app"."terms" ALTER COLUMN "application_terms" SET DATA TYPE json;