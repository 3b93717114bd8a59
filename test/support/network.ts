/** Networks and Postgres servers of the tests' own, each in a new folder that goes with it. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGuardian } from "../../src/indexer/supervision/guardian.js";
import { startNetwork } from "../../tools/local/network.js";
import { type Postgres, startPostgres } from "../../tools/local/postgres.js";
import { BLOCK_SECONDS } from "./blocks.js";

export function newFolder(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), name));
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  return dir;
}

/** With a new Postgres unless a database is given. The caller must stop it; with KEEP_LOGS set, its folder stays. */
export async function startTestNetwork({
  name = "working-contracts-",
  databaseUrl,
  blockTime = BLOCK_SECONDS,
  instant = true,
}: {
  name?: string;
  databaseUrl?: string | undefined;
  /** Seconds between blocks. */
  blockTime?: number;
  /** Mines each transaction at once, too. */
  instant?: boolean;
} = {}) {
  const dir = newFolder(name);
  const logs = join(dir, "logs");
  const guardian = startGuardian();
  const network = await startNetwork({
    guardian,
    dir,
    persistent: false,
    blockTime,
    instant,
    databaseUrl,
    postgresPassword: "test",
    report: () => {},
  });
  return {
    network,
    guardian,
    logs,
    async stop(): Promise<void> {
      await network.stop();
      await guardian.stop();
      if (process.env.KEEP_LOGS === undefined) rmSync(dir, { recursive: true, force: true });
      else console.log(`Logs kept in ${logs}`);
    },
  };
}

/** `stop` removes the folder, too. Unless it is volatile, what it has written survives a crash, and can be copied. */
export async function startOwnPostgres({
  dir = newFolder("postgres-"),
  volatile = true,
} = {}): Promise<Postgres> {
  const guardian = startGuardian();
  const postgres = await startPostgres({
    guardian,
    dir: join(dir, "postgres"),
    fallbackDir: join(dir, "fallback"),
    port: 0,
    password: "test",
    database: "test",
    logPath: join(dir, "postgres.log"),
    volatile,
    report: () => {},
  });
  return {
    ...postgres,
    async stop(): Promise<void> {
      await postgres.stop();
      await guardian.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
