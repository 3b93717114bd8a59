/**
 * Detects what Ponder does not. Ponder commits without waiting for the disk, so indexed blocks can be missing after a
 * Postgres crash. And if a reorg goes deeper than its finality, Ponder stalls but still reports ready.
 */
import pg from "pg";
import { createPublicClient, type Hex } from "viem";
import { rpcTransport } from "../../chain/clients.js";
import { hasSqlState, SQLSTATE } from "../../db/client.js";
import { blockOf } from "../../db/onchain.js";

interface IndexWatchOptions {
  databaseUrl: string;
  /** The indexer's schema: the views in `onchain` can still point at the previous release. */
  schema: string;
  rpcUrl: string;
  /** The database restarted: the indexer must restart too, and resume from its safe checkpoint. */
  onDatabaseRestarted(): void;
  /** The chain advanced and the index did not: the indexer must restart. */
  onStandstill(): void;
  /** A reorg went deeper than the indexer can undo: everything must be indexed from scratch, and this index dropped. */
  onAbandoned(index: string): void;
}

const INTERVAL_MS = 2000;
/** Maximum index stall while the chain advances: far longer than a healthy indexer needs. */
const STANDSTILL_MS = 15_000;
/** Maximum time for which an advancing index can keep a row of a block that left the chain. */
const ABANDONED_MS = 20_000;
/** Consecutive looks that must find a different block at a height that the indexer counts as final. */
const ANCHOR_LOOKS = 2;
const TIMEOUT_MS = 10_000;

/**
 * Checks every two seconds until stopped, and reports each incident once. An unreachable database or node proves
 * nothing, and neither does an index that is still catching up.
 */
export function watchIndex(options: IndexWatchOptions): { stop(): void } {
  const { databaseUrl, schema, rpcUrl, onDatabaseRestarted, onStandstill, onAbandoned } = options;
  const publicClient = createPublicClient({
    transport: rpcTransport(rpcUrl, { retryCount: 0, batch: true }),
  });
  let startedAt: string | undefined;
  let client: pg.Client | undefined;
  let standing: { checkpoint: string; since: number; head: bigint } | undefined;
  /** Whether the index has advanced, or was catching up, since its last start: a starting indexer does neither. */
  let hasMoved = false;
  let indexed = 0n;
  let gone: Gone | undefined;
  /** The newest block that the indexer counts as final, as the node had it, and consecutive looks that found another. */
  let anchor: (BlockRef & { misses: number }) | undefined;
  /** The index last reported as abandoned, so that it is reported once. */
  let abandoned: string | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  /** Null if the node lacks the block or is behind the index, which proves nothing. One request, to reach one node. */
  const blockAt = (blockNumber: bigint) =>
    Promise.all([publicClient.getBlock({ blockNumber }), publicClient.getBlockNumber({ cacheTime: 0 })]).then(
      ([block, head]) => (head < indexed ? null : block),
      () => null,
    );

  /** Whether the chain has a different block at a height that the indexer counts as final and cannot undo. */
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
    onAbandoned(index);
  };

  /** One connection for all looks: only an open connection receives the crash warning. */
  const connect = async (): Promise<pg.Client> => {
    const timeouts = { connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS };
    const opened = new pg.Client({
      connectionString: databaseUrl,
      ...timeouts,
      application_name: "index-watch",
    });
    opened.on("notice", ({ code }) => code === SQLSTATE.crashShutdown && onDatabaseRestarted());
    opened.on("error", () => {
      if (client === opened) client = undefined;
    });
    await opened.connect();
    return opened;
  };

  const look = async (): Promise<void> => {
    client ??= await connect();
    const { index, newest, progress, hasGone, finalBlock, ...seen } = await readDatabase(
      client,
      schema,
      gone,
    );
    indexed = seen.indexed;
    if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();
    startedAt = seen.startedAt;
    if (index === undefined || index === abandoned) return;
    abandoned = undefined;
    if (await hasLostAnchor(finalBlock)) return abandon(index);

    const now = performance.now();
    // Remember a row whose block is gone: newer rows of the current chain would hide it.
    if (!hasGone) gone = undefined;
    const suspect = gone ?? newest;
    const block = suspect && (await blockAt(suspect.number));
    if (suspect && block) {
      if (block.hash === suspect.hash) gone = undefined;
      else gone ??= { ...suspect, since: now, checkpoint: progress?.checkpoint };
    }
    const hasPassed = gone?.checkpoint !== progress?.checkpoint && now - (gone?.since ?? now) >= ABANDONED_MS;
    // When Ponder starts, it undoes all it can in the same transaction that marks it as catching up.
    if (gone !== undefined && block && (progress === undefined || hasPassed)) return abandon(index);
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
    // Without new blocks, the index has no reason to advance.
    if (head <= standing.head && gone === undefined) standing.since = now;

    if (hasMoved && now - standing.since >= STANDSTILL_MS) {
      hasMoved = false;
      onStandstill();
    }
  };
  const watch = async (): Promise<void> => {
    await look().catch(() => {
      standing = undefined;
      // Do not reuse a connection that failed during a query.
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

interface BlockRef {
  number: bigint;
  hash: Hex;
}

/** A block with indexed rows that has left the chain. */
interface Gone extends BlockRef {
  /** When that was noticed (`performance.now()`), and the index's checkpoint at that time. */
  since: number;
  checkpoint: string | undefined;
}

async function readDatabase(client: pg.Client, schema: string, gone: BlockRef | undefined) {
  const table = (name: string): string => `${pg.escapeIdentifier(schema)}.${name}`;
  const read = async <Row extends pg.QueryResultRow>(
    query: string,
    values: unknown[] = [],
  ): Promise<Row | undefined> => {
    try {
      return (await client.query<Row>(query, values)).rows[0];
    } catch (error) {
      if (hasSqlState(error, SQLSTATE.undefinedTable)) return undefined;
      throw error;
    }
  };
  const server = await read<{ at: string; index: string | null }>(
    "select pg_postmaster_start_time()::text as at, to_regclass($1)::oid::text as index",
    [table("_ponder_meta")],
  );
  const known = await read<{ checkpoint: string; block: string; final: string; isReady: boolean }>(
    `select latest_checkpoint as checkpoint, ${blockOf("latest_checkpoint")} as block,
      ${blockOf("finalized_checkpoint")} as final, value ->> 'is_ready' = '1' as "isReady"
    from ${table("_ponder_meta")}, ${table("_ponder_checkpoint")} where key = 'app'`,
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
    /** Identifies the index; changes when it is dropped and rebuilt. */
    index: server?.index ?? undefined,
    hasGone: stillGone !== undefined,
    startedAt: server?.at ?? "",
    indexed: BigInt(known?.block ?? 0),
    /** The newest block that the indexer counts as final. */
    finalBlock: known && BigInt(known.final),
    /** Undefined while the index is catching up or empty. */
    progress: known?.isReady ? { checkpoint: known.checkpoint, block: BigInt(known.block) } : undefined,
    newest: newest && { number: BigInt(newest.number), hash: newest.hash },
  };
}
