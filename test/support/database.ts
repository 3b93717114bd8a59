/** Databases of a test's own, on the Postgres server of its project. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

export interface TestDatabase {
  url: string;
  /** Also ends whoever is still connected. */
  drop(): Promise<void>;
}

/** Creates an empty one. */
export async function newDatabase(): Promise<TestDatabase> {
  const databaseUrl = inject("databaseUrl");
  const name = `test_${randomBytes(6).toString("hex")}`;
  const asAdmin = async (command: string): Promise<void> => {
    const admin = new pg.Client({ connectionString: databaseUrl });
    await admin.connect();
    await admin.query(command).finally(() => admin.end());
  };
  await asAdmin(`create database ${name}`);
  return {
    url: Object.assign(new URL(databaseUrl), { pathname: `/${name}` }).href,
    drop: () => asAdmin(`drop database if exists ${name} with (force)`),
  };
}
