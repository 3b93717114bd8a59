/** GET /v1/contracts: filters of docs/rules.md 56, newest first, paged by keyset. */

import { STATUS_GROUPS, STATUSES, type Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, desc, eq, gte, ilike, inArray, isNotNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { Database, Executor } from "../../db/client.js";
import { requireIndex } from "../../db/index-position.js";
import { vote, workingContract as w } from "../../db/onchain.js";
import { terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { createSlots } from "../../slots.js";
import { partitionsOf, statusSql } from "./status-sql.js";
import { type ContractRow, type ContractView, selectContracts, toContract } from "./view.js";

const SORT_COLUMNS = {
  createdAt: w.createdAt,
  budgetOrPrice: w.price,
  matchDeadline: w.matchDeadline,
  deliveryDeadline: w.deliveryDeadline,
  reviewDeadline: w.reviewDeadline,
} as const;

type SortField = keyof typeof SORT_COLUMNS;
export type Sort = SortField | `-${SortField}`;

/** `-` means descending. */
export const SORTS = Object.keys(SORT_COLUMNS).flatMap((field) => [field, `-${field}`]) as [Sort, ...Sort[]];

export interface ContractFilter {
  client?: Address | undefined;
  worker?: Address | undefined;
  initiator?: "client" | "worker" | undefined;
  statuses?: readonly Status[] | undefined;
  awardMethod?: "direct_award" | "open_tender" | undefined;
  application?: string | undefined;
  /** Base units. */
  minPrice?: bigint | undefined;
  maxPrice?: bigint | undefined;
  backupAgent?: Address | undefined;
  /** Text to find in title or description, in any letter case. */
  q?: string | undefined;
  sort: Sort;
  limit: number;
  cursor?: string | undefined;
}

export interface ContractPage {
  data: ContractView[];
  nextCursor: string | null;
}

/** One page of contracts. Throws `invalid_request` if the cursor is not from this sort order. */
export async function listContracts(
  deps: Pick<Deps, "db" | "clock">,
  filter: ContractFilter,
): Promise<ContractPage> {
  const now = deps.clock.now();
  const descending = filter.sort.startsWith("-");
  const field = filter.sort.replace(/^-/, "") as SortField;
  const column = SORT_COLUMNS[field];
  const direction = descending ? desc : asc;

  // Indexes keep nulls, of unpaid escrows, before the newest; this condition skips them.
  const where = and(isNotNull(column), filterSql(filter, now), afterCursor(filter, column, descending));
  const order = [direction(column), direction(w.id)];
  const limit = filter.limit + 1;
  const select = (db: Executor) =>
    selectContracts(
      db,
      isWalkedByPhase(filter)
        ? firstOfEachPartition(filter.statuses ?? STATUSES, { where, order, limit })
        : where,
    )
      .orderBy(...order)
      .limit(limit);
  const rows = filter.q === undefined ? await select(deps.db) : await search(deps.db, select);

  await requireIndex(deps.db, rows);
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  const more = last !== undefined && rows.length > page.length;
  return {
    data: page.map((row) => toContract(row, now)),
    nextCursor: more ? encodeCursor(filter.sort, String(sortKey(last, field)), last.chain.id) : null,
  };
}

/** Texts that the trigram index cannot narrow down are scanned, so few searches run at once, with a time limit. */
const SEARCHES_AT_ONCE = 2;
const MAX_WAITING_SEARCHES = 20;
const SEARCH_TIMEOUT_MS = 3_000;
const searching = createSlots(SEARCHES_AT_ONCE, {
  maxWaiting: MAX_WAITING_SEARCHES,
  refuse() {
    throw new AppError("unavailable", {
      message: "Too many concurrent searches; retry later.",
      retryable: true,
      retryAfterSeconds: 5,
    });
  },
});

function search<T>(db: Database, select: (db: Executor) => Promise<T>): Promise<T> {
  return searching(() =>
    db.transaction(async (tx) => {
      await tx.execute(sql`select set_config('statement_timeout', ${String(SEARCH_TIMEOUT_MS)}, true)`);
      return select(tx);
    }),
  );
}

/** Whether no index has the order of the list: a party's contracts and text matches are few enough to sort. */
function isWalkedByPhase({ sort, statuses, client, worker, backupAgent, q }: ContractFilter): boolean {
  const isNarrow = [client, worker, backupAgent, q].some((value) => value !== undefined);
  return !isNarrow && (statuses !== undefined || !sort.endsWith("createdAt"));
}

/** The page is among the first rows of each partition, in index order. */
function firstOfEachPartition(
  statuses: readonly Status[],
  { where, order, limit }: { where: SQL | undefined; order: SQL[]; limit: number },
): SQL {
  const firsts = partitionsOf(statuses).map(
    ({ phase, settled }) => sql`(
      select ${w.id} from ${w} join ${terms} on ${terms.id} = ${w.id}
      where ${and(eq(w.phase, phase), eq(w.settled, settled), where)}
      order by ${sql.join(order, sql`, `)} limit ${limit}
    )`,
  );
  return inArray(w.id, sql`(${sql.join(firsts, sql` union all `)})`);
}

/**
 * Statuses named by a filter value: a list of statuses, prefixes (`settled-*`) and groups (`open`, `active`,
 * `closed`), joined by commas. Null if one of them is unknown.
 */
export function parseStatuses(text: string): Status[] | null {
  const named = text.split(",").map((word) => statusesOf(word.trim()));
  return named.some((statuses) => statuses.length === 0) ? null : [...new Set(named.flat())];
}

function statusesOf(word: string): readonly Status[] {
  if (Object.hasOwn(STATUS_GROUPS, word)) return STATUS_GROUPS[word as keyof typeof STATUS_GROUPS];
  if (word.endsWith("*")) return STATUSES.filter((status) => status.startsWith(word.slice(0, -1)));
  return STATUSES.filter((status) => status === word);
}

function filterSql(filter: ContractFilter, now: number): SQL | undefined {
  const {
    client,
    worker,
    initiator,
    statuses,
    awardMethod,
    application,
    minPrice,
    maxPrice,
    backupAgent,
    q,
  } = filter;
  const pattern = q === undefined ? "" : `%${q.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return and(
    client && eq(w.client, client),
    worker && eq(w.worker, worker),
    initiator && eq(w.workerInitiated, initiator === "worker"),
    statuses && hasStatus(statuses, now),
    awardMethod && eq(terms.awardMethod, awardMethod),
    application === undefined ? undefined : eq(terms.application, application),
    minPrice === undefined ? undefined : gte(w.price, minPrice),
    maxPrice === undefined ? undefined : lte(w.price, maxPrice),
    backupAgent && hasBackupAgent(backupAgent),
    q === undefined ? undefined : or(ilike(terms.title, pattern), ilike(terms.taskDescription, pattern)),
  );
}

/** Postgres estimates that a comparison keeps 1 row in 200, and then prefers to sort; for a case it estimates half. */
function hasStatus(statuses: readonly Status[], now: number): SQL {
  return sql`case when ${inArray(statusSql(now), [...statuses])} then true else false end`;
}

function hasBackupAgent(agent: Address): SQL {
  return sql`exists (select 1 from ${vote} where ${vote.contractId} = ${w.id} and ${vote.backupAgent} = ${agent})`;
}

function afterCursor(
  { sort, cursor }: ContractFilter,
  column: (typeof SORT_COLUMNS)[SortField],
  descending: boolean,
): SQL | undefined {
  if (cursor === undefined) return undefined;
  const after = decodeCursor(sort, cursor);
  return descending
    ? sql`(${column}, ${w.id}) < (${after.key}::numeric, ${after.id})`
    : sql`(${column}, ${w.id}) > (${after.key}::numeric, ${after.id})`;
}

function sortKey({ chain }: ContractRow, field: SortField): bigint | null {
  return field === "budgetOrPrice" ? chain.price : chain[field];
}

/** Opaque to callers; contains the sort order, so it cannot be used with another one. */
function encodeCursor(sort: Sort, key: string, id: string): string {
  return Buffer.from(JSON.stringify([sort, key, id])).toString("base64url");
}

function decodeCursor(sort: Sort, cursor: string): { key: string; id: string } {
  try {
    const [cursorSort, key, id, ...rest] = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    // In a regular expression, an array of one string would match like that string.
    const isKey = typeof key === "string" && /^\d{1,78}$/.test(key);
    const isId = typeof id === "string" && /^0x[0-9a-f]{40}$/.test(id);
    if (cursorSort === sort && isKey && isId && rest.length === 0) return { key, id };
  } catch {
    // Refused below.
  }
  throw new AppError("invalid_request", {
    message: "cursor: is not a nextCursor of this list and sort order; restart without a cursor",
    details: [{ path: "cursor", message: "is not a nextCursor of this list and sort order" }],
  });
}
