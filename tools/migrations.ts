/** Writes 0000_initial.sql from the schema, or compares (--check); see docs/build.md, "One migration before 1.0". */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "../src/root.js";
import { writeGenerated } from "./generated.js";

const HEADER = `-- Generated from src/db/schema.ts by \`npm run migrations\`.

`;

/** The schema cannot declare these. */
const FUNCTIONS = `
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
`;

// drizzle-orm creates the schema itself, for its table of applied migrations.
const tables = execFileSync(join(ROOT, "node_modules/.bin/drizzle-kit"), ["export", "--sql"], {
  cwd: ROOT,
  encoding: "utf8",
}).replace('CREATE SCHEMA "app";\n\n', "");
const text = `${HEADER}${tables.trimEnd()}\n${FUNCTIONS}`;
const origin = { from: "src/db/schema.ts", command: "npm run migrations" };
writeGenerated("src/db/migrations/0000_initial.sql", text, origin);
