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
  /** The indexer's own: the views in `onchain` may still show those of the release before it. */
  schema: string;
  rpcUrl: string;
  /** The database was started again: the indexer has to start again too, and go on from its safe checkpoint. */
  onDatabaseRestarted(): void;
  /** The chain went on and the index did not: the indexer has to start again. */
  onStandstill(): void;
  /** Rows rest on a block that has left the chain for good: everything has to be read again. */
  onAbandoned(): void;
}

const INTERVAL_MS = 2000;
/** For so long the index may stand still while the chain goes on: far longer than an indexer that works takes. */
const STANDSTILL_MS = 15_000;
/** For so long a row may rest on a block that left the chain, in an index that goes on. */
const ABANDONED_MS = 20_000;
const TIMEOUT_MS = 10_000;
const UNDEFINED_TABLE = "42P01";

/**
 * Looks every two seconds until stopped; a database or node that does not answer proves nothing, and neither does an
 * index that is still catching up. Tells each thing once.
 */
export function watchIndex(options: IndexWatchOptions): IndexWatch {
  const { databaseUrl, schema, rpcUrl, onDatabaseRestarted, onStandstill, onAbandoned } = options;
  const publicClient = createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }) });
  let startedAt: string | undefined;
  let standing: { checkpoint: string; since: number } | undefined;
  /** Whether the index went on, or was catching up, since it was last started: one that starts does neither. */
  let hasMoved = false;
  let gone: Gone | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    const { newest, progress, hasGone, ...seen } = await readDatabase(databaseUrl, schema, gone);
    if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();
    startedAt = seen.startedAt;

    const now = performance.now();
    // A row that was found to be gone is remembered: newer ones of the chain as it is now would hide it.
    if (!hasGone) gone = undefined;
    const suspect = gone ?? newest;
    const block = suspect && (await publicClient.getBlock({ blockNumber: suspect.number }).catch(() => null));
    // A node that does not have the block says nothing about it.
    if (suspect && block) {
      if (block.hash === suspect.hash) gone = undefined;
      else gone ??= { ...suspect, since: now, checkpoint: progress?.checkpoint, isTold: false };
    }
    if (gone?.isTold) return;
    const hasPassed = gone?.checkpoint !== progress?.checkpoint && now - (gone?.since ?? now) >= ABANDONED_MS;
    // A start takes all back that Ponder can take back, in the transaction that says that it is catching up.
    if (gone !== undefined && (progress === undefined || hasPassed)) {
      gone.isTold = true;
      hasMoved = false;
      onAbandoned();
      return;
    }
    if (progress === undefined) {
      hasMoved = true;
      standing = undefined;
      return;
    }

    const { checkpoint } = progress;
    const head = await publicClient.getBlockNumber({ cacheTime: 0 });
    if (standing !== undefined && standing.checkpoint !== checkpoint) hasMoved = true;
    if (standing?.checkpoint !== checkpoint || (head <= progress.block && gone === undefined)) {
      standing = { checkpoint, since: now };
    }

    if (hasMoved && now - standing.since >= STANDSTILL_MS) {
      hasMoved = false;
      onStandstill();
    }
  };
  const watch = async (): Promise<void> => {
    await look().catch(() => {
      standing = undefined;
    });
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

interface Place {
  number: bigint;
  hash: Hex;
}

/** Where rows stand whose block has left the chain. */
interface Gone extends Place {
  /** When that was noticed, by `performance.now()`, and how far the index was then. */
  since: number;
  checkpoint: string | undefined;
  isTold: boolean;
}

interface Seen {
  startedAt: string;
  /** How far the index is; undefined while it is catching up, or empty. */
  progress: { checkpoint: string; block: bigint } | undefined;
  /** Where the newest row's event stands. */
  newest: Place | undefined;
  hasGone: boolean;
}

function readDatabase(databaseUrl: string, schema: string, gone: Place | undefined): Promise<Seen> {
  const table = (name: string): string => `${pg.escapeIdentifier(schema)}.${name}`;
  const timeout = { connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS };
  return withClient({ connectionString: databaseUrl, ...timeout }, async (client) => {
    const read = async <Row extends pg.QueryResultRow>(
      query: string,
      values: unknown[] = [],
    ): Promise<Row | undefined> => {
      try {
        return (await client.query<Row>(query, values)).rows[0];
      } catch (error) {
        if ((error as { code?: string }).code === UNDEFINED_TABLE) return undefined;
        throw error;
      }
    };
    const started = await read<{ at: string }>("select pg_postmaster_start_time()::text as at");
    const progress = await read<{ checkpoint: string; block: string }>(
      `select latest_checkpoint as checkpoint, substring(latest_checkpoint from 27 for 16) as block
      from ${table("_ponder_meta")}, ${table("_ponder_checkpoint")} where key = 'app' and value ->> 'is_ready' = '1'`,
    );
    const newest = await read<{ number: string; hash: Hex }>(
      `select block_number as number, block_hash as hash from ${table("escrow_event")}
      order by block_number desc limit 1`,
    );
    const stillGone =
      gone &&
      (await read(
        `select 1 from ${table("escrow_event")} where block_number = $1 and block_hash = $2 limit 1`,
        [gone.number.toString(), gone.hash],
      ));
    return {
      hasGone: stillGone !== undefined,
      startedAt: started?.at ?? "",
      progress: progress && { ...progress, block: BigInt(progress.block) },
      newest: newest && { number: BigInt(newest.number), hash: newest.hash },
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
