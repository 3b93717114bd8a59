/**
 * What Ponder does not notice by itself. It commits without waiting for the disk, so that blocks which it indexed can be
 * missing after a crash of Postgres; and it stands still, ready as ever, where the chain went back beyond its finality.
 */
import pg from "pg";
import { createPublicClient, type Hex, http } from "viem";

export interface IndexWatch {
  stop(): void;
}

export interface IndexWatchOptions {
  databaseUrl: string;
  rpcUrl: string;
  /** The database was started again: the indexer has to start again too, and go on from its safe checkpoint. */
  onDatabaseRestarted(): void;
  /** Rows rest on a block that has left the chain for good: everything has to be read again. */
  onAbandoned(): void;
}

const INTERVAL_MS = 2000;
/** For so long a row may rest on a block that left the chain: far longer than an indexer that works leaves it. */
const PATIENCE_MS = 20_000;
const TIMEOUT_MS = 10_000;
const UNDEFINED_TABLE = "42P01";

/** Looks every two seconds until stopped; a database or node that does not answer proves nothing. Tells each thing once. */
export function watchIndex(options: IndexWatchOptions): IndexWatch {
  const { databaseUrl, rpcUrl, onDatabaseRestarted, onAbandoned } = options;
  const publicClient = createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }) });
  let startedAt: string | undefined;
  let suspect: { hash: Hex; since: number } | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    const seen = await readDatabase(databaseUrl);
    if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();
    startedAt = seen.startedAt;

    const { newest } = seen;
    const block = newest && (await publicClient.getBlock({ blockNumber: newest.number }).catch(() => null));
    // A node that does not have the block says nothing about it.
    if (!newest || !block || block.hash === newest.hash) {
      if (block) suspect = undefined;
      return;
    }
    if (suspect?.hash !== newest.hash) suspect = { hash: newest.hash, since: performance.now() };
    if (performance.now() - suspect.since < PATIENCE_MS) return;
    suspect = undefined;
    onAbandoned();
  };
  const watch = async (): Promise<void> => {
    await look().catch(() => {});
    if (!stopped) timer = setTimeout(watch, INTERVAL_MS).unref();
  };
  timer = setTimeout(watch, 0).unref();

  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Drops what was indexed, and the chain's data that Ponder keeps: both rest on blocks that are gone. */
export async function dropIndex(databaseUrl: string, schema: string): Promise<void> {
  await withClient({ connectionString: databaseUrl }, async (client) => {
    for (const name of [schema, "ponder_sync"]) {
      await client.query(`drop schema if exists ${pg.escapeIdentifier(name)} cascade`);
    }
  });
}

interface Seen {
  startedAt: string;
  /** Where the newest row's event stands. */
  newest: { number: bigint; hash: Hex } | undefined;
}

function readDatabase(databaseUrl: string): Promise<Seen> {
  const timeout = { connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS };
  return withClient({ connectionString: databaseUrl, ...timeout }, async (client) => {
    const started = await client.query<{ at: string }>("select pg_postmaster_start_time()::text as at");
    const events = await client
      .query<{ number: string; hash: Hex }>(
        "select block_number as number, block_hash as hash from onchain.escrow_event order by block_number desc limit 1",
      )
      .catch((error: { code?: string }) => {
        if (error.code === UNDEFINED_TABLE) return { rows: [] };
        throw error;
      });
    const [row] = events.rows;
    return {
      startedAt: started.rows[0]?.at ?? "",
      newest: row && { number: BigInt(row.number), hash: row.hash },
    };
  });
}

async function withClient<T>(config: pg.ClientConfig, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...config, application_name: "index-watch" });
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end().catch(() => {});
  }
}
