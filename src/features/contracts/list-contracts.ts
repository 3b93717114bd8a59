/** GET /v1/contracts: filters of docs/rules.md 56, newest first, paged by keyset. */
import { z } from "@hono/zod-openapi";
import { priceBand } from "@working-contracts/protocol/amounts";
import { STATUS_GROUPS, STATUSES, type Status } from "@working-contracts/protocol/status";
import { and, eq, gte, isNotNull, lte, ne, type SQL, sql } from "drizzle-orm";
import { type IndexReader, requireIndex, vote, workingContract as w } from "../../db/onchain.js";
import { terms } from "../../db/schema.js";
import { prepareShapes, sizeOf } from "../../db/statements.js";
import { inReadQueue } from "../../http/read-queue.js";
import { decodeCursor, encodeCursor, type Page } from "../../http/schemas.js";
import type { Reader } from "../../scheduling.js";
import type { ListQuerySchema } from "./schema.js";
import { areCommon, hasWords, isAmongMatches, toQuery, wordsOf } from "./text-search.js";
import {
  type ContractView,
  partitionsOf,
  type ShownRow,
  shownContracts,
  statusSql,
  toContract,
} from "./view.js";

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

export type ContractFilter = z.output<typeof ListQuerySchema>;

/** Contracts that a page looks at, in the list's order, over all its walks. Strangers' escrows and rows that a filter drops count too. */
export const WALK = 20_000;

/** A range of prices that needs more walks than this is searched in all prices. */
const MAX_BAND_WALKS = 8;

/** A page ends with the contract that brings its texts to this length (bytes); the next continues behind it. */
export const PAGE_LENGTH = 1024 * 1024;

/** A contract of the page, or the last that the page looked at, whose columns can be null. */
type WalkedRow = ShownRow & { walkedKey: string; walkedId: string; matched: boolean | null; ended: boolean };

const value = sql.placeholder;
/**
 * In a subquery, the planner does not estimate with the value. A plan for one value would look cheaper than the kept one,
 * and Postgres would plan each call again, which takes longer than the read.
 */
const unseen = (name: "firstBand" | "minPrice" | "maxPrice"): SQL =>
  sql`(select ${value(name)}::${sql.raw(name === "firstBand" ? "int" : "numeric")})`;
const statementOf = prepareShapes<WalkedRow>("contract_list");

/**
 * One page of contracts. Throws `invalid_request` for a cursor of another order. `reader` is whose turn a long read takes;
 * null if the whole read has one.
 */
export async function listContracts(
  deps: IndexReader,
  filter: ContractFilter,
  reader: Reader | null,
): Promise<Page<ContractView>> {
  const words = filter.q === undefined ? null : wordsOf(filter.q);
  if (words?.length === 0) return { data: [], nextCursor: null };
  const now = deps.clock.now();
  const { sort, limit, status, cursor, q: _, ...values } = filter;
  const sized = { ...filter, limit: sizeOf(limit) };
  const after =
    cursor === undefined ? undefined : decodeCursor(CursorSchema, cursor, (of) => of.sort === sort);
  const search = words && ((await areCommon(deps.db, words, limit)) ? "common" : "rare");
  const named = Object.entries({ ...values, after })
    .filter(([, member]) => member !== undefined)
    .map(([name]) => name);
  const bands = bandsOf({ ...filter, search });

  const shape = JSON.stringify([sort, sized.limit, status ?? null, search, named, bands.length]);
  const { run, isKept } = statementOf(shape, () => listSql({ ...sized, search }, bands));
  const read = () =>
    run(deps.db, {
      ...values,
      workerInitiated: filter.initiator === "worker",
      status,
      firstBand: bands[0],
      now,
      words: words && toQuery(words),
      key: after?.key,
      id: after?.id,
    });
  const isShort = words === null && isKept && !isLong(filter);
  const rows = reader === null || isShort ? await read() : await inReadQueue(reader, read);

  // The page ends at the first row that is a walk's last: behind it that walk's rows are missing.
  const end = rows.findIndex((row) => row.ended);
  const page = rows.slice(0, Math.min(limit, end < 0 ? limit : end + 1));
  const shown = page.filter(({ matched }) => matched === true);
  await requireIndex(deps, shown);
  const last = page.at(-1);
  const more = last !== undefined && (rows.length > page.length || last.ended);
  return {
    data: shown.map((row) => toContract(row, now)),
    nextCursor: more ? encodeCursor([sort, last.walkedKey, last.walkedId]) : null,
  };
}

/** How a search finds its words: see {@link areCommon}. Null without a search. */
type Search = "common" | "rare" | null;
type ListQuery = ContractFilter & { search: Search };

function listSql(filter: ListQuery, bands: readonly number[]): { text: SQL; weight: number } {
  const direction = isDescending(filter.sort) ? sql`desc` : sql`asc`;
  const walks = walksOf(filter, bands);
  const rows = Math.ceil(WALK / walks.length);
  const pages = walks.map((walk) => sql`(${firstOf({ where: walk, rows }, filter, direction)})`);
  const order = sql`page.key ${direction}, page.id ${direction}`;
  const rowsOfPage = sql`
    select page.key as "walkedKey", page.id as "walkedId", page.matched, page.ended as "walkEnded", shown.*,
      coalesce(shown.length, 0) as added,
      coalesce(sum(shown.length) over (order by ${order} rows unbounded preceding), 0) as total
    from (${sql.join(pages, sql` union all `)}) page
    left join lateral (${shownContracts(eq(w.id, sql`page.id`))}) shown on page.matched
    order by ${order} limit ${filter.limit + 1}`;
  const text = sql`
    select listed.*, listed."walkEnded" or listed.total >= ${PAGE_LENGTH} as ended from (${rowsOfPage}) listed
    where listed.total - listed.added < ${PAGE_LENGTH}
    order by listed."walkedKey" ${direction}, listed."walkedId" ${direction}`;
  return { text, weight: walks.length };
}

/** The first rows of a walk that pass the filter, and the row at which it ended, if it did. */
function firstOf(walk: { where: SQL | undefined; rows: number }, filter: ListQuery, direction: SQL): SQL {
  const column = SORT_COLUMNS[fieldOf(filter.sort)];
  const order = sql`${column} ${direction}, ${w.id} ${direction}`;
  // Indexes keep nulls, of unpaid escrows, before the newest; this condition skips them.
  const where = and(isNotNull(column), walk.where, afterCursor(filter, column));
  const isLast = sql`walked.position = ${walk.rows}`;
  const priced = priceSql(filter);
  const filtered = given(filter, "initiator", "status", "awardMethod", "application");
  const words = filter.search === "common" ? hasWords : undefined;
  const matched = sql`(${and(priced, isNotNull(terms.id), ne(w.phase, "none"), filtered, words)})`;
  // In a subquery, a limit is unknown to the planner: it expects a tenth of the rows, and then does not sort all of them.
  // The price is also a separate condition: it is known before the joins, which then read fewer rows.
  return sql`select ${w.id} as id, walked.key, ${matched} as matched, ${isLast} as ended
    from (select ${w.id} as id, ${w.price} as price, ${column} as key, row_number() over (order by ${order}) as position
      from ${w} where ${where} order by ${order} limit (select ${walk.rows})) walked
    join ${w} on ${w.id} = walked.id left join ${terms} on ${terms.id} = walked.id
    where ((${priced}) or ${isLast}) and (${matched} or ${isLast})
    order by walked.key ${direction}, walked.id ${direction} limit ${filter.limit + 1}`;
}

/** The conditions that an index answers together with the order of the list: one walk for each partition, or one alone. */
function walksOf(filter: ListQuery, bands: readonly number[]): (SQL | undefined)[] {
  const { status, search, sort } = filter;
  const walk = and(
    given(filter, "client", "worker", "backupAgent"),
    search === "rare" ? isAmongMatches(w.id) : undefined,
    fieldOf(sort) === "budgetOrPrice" ? given(filter, "minPrice", "maxPrice") : undefined,
  );
  if (!isWalkedByPhase(filter)) return [walk];
  const partitions = partitionsOf(status ?? STATUSES).map(({ phase, settled }) =>
    and(eq(w.phase, phase), eq(w.settled, settled), walk),
  );
  if (bands.length === 0) return partitions;
  return bands.flatMap((_, i) =>
    partitions.map((partition) => and(eq(w.priceBand, sql`${unseen("firstBand")} + ${i}`), partition)),
  );
}

/** The price bands that a list by creation walks; empty if the range has no end or touches too many. */
function bandsOf(filter: ListQuery): number[] {
  const { sort, status, minPrice = 0n, maxPrice } = filter;
  if (fieldOf(sort) !== "createdAt" || maxPrice === undefined || !isWalkedByPhase(filter)) return [];
  const first = priceBand(minPrice);
  const count = priceBand(maxPrice) - first + 1;
  if (count * partitionsOf(status ?? STATUSES).length > MAX_BAND_WALKS) return [];
  return Array.from({ length: Math.max(0, count) }, (_, i) => first + i);
}

const isDescending = (sort: Sort): boolean => sort.startsWith("-");
const fieldOf = (sort: Sort): SortField => sort.replace(/^-/, "") as SortField;

/**
 * Whether each phase is walked on its own: the index of this order begins with the phase. A party's contracts and rare
 * words are few enough to sort.
 */
function isWalkedByPhase(filter: ListQuery): boolean {
  const { sort, status, client, worker, backupAgent, search } = filter;
  const isNarrow = search === "rare" || [client, worker, backupAgent].some((one) => one !== undefined);
  return !isNarrow && (status !== undefined || !sort.endsWith("createdAt"));
}

/**
 * Whether no index has the list's order, so that all contracts of its party or voter are read, or its filter, so that it
 * walks past contracts that the filter drops.
 */
function isLong({ sort, client, worker, backupAgent, status, ...filter }: ContractFilter): boolean {
  if (backupAgent !== undefined) return true;
  if ((filter.awardMethod ?? filter.application ?? filter.initiator) !== undefined) return true;
  const isPriced = (filter.minPrice ?? filter.maxPrice) !== undefined;
  if ((client ?? worker) === undefined)
    return isRare(status ?? []) || (isPriced && sort.endsWith("Deadline"));
  const hasBoth = client !== undefined && worker !== undefined;
  return hasBoth || fieldOf(sort) !== "createdAt" || status !== undefined || isPriced;
}

const SETTLED = STATUSES.filter((status) => status.startsWith("settled-"));
/** By status that can be rare in its partitions: the statuses of most rows there, which a list of it walks past. */
const BESIDE: Partial<Record<Status, readonly Status[]>> = {
  resolved: ["under-review"],
  "settled-all-met": SETTLED,
  "settled-none-met": SETTLED,
  "settled-partial": SETTLED,
  "cancelled-unmatched": ["created"],
  "cancelled-absent": ["matched"],
};

/** A list of all closed contracts walks so many partitions in full that it drops few rows. */
function isRare(statuses: readonly Status[]): boolean {
  const lacks = (status: Status): boolean => !statuses.includes(status);
  return STATUS_GROUPS.closed.some(lacks) && statuses.some((status) => BESIDE[status]?.some(lacks));
}

/** Statuses named by a filter: statuses, prefixes (`settled-*`) and groups, joined by commas. Null if one is unknown. */
export function parseStatuses(text: string): Status[] | null {
  const named = text.split(",").map((word) => statusesOf(word.trim()));
  if (named.some((statuses) => statuses.length === 0)) return null;
  // In one order, so that each set of them is one list.
  const asked = new Set(named.flat());
  return STATUSES.filter((status) => asked.has(status));
}

function statusesOf(word: string): readonly Status[] {
  if (Object.hasOwn(STATUS_GROUPS, word)) return STATUS_GROUPS[word as keyof typeof STATUS_GROUPS];
  if (word.endsWith("*")) return STATUSES.filter((status) => status.startsWith(word.slice(0, -1)));
  return STATUSES.filter((status) => status === word);
}

/** SQL by filter. */
const CONDITIONS = {
  client: eq(w.client, value("client")),
  worker: eq(w.worker, value("worker")),
  backupAgent: sql`exists (
    select 1 from ${vote} where ${vote.contractId} = ${w.id} and ${vote.backupAgent} = ${value("backupAgent")})`,
  minPrice: gte(w.price, value("minPrice")),
  maxPrice: lte(w.price, value("maxPrice")),
  initiator: eq(w.workerInitiated, value("workerInitiated")),
  // Postgres estimates that a comparison keeps 1 row in 200, and then prefers to sort; for a case it estimates half.
  status: sql`case when ${statusSql(value("now"))} = any(${value("status")}::text[]) then true else false end`,
  awardMethod: eq(terms.awardMethod, value("awardMethod")),
  application: eq(terms.application, value("application")),
};

const given = (filter: ContractFilter, ...names: (keyof typeof CONDITIONS)[]): SQL | undefined =>
  and(...names.map((name) => (filter[name] === undefined ? undefined : CONDITIONS[name])));

/** SQL: whether a walked row's price is in the wanted range. */
const priceSql = ({ minPrice, maxPrice }: ContractFilter): SQL | undefined =>
  and(
    sql`true`,
    minPrice === undefined ? undefined : sql`walked.price >= ${unseen("minPrice")}`,
    maxPrice === undefined ? undefined : sql`walked.price <= ${unseen("maxPrice")}`,
  );

function afterCursor(
  { sort, cursor }: ContractFilter,
  column: (typeof SORT_COLUMNS)[SortField],
): SQL | undefined {
  if (cursor === undefined) return undefined;
  const position = sql`(${value("key")}::numeric, ${value("id")})`;
  return isDescending(sort)
    ? sql`(${column}, ${w.id}) < ${position}`
    : sql`(${column}, ${w.id}) > ${position}`;
}

/** Contains the sort order, so it cannot be used with another one. */
const CursorSchema = z
  .tuple([z.enum(SORTS), z.string().regex(/^\d{1,78}$/), z.string().regex(/^0x[0-9a-f]{40}$/)])
  .transform(([sort, key, id]) => ({ sort, key, id }));
