/** The service is compared with these. The argument says which of them this process serves. */
import { serve } from "@hono/node-server";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { eq, fillPlaceholders, isNotNull, sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import { Hono } from "hono";
import pg from "pg";
import { createWalletClient, type Hex, http, nonceManager, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";
import { workingContract as w } from "../../src/db/onchain.js";
import { shownContracts } from "../../src/features/contracts/view.js";

const { DATABASE_URL, RPC_URL, PRIVATE_KEY, NONCE_MANAGER, PORT } = process.env;
const app = new Hono();
if (process.argv[2] === "bare") addBare();
else addFacilitator();
app.get("/health", (c) => c.text("ok"));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(PORT) });

/** Bare Hono and pg: what it costs to run the service's queries, prepared, and to serialize their rows. Nothing else. */
function addBare(): void {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 20 });
  const dialect = new PgDialect({ casing: "snake_case" });
  const one = dialect.sqlToQuery(shownContracts(eq(w.id, sql.placeholder("id"))));
  const newest = dialect.sqlToQuery(
    sql`${shownContracts(isNotNull(w.createdAt))} order by ${w.createdAt} desc, ${w.id} desc limit 51`,
  );
  app.get("/v1/contracts/:id", async (c) => {
    const values = fillPlaceholders(one.params, { id: c.req.param("id") });
    const { rows } = await pool.query({ name: "one", text: one.sql, values });
    return c.json({ data: rows[0] });
  });
  app.get("/v1/contracts", async (c) => {
    const { rows } = await pool.query({ name: "newest", text: newest.sql, values: newest.params });
    return c.json({ data: rows });
  });
}

/** The official x402 facilitator, wired like its own example; `NONCE_MANAGER=true` adds viem's nonce manager. */
function addFacilitator(): void {
  const account = privateKeyToAccount(PRIVATE_KEY as Hex, NONCE_MANAGER === "true" ? { nonceManager } : {});
  // So that viem polls every 500 ms, its minimum: of Base's blocks it expects one in two seconds.
  const chain = { ...baseSepolia, blockTime: 1000 };
  const client = createWalletClient({ account, chain, transport: http(RPC_URL) }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({ ...client, address: account.address } as never);
  const facilitator = new x402Facilitator().register(`eip155:${baseSepolia.id}`, new ExactEvmScheme(signer));
  app.post("/verify", async (c) => {
    const { paymentPayload, paymentRequirements } = await c.req.json();
    return c.json(await facilitator.verify(paymentPayload, paymentRequirements));
  });
  app.post("/settle", async (c) => {
    const { paymentPayload, paymentRequirements } = await c.req.json();
    try {
      return c.json(await facilitator.settle(paymentPayload, paymentRequirements));
    } catch (error) {
      return c.json({ success: false, errorReason: (error as Error).name }, 500);
    }
  });
}
