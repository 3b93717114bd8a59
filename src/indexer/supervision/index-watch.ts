/**
 * What Ponder does not notice by itself. It commits without waiting for the disk, so that blocks which it indexed can be
 * missing after a crash of Postgres; and it stands still, ready as ever, where the chain went back beyond its finality.
 */
import pg from "pg";
import { createPublicClient, type Hex } from "viem";
import { rpcTransport } from "../../chain/transport.js";

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
  /** The chain went back beyond what the indexer can take back: everything has to be read again. */
  onAbandoned(): void;
}

const INTERVAL_MS = 2000;
/** For so long the index may stand still while the chain goes on: far longer than an indexer that works takes. */
const STANDSTILL_MS = 15_000;
/** For so long a row may rest on a block that left the chain, in an index that goes on. */
const ABANDONED_MS = 20_000;
/** Looks in a row that must find another block where the indexer counts one as final. */
const ANCHOR_LOOKS = 2;
const TIMEOUT_MS = 10_000;
const UNDEFINED_TABLE = "42P01";
/** The warning on all connections where one of Postgres's processes crashed: it stays, what was not on disk does not. */
const CRASH_SHUTDOWN = "57P02";

/**
 * Looks every two seconds until stopped; a database or node that does not answer proves nothing, and neither does an
 * index that is still catching up. Tells each thing once.
 */
export function watchIndex(options: IndexWatchOptions): IndexWatch {
  const { databaseUrl, schema, rpcUrl, onDatabaseRestarted, onStandstill, onAbandoned } = options;
  const publicClient = createPublicClient({ transport: rpcTransport(rpcUrl, { retryCount: 0 }) });
  let startedAt: string | undefined;
  let client: pg.Client | undefined;
  let standing: { checkpoint: string; since: number; head: bigint } | undefined;
  /** Whether the index went on, or was catching up, since it was last started: one that starts does neither. */
  let hasMoved = false;
  let gone: Gone | undefined;
  /** The newest block that the indexer counts as final, as the node showed it, and looks in a row that found another. */
  let anchor: (Place & { misses: number }) | undefined;
  /** The index that was told to be abandoned: it is told of once. */
  let abandoned: string | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  /** A node that does not have the block says nothing about it. */
  const blockAt = (blockNumber: bigint) => publicClient.getBlock({ blockNumber }).catch(() => null);

  /** Whether the chain has another block where the indexer, which takes nothing back there, relies on one. */
  const hasLostAnchor = async (finalBlock: bigint | undefined): Promise<boolean> => {
    if (anchor !== undefined) {
      const block = await blockAt(anchor.number);
      if (block === null) return false;
      anchor.misses = block.hash === anchor.hash ? 0 : anchor.misses + 1;
      if (anchor.misses > 0) return anchor.misses >= ANCHOR_LOOKS;
    }
    if (finalBlock === undefined || finalBlock === anchor?.number) return false;
    const block = await blockAt(finalBlock);
    if (block !== null) anchor = { number: finalBlock, hash: block.hash, misses: 0 };
    return false;
  };

  const abandon = (index: string): void => {
    abandoned = index;
    gone = undefined;
    anchor = undefined;
    standing = undefined;
    hasMoved = false;
    onAbandoned();
  };

  const look = async (): Promise<void> => {
    client ??= await connect(databaseUrl, {
      onCrash: onDatabaseRestarted,
      onBroken(broken) {
        if (client === broken) client = undefined;
      },
    });
    const { index, newest, progress, hasGone, finalBlock, ...seen } = await readDatabase(
      client,
      schema,
      gone,
    );
    if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();
    startedAt = seen.startedAt;
    if (index === undefined || index === abandoned) return;
    abandoned = undefined;
    if (await hasLostAnchor(finalBlock)) return abandon(index);

    const now = performance.now();
    // A row that was found to be gone is remembered: newer ones of the chain as it is now would hide it.
    if (!hasGone) gone = undefined;
    const suspect = gone ?? newest;
    const block = suspect && (await blockAt(suspect.number));
    if (suspect && block) {
      if (block.hash === suspect.hash) gone = undefined;
      else gone ??= { ...suspect, since: now, checkpoint: progress?.checkpoint };
    }
    const hasPassed = gone?.checkpoint !== progress?.checkpoint && now - (gone?.since ?? now) >= ABANDONED_MS;
    // A start takes all back that Ponder can take back, in the transaction that says that it is catching up.
    if (gone !== undefined && (progress === undefined || hasPassed)) return abandon(index);
    if (progress === undefined) {
      hasMoved = true;
      standing = undefined;
      return;
    }

    const { checkpoint } = progress;
    const head = await publicClient.getBlockNumber({ cacheTime: 0 });
    if (standing !== undefined && standing.checkpoint !== checkpoint) hasMoved = true;
    if (standing?.checkpoint !== checkpoint || (head <= progress.block && gone === undefined)) {
      standing = { checkpoint, since: now, head };
    }
    // A chain that makes no blocks gives the index nothing to move for.
    if (head <= standing.head && gone === undefined) standing.since = now;

    if (hasMoved && now - standing.since >= STANDSTILL_MS) {
      hasMoved = false;
      onStandstill();
    }
  };
  const watch = async (): Promise<void> => {
    await look().catch(() => {
      standing = undefined;
      // What broke in the middle of a question is not asked another one.
      void client?.end().catch(() => {});
      client = undefined;
    });
    if (stopped) void client?.end().catch(() => {});
    else timer = setTimeout(watch, INTERVAL_MS).unref();
  };
  timer = setTimeout(watch, 0).unref();

  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
      void client?.end().catch(() => {});
    },
  };
}

/** Drops what was indexed, and the chain's data that Ponder keeps: both rest on blocks that are gone. */
export async function dropIndex(databaseUrl: string, schema: string): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: TIMEOUT_MS,
    application_name: "index-watch",
  });
  client.on("error", () => {});
  await client.connect();
  try {
    for (const name of [schema, "ponder_sync"]) {
      await client.query(`drop schema if exists ${pg.escapeIdentifier(name)} cascade`);
    }
  } finally {
    await client.end().catch(() => {});
  }
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
}

interface Seen {
  startedAt: string;
  /** Which index there is: another one after it was dropped and filled again. */
  index: string | undefined;
  /** The newest block that the indexer counts as final. */
  finalBlock: bigint | undefined;
  /** How far the index is; undefined while it is catching up, or empty. */
  progress: { checkpoint: string; block: bigint } | undefined;
  /** Where the newest row's event stands. */
  newest: Place | undefined;
  hasGone: boolean;
}

async function readDatabase(client: pg.Client, schema: string, gone: Place | undefined): Promise<Seen> {
  const table = (name: string): string => `${pg.escapeIdentifier(schema)}.${name}`;
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
  const server = await read<{ at: string; index: string | null }>(
    "select pg_postmaster_start_time()::text as at, to_regclass($1)::oid::text as index",
    [table("_ponder_meta")],
  );
  const progress = await read<{ checkpoint: string; block: string }>(
    `select latest_checkpoint as checkpoint, ${blockOf("latest_checkpoint")} as block
    from ${table("_ponder_meta")}, ${table("_ponder_checkpoint")} where key = 'app' and value ->> 'is_ready' = '1'`,
  );
  const final = await read<{ block: string }>(
    `select ${blockOf("finalized_checkpoint")} as block from ${table("_ponder_checkpoint")}`,
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
    index: server?.index ?? undefined,
    hasGone: stillGone !== undefined,
    startedAt: server?.at ?? "",
    finalBlock: final && BigInt(final.block),
    progress: progress && { ...progress, block: BigInt(progress.block) },
    newest: newest && { number: BigInt(newest.number), hash: newest.hash },
  };
}

/** SQL: the block of one of Ponder's checkpoints. */
function blockOf(checkpoint: "latest_checkpoint" | "finalized_checkpoint"): string {
  return `substring(${checkpoint} from 27 for 16)`;
}

/** One connection for all looks: only one that is open hears of a crash. */
async function connect(
  databaseUrl: string,
  { onCrash, onBroken }: { onCrash(): void; onBroken(client: pg.Client): void },
): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
    application_name: "index-watch",
  });
  client.on("notice", ({ code }) => {
    if (code === CRASH_SHUTDOWN) onCrash();
  });
  client.on("error", () => onBroken(client));
  await client.connect();
  return client;
}
