/** Migrates the service's tables to this release and exits. Every service process also does so when it starts. */
import { ConfigError } from "../config.js";
import { createDatabase, migrate } from "../db/client.js";

const { DATABASE_URL } = process.env;
if (!DATABASE_URL) {
  console.error("DATABASE_URL is required.");
  process.exit(1);
}
const { pool } = createDatabase(DATABASE_URL, { maxConnections: 2 });
try {
  await migrate(pool);
  console.log("The tables are up to date.");
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await pool.end();
}
