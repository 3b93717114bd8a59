/** One Postgres for a vitest project whose files start everything else themselves. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startGuardian } from "../../src/indexer/supervision/processes.js";
import { startPostgres } from "../../tools/local/postgres.js";

declare module "vitest" {
  export interface ProvidedContext {
    /** Of the project's Postgres server. */
    databaseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), "postgres-"));
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  const guardian = startGuardian();
  const postgres = await startPostgres({
    guardian,
    dir: join(dir, "postgres"),
    fallbackDir: join(dir, "fallback"),
    port: 0,
    password: "test",
    database: "test",
    logPath: join(dir, "postgres.log"),
    volatile: true,
    report: () => {},
  });
  project.provide("databaseUrl", postgres.url);
  return async () => {
    await postgres.stop();
    await guardian.stop();
    rmSync(dir, { recursive: true, force: true });
  };
}
