/** Search in titles and descriptions by whole words: the words of a text, and the SQL that matches them. */
import { type SQL, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { terms } from "../../db/schema.js";
import { prepare } from "../../db/statements.js";

/** Scripts written without spaces: each letter counts as a word. */
const UNSPACED = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"]
  .map((script) => `\\p{Script=${script}}`)
  .join("");
/** A letter of those scripts, a symbol such as $ or an emoji, or a run of other letters and digits. */
const WORD = new RegExp(`[${UNSPACED}\\p{S}]|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`, "gu");
/** Composing more marks on one letter takes quadratic time. The limit is that of stream-safe text (UAX #15). */
const TOO_MANY_MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;
/** Of a longer word only its beginning counts. Postgres stores at most 2,046 bytes. */
const MAX_WORD_LENGTH = 64;
/** Of a longer text only its beginning is found. This bounds what one contract costs the index. */
const MAX_WORDS = 4_096;

/** The distinct words of a text, in any letter case and Unicode form. Punctuation separates words. */
export function wordsOf(text: string): string[] {
  const words = new Set<string>();
  const composed = text.replace(TOO_MANY_MARKS, "$1").normalize("NFKC");
  for (const [word] of composed.toLowerCase().matchAll(WORD)) {
    words.add(word.length <= MAX_WORD_LENGTH ? word : [...word].slice(0, MAX_WORD_LENGTH).join(""));
    if (words.size === MAX_WORDS) break;
  }
  return [...words];
}

/** SQL: the column's value for a placeholder of {@link wordsOf}. */
export const toWords = (words: SQL | unknown): SQL => sql`array_to_tsvector(${words}::text[])`;

/** The value of the placeholder `words` in a match. A word has no quotation marks, so none has to be escaped. */
export const toQuery = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(" & ");

const matches = sql`${terms.words} @@ ${sql.placeholder("words")}::tsquery`;
/** SQL condition for rare words: the matches come from the index. `offset 0` keeps the planner from reordering it. */
export const isAmongMatches = (id: SQL | unknown) =>
  sql`${id} in (select ${terms.id} from ${terms} where ${matches} offset 0)`;
/** SQL condition for common words: checks rows in the list's order until the page is full. The `case` keeps Postgres from using the index. */
export const hasWords = sql`case when ${matches} then true else false end`;

/** Whether the list in its order costs less than all matches of the words: page / p rows, not p * n, for a share p of n texts. */
export async function areCommon(db: Executor, words: readonly string[], page: number): Promise<boolean> {
  const { texts, shares } = await statisticsOf(db);
  const share = words.reduce((product, word) => product * (shares.get(word) ?? 0), 1);
  return share * share * texts > page;
}

interface Statistics {
  texts: number;
  /** The share of texts that have a word, for the most common words. */
  shares: ReadonlyMap<string, number>;
}

/** What Postgres found when it last analyzed the table; nothing before that. */
const readStatistics = prepare<{ texts: number; words: string[] | null; shares: number[] | null }>(
  "search_statistics",
  sql`
    select c.reltuples as texts, s.most_common_elems::text::text[] as words, s.most_common_elem_freqs as shares
    from pg_class c
    left join pg_stats s on s.schemaname = 'app' and s.tablename = 'terms' and s.attname = 'words'
    where c.oid = 'app.terms'::regclass`,
);

const STATISTICS_AGE_MS = 60_000;
const cached = new WeakMap<Executor, { at: number; statistics: Promise<Statistics> }>();

function statisticsOf(db: Executor): Promise<Statistics> {
  const found = cached.get(db);
  if (found !== undefined && performance.now() - found.at < STATISTICS_AGE_MS) return found.statistics;
  const statistics = readStatistics(db, {}).then(([row]) => ({
    texts: row?.texts ?? 0,
    shares: new Map(row?.words?.map((word, i) => [word, row.shares?.[i] ?? 0])),
  }));
  cached.set(db, { at: performance.now(), statistics });
  statistics.catch(() => cached.delete(db));
  return statistics;
}
