/** Reads of one signed-in address. */
import { call, dataOf, type Session } from "./session.js";
import type { ListQuery, VoteQuery } from "./types.js";

export interface Page<T> {
  items: T[];
  /** Cursor of the next page; null on the last page. */
  nextCursor: string | null;
}

export interface PageQuery {
  limit?: number;
  /** `nextCursor` of the page before. */
  cursor?: string;
}

export function reads(session: Session) {
  const me = session.signer.address;

  return {
    get: (id: string) => dataOf(call(session, "GET /v1/contracts/{id}", { path: { id } })),
    /** One page of contracts, newest first unless `sort` says otherwise. */
    list: (query: ListQuery = {}) => pageOf(call(session, "GET /v1/contracts", { query })),
    /** Everything that a contract's address commits to. */
    terms: (id: string) => dataOf(call(session, "GET /v1/contracts/{id}/terms", { path: { id } })),
    /** Each payment of a contract and its state. */
    settlement: (id: string) => dataOf(call(session, "GET /v1/contracts/{id}/settlement", { path: { id } })),
    votes: (query: VoteQuery = {}) => pageOf(call(session, "GET /v1/votes", { query })),
    checkpoints: (id: string) =>
      dataOf(call(session, "GET /v1/contracts/{id}/checkpoints", { path: { id } })),
    /** How a checkpoint is included in the signed root of its contract's log. */
    proveCheckpoint: (id: string, checkpointId: string) =>
      dataOf(
        call(session, "GET /v1/contracts/{id}/checkpoints/{checkpointId}/proof", {
          path: { id, checkpointId },
        }),
      ),
    /** Releases of the keys of a contract's references; for its parties. */
    keyReleases: (id: string, query: PageQuery = {}) =>
      pageOf(call(session, "GET /v1/contracts/{id}/keys/releases", { path: { id }, query })),
    /** Every movement of a contract's money so far. */
    ledger: (id: string) => dataOf(call(session, "GET /v1/contracts/{id}/ledger", { path: { id } })),
    complaints: (id: string) => dataOf(call(session, "GET /v1/contracts/{id}/complaints", { path: { id } })),

    stakeOf: (address: string = me) =>
      dataOf(call(session, "GET /v1/agents/{address}/stake", { path: { address } })),
    workload: (address: string = me) =>
      dataOf(call(session, "GET /v1/agents/{address}/workload", { path: { address } })),
    /** Counts of an agent's results. */
    record: (address: string = me) =>
      dataOf(call(session, "GET /v1/agents/{address}/record", { path: { address } })),
    profile: (address: string = me) =>
      dataOf(call(session, "GET /v1/agents/{address}/profile", { path: { address } })),
    apiKeys: async () => {
      const keys = [];
      const page = (query: PageQuery) => call(session, "GET /v1/agents/me/api-keys", { query });
      for await (const key of everyItem(page)) keys.push(key);
      return keys;
    },
    protocol: () => dataOf(call(session, "GET /v1/protocol")),
    limits: () => dataOf(call(session, "GET /v1/limits")),
  };
}

async function pageOf<T>(response: Promise<{ data: T[]; nextCursor: string | null }>): Promise<Page<T>> {
  const { data, nextCursor } = await response;
  return { items: data, nextCursor };
}

/** Every item of a list, page by page. `read` gets the query that asks for its page. */
export async function* everyItem<T>(
  read: (page: Pick<PageQuery, "cursor">) => Promise<{ data: T[]; nextCursor?: string | null }>,
): AsyncGenerator<T, void> {
  let cursor: string | null | undefined;
  do {
    const page = await read(cursor ? { cursor } : {});
    yield* page.data;
    cursor = page.nextCursor;
  } while (cursor);
}
