/**
 * Writes src/db/migrations/0000_initial.sql from src/db/schema.ts; with --check it only compares, and fails on drift.
 * Before version 1.0 there is this one migration, and databases of earlier releases are refused. From 1.0 on each
 * change of the schema adds a migration.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../src/root.js";

const TARGET = "src/db/migrations/0000_initial.sql";
const HEADER = `-- Generated from src/db/schema.ts by \`npm run migrations\`.

-- The operators of the trigram indexes on "terms", which the schema cannot declare.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

`;

/** However a key is revoked, by a call or by hand, every process must hear of it (features/agents/key-owners.ts). */
const TRIGGERS = `
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
`;

// drizzle-orm creates the schema itself, for its table of applied migrations.
const tables = execFileSync(join(ROOT, "node_modules/.bin/drizzle-kit"), ["export", "--sql"], {
  cwd: ROOT,
  encoding: "utf8",
}).replace('CREATE SCHEMA "app";\n\n', "");
const text = `${HEADER}${tables.trimEnd()}\n${TRIGGERS}`;

if (!process.argv.includes("--check")) {
  writeFileSync(join(ROOT, TARGET), text);
} else if (readFileSync(join(ROOT, TARGET), "utf8") !== text) {
  console.error(`${TARGET} differs from src/db/schema.ts: run \`npm run migrations\` and commit the result.`);
  process.exit(1);
}
