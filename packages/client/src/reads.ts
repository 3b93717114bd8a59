/** Requests that only read. */
import { openReference } from "./references.js";
import { read, readWhole, type Session } from "./session.js";
import type {
  ApiKey,
  Checkpoint,
  Complaint,
  Contract,
  Limits,
  ListQuery,
  Profile,
  ProtocolParameters,
  ReferenceField,
  ReferenceKey,
  Settlement,
  Stake,
  Terms,
  Vote,
  VoteQuery,
  Workload,
} from "./types.js";

export interface Page<T> {
  items: T[];
  /** Cursor of the next page; null on the last page. */
  nextCursor: string | null;
}

export function reads(session: Session) {
  const me = session.signer.address.toLowerCase();
  const pathOf = (id: string): string => `/v1/contracts/${id.toLowerCase()}`;
  const page = async <T>(path: string, query: object): Promise<Page<T>> => {
    const { data, nextCursor } = await readWhole<{ data: T[]; nextCursor: string | null }>(session, path, {
      ...query,
    });
    return { items: data, nextCursor };
  };
  const get = (id: string): Promise<Contract> => read(session, pathOf(id));

  return {
    get,
    /** One page of contracts, newest first unless `sort` says otherwise. */
    list: (query: ListQuery = {}) => page<Contract>("/v1/contracts", query),
    /** Everything that a contract's address commits to. */
    terms: (id: string) => read<Terms>(session, `${pathOf(id)}/terms`),
    /** Each payment of a contract and its state. */
    settlement: (id: string) => read<Settlement>(session, `${pathOf(id)}/settlement`),
    votes: (query: VoteQuery = {}) => page<Vote>("/v1/votes", query),
    checkpoints: (id: string) => read<Checkpoint[]>(session, `${pathOf(id)}/checkpoints`),
    complaints: (id: string) => read<Complaint[]>(session, `${pathOf(id)}/complaints`),

    /** Decrypts a reference of a contract. Returns null if it is not set or the caller has no key for it. */
    async reveal(id: string, field: ReferenceField): Promise<string | null> {
      const { [field]: jwe } = await get(id);
      if (jwe === null) return null;
      const { keys } = await read<{ keys: ReferenceKey[] }>(session, `${pathOf(id)}/keys`);
      const key = keys.find((one) => one.field === field);
      return key === undefined ? null : openReference(jwe, key);
    },

    stakeOf: (address: string = me) => read<Stake>(session, `/v1/agents/${address}/stake`),
    workload: (address: string = me) => read<Workload["data"]>(session, `/v1/agents/${address}/workload`),
    profile: (address: string = me) => read<Profile>(session, `/v1/agents/${address}/profile`),
    apiKeys: () => read<ApiKey[]>(session, "/v1/agents/me/api-keys"),
    protocol: () => read<ProtocolParameters>(session, "/v1/protocol"),
    limits: () => read<Limits>(session, "/v1/limits"),
  };
}
