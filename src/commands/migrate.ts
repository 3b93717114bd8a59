/** Migrates the service's tables to this release and exits. Every service process also does so when it starts. */
import { createDatabase, migrate } from "../db/client.js";
import { refuse } from "./refuse.js";

const { DATABASE_URL } = process.env;
if (!DATABASE_URL) {
  console.error("DATABASE_URL is required.");
  process.exit(1);
}
const { pool } = createDatabase(DATABASE_URL, { maxConnections: 2 });
try {
  await migrate(pool);
  console.log("The tables are up to date.");
  await pool.end();
} catch (error) {
  refuse(error);
}
