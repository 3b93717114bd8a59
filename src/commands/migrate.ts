/** Brings the service's tables to the newest version and ends. Every process does so when it starts, too. */
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
  console.log("The tables are those of this release.");
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await pool.end();
}
