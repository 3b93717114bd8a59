/** Migrates the service's tables to this release and exits. Every service process also does so when it starts. */
import { parseDatabaseUrl } from "../config.js";
import { createDatabase, migrate } from "../db/client.js";
import { refuse } from "../logger.js";

try {
  const { pool } = createDatabase(parseDatabaseUrl(process.env), { maxConnections: 2 });
  await migrate(pool);
  console.log("The tables are up to date.");
  await pool.end();
} catch (error) {
  refuse(error);
}
