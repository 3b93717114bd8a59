/** The environment of the operator's commands. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { hex32, hex32List } from "../../config.js";
import { createDatabase, type Database } from "../../db/client.js";
import type { MasterKeys } from "../../master-key.js";
import { ROOT } from "../../root.js";

/** The command cannot be carried out; the message is for the operator. */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
}

/** Runs `work` on the service's database and always closes the connection. */
export async function withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
  const { db, pool } = createDatabase(databaseUrl(), { maxConnections: 2 });
  try {
    return await work(db);
  } finally {
    await pool.end();
  }
}

/** The master keys. Throws OperatorError with one line per fault, which never shows a key. */
export function masterKeys(): MasterKeys {
  const settings = z
    .object({ MASTER_KEY: hex32, MASTER_KEYS_OLD: hex32List })
    .safeParse({ MASTER_KEY: process.env.MASTER_KEY, MASTER_KEYS_OLD: process.env.MASTER_KEYS_OLD });
  if (settings.success) {
    return { masterKey: settings.data.MASTER_KEY, masterKeysOld: settings.data.MASTER_KEYS_OLD };
  }
  throw new OperatorError(
    settings.error.issues.map(({ path, message }) => `${String(path[0])}: ${message}`).join("\n"),
  );
}

/** Addresses of the network that `npm start` runs on this machine; null if none is running. */
export function localNetwork(): {
  databaseUrl: string;
  rpcUrl: string;
  deploymentPath: string;
  ownerPrivateKey: `0x${string}`;
} | null {
  const path = join(process.env.DATA_DIR || join(ROOT, ".local"), "network.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** DATABASE_URL, otherwise the database of the local network that `npm start` runs. */
function databaseUrl(): string {
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL;
  const local = localNetwork();
  if (local !== null) return local.databaseUrl;
  throw new OperatorError("DATABASE_URL: is required (or run npm start in another terminal first)");
}
