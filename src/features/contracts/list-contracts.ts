/** GET /v1/contracts: filters of docs/rules.md 56, newest first, paged by keyset. */

import { STATUS_GROUPS, STATUSES, type Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, desc, eq, gte, inArray, isNotNull, lte, type SQL, sql } from "drizzle-orm";
import { requireIndex } from "../../db/index-position.js";
import { vote, workingContract as w } from "../../db/onchain.js";
import { prepareShapes } from "../../db/prepared.js";
import { terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { partitionsOf, statusSql } from "./status-sql.js";
import { areCommon, hasWords, inSearchQueue, isAmongMatches, toQuery, wordsOf } from "./text-search.js";
import { type ContractView, type ShownRow, shownContracts, showRow } from "./view.js";

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
  /** Words that title or description must all have, in any letter case. */
  q?: string | undefined;
  sort: Sort;
  limit: number;
  cursor?: string | undefined;
}

export interface ContractPage {
  data: ContractView[];
  nextCursor: string | null;
}

const value = sql.placeholder;
const statementOf = prepareShapes<ShownRow>("contract_list");

/**
 * One page of contracts. Throws `invalid_request` if the cursor is not from this sort order. `reader` is whose turn a
 * search takes.
 */
export async function listContracts(
  deps: Pick<Deps, "db" | "clock">,
  filter: ContractFilter,
  reader = "",
): Promise<ContractPage> {
  const words = filter.q === undefined ? null : wordsOf(filter.q);
  if (words?.length === 0) return { data: [], nextCursor: null };
  const now = deps.clock.now();
  const { sort, limit, statuses, cursor, q: _, ...equal } = filter;
  const after = cursor === undefined ? undefined : decodeCursor(sort, cursor);
  const search = words && ((await areCommon(deps.db, words, limit)) ? "common" : "rare");
  const given = Object.entries({ ...equal, after })
    .filter(([, member]) => member !== undefined)
    .map(([name]) => name);

  const shape = JSON.stringify([sort, limit, statuses ?? null, search, given]);
  // A narrow price range is read from the index of prices, a wide one in the list's order.
  const replan = filter.minPrice !== undefined || filter.maxPrice !== undefined;
  const statement = statementOf(shape, () => listSql({ ...filter, search }), { replan });
  const read = () =>
    statement(deps.db, {
      ...equal,
      workerInitiated: filter.initiator === "worker",
      statuses,
      now,
      words: words && toQuery(words),
      key: after?.key,
      id: after?.id,
    });
  const rows = words === null ? await read() : await inSearchQueue(reader, read);

  await requireIndex(deps.db, rows);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const more = last !== undefined && rows.length > page.length;
  return {
    data: page.map((row) => showRow(row, now)),
    nextCursor: more ? encodeCursor(sort, String(sortKey(last, fieldOf(sort))), last.id) : null,
  };
}

/** How a search finds its words: see text-search.ts. Null without a search. */
type Search = "common" | "rare" | null;

function listSql(filter: ContractFilter & { search: Search }): SQL {
  const { sort, statuses } = filter;
  const column = SORT_COLUMNS[fieldOf(sort)];
  const direction = isDescending(sort) ? desc : asc;
  // Indexes keep nulls, of unpaid escrows, before the newest; this condition skips them.
  const where = and(isNotNull(column), filterSql(filter), afterCursor(filter, column));
  const order = sql.join([direction(column), direction(w.id)], sql`, `);
  const limit = filter.limit + 1;
  const rows = isWalkedByPhase(filter)
    ? firstOfEachPartition(statuses ?? STATUSES, { where, order, limit })
    : where;
  return sql`${shownContracts(rows)} order by ${order} limit ${limit}`;
}

const isDescending = (sort: Sort): boolean => sort.startsWith("-");
const fieldOf = (sort: Sort): SortField => sort.replace(/^-/, "") as SortField;

/** Whether no index has the order of the list: a party's contracts and rare words are few enough to sort. */
function isWalkedByPhase(filter: ContractFilter & { search: Search }): boolean {
  const { sort, statuses, client, worker, backupAgent, search } = filter;
  const isNarrow = search === "rare" || [client, worker, backupAgent].some((one) => one !== undefined);
  return !isNarrow && (statuses !== undefined || !sort.endsWith("createdAt"));
}

/** The page is among the first rows of each partition, in index order. */
function firstOfEachPartition(
  statuses: readonly Status[],
  { where, order, limit }: { where: SQL | undefined; order: SQL; limit: number },
): SQL {
  const firsts = partitionsOf(statuses).map(
    ({ phase, settled }) => sql`(
      select ${w.id} from ${w} join ${terms} on ${terms.id} = ${w.id}
      where ${and(eq(w.phase, phase), eq(w.settled, settled), where)}
      order by ${order} limit ${limit}
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

function filterSql(filter: ContractFilter & { search: Search }): SQL | undefined {
  const { search } = filter;
  const given = (name: keyof ContractFilter, condition: SQL) =>
    filter[name] === undefined ? undefined : condition;
  return and(
    given("client", eq(w.client, value("client"))),
    given("worker", eq(w.worker, value("worker"))),
    given("initiator", eq(w.workerInitiated, value("workerInitiated"))),
    given("statuses", hasStatus),
    given("awardMethod", eq(terms.awardMethod, value("awardMethod"))),
    given("application", eq(terms.application, value("application"))),
    given("minPrice", gte(w.price, value("minPrice"))),
    given("maxPrice", lte(w.price, value("maxPrice"))),
    given("backupAgent", hasBackupAgent),
    search === "rare" ? isAmongMatches(w.id) : undefined,
    search === "common" ? hasWords : undefined,
  );
}

/** Postgres estimates that a comparison keeps 1 row in 200, and then prefers to sort; for a case it estimates half. */
const hasStatus = sql`case when ${statusSql(value("now"))} = any(${value("statuses")}::text[]) then true else false end`;

const hasBackupAgent = sql`exists (
  select 1 from ${vote} where ${vote.contractId} = ${w.id} and ${vote.backupAgent} = ${value("backupAgent")})`;

function afterCursor(
  { sort, cursor }: ContractFilter,
  column: (typeof SORT_COLUMNS)[SortField],
): SQL | undefined {
  if (cursor === undefined) return undefined;
  const place = sql`(${value("key")}::numeric, ${value("id")})`;
  return isDescending(sort) ? sql`(${column}, ${w.id}) < ${place}` : sql`(${column}, ${w.id}) > ${place}`;
}

function sortKey(row: ShownRow, field: SortField): bigint | string | null {
  return field === "budgetOrPrice" ? row.price : row[field];
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
