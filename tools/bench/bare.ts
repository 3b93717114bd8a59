/** Bare Hono and pg: what it costs to run the service's queries, prepared, and to serialize their rows. Nothing else. */
import { serve } from "@hono/node-server";
import { eq, fillPlaceholders, isNotNull, sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import { Hono } from "hono";
import pg from "pg";
import { workingContract as w } from "../../src/db/onchain.js";
import { shownContracts } from "../../src/features/contracts/view.js";

const { DATABASE_URL, PORT } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 20 });
const dialect = new PgDialect({ casing: "snake_case" });
const one = dialect.sqlToQuery(shownContracts(eq(w.id, sql.placeholder("id"))));
const newest = dialect.sqlToQuery(
  sql`${shownContracts(isNotNull(w.createdAt))} order by ${w.createdAt} desc, ${w.id} desc limit 51`,
);

const app = new Hono();
app.get("/v1/contracts/:id", async (c) => {
  const values = fillPlaceholders(one.params, { id: c.req.param("id") });
  const { rows } = await pool.query({ name: "one", text: one.sql, values });
  return c.json({ data: rows[0] });
});
app.get("/v1/contracts", async (c) => {
  const { rows } = await pool.query({ name: "newest", text: newest.sql, values: newest.params });
  return c.json({ data: rows });
});
app.get("/health", (c) => c.text("ok"));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(PORT) });
