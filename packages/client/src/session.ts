/** Typed requests of one address. With money: quote, checks, limits, signature, identical retries until the outcome is known. */
import { formatDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { Permission } from "@working-contracts/protocol/signatures";
import type { Status } from "@working-contracts/protocol/status";
import type { EscrowTerms, Hex } from "@working-contracts/protocol/types";
import type { paths } from "./api.js";
import type { ConnectOptions } from "./connect.js";
import {
  ConnectionError,
  isOutage,
  NotOnChain,
  OutcomeUnknown,
  PaymentRejected,
  RefusedToSign,
  ServiceError,
  type UnusedPayment,
  withPayment,
} from "./errors.js";
import type { Http, Method, Request, ServiceResponse } from "./http.js";
import {
  assetOf,
  type createBudget,
  type Expected,
  type PaymentProgress,
  type PlannedPayment,
  type QuotedPayment,
  readQuote,
  requireExpected,
  signPayment,
  VALIDITY_SECONDS,
} from "./payment.js";
import type { proofOf } from "./receipts.js";
import type { Due } from "./terms.js";
import type {
  Addresses,
  ContractEvent,
  EventQuery,
  ListQuery,
  PinnedNetwork,
  SignedComplaint,
  VoteQuery,
} from "./types.js";
import type { Signer } from "./wallets.js";

type ProofArguments = Parameters<typeof proofOf> extends [unknown, ...infer Rest] ? Rest : never;

/**
 * Keeps what an agent submitted, to notice or replace what the service hides: by `checkpoints/<contract>` the hashes of its
 * checkpoints, by `votes/<factory>` the contracts on which it cast sealed votes, by `deliveries/<contract>` what it sealed.
 */
export interface SubmissionStore {
  /** In the order in which they were added. */
  read(key: string): Promise<readonly Hex[]> | readonly Hex[];
  add(key: string, value: Hex): Promise<void> | void;
}

export const checkpointsKey = (id: string): string => `checkpoints/${id.toLowerCase()}`;
export const deliveriesKey = (id: string): string => `deliveries/${id.toLowerCase()}`;
export const votesKey = ({ factory }: Pick<PinnedNetwork, "factory">): string => `votes/${factory}`;

/** One signed-in address: its connection, keys, limits, the addresses that it trusts, and options of `connect`. */
export interface Session
  extends Pick<
    ConnectOptions,
    "baseUrl" | "beforePayment" | "clock" | "maxGasCost" | "node" | "onProgress" | "onReceipt"
  > {
  http: Http;
  signer: Signer;
  network: PinnedNetwork;
  budget: ReturnType<typeof createBudget>;
  /** The chain's time in seconds, as the service says. */
  now(): Promise<number>;
  /** The same, for a signature. Throws RefusedToSign if it is over five minutes ahead of this machine's clock. */
  boundedTime(): Promise<number>;
  /** The same, for a date that counts. Throws RefusedToSign if it is over five minutes off, ahead or behind. */
  agreedTime(): Promise<number>;
  submitted: SubmissionStore;
  /** Payments for drafts that were not posted, as far as is known, by escrow. */
  unused: Map<string, { text: string; key: string; validBefore: number }>;
  /** Actions that the sign-in leaves to the operator; the agent signs every other one. */
  permission: Permission;
  apiKey: string;
}

type OperationAt<M extends Method, P extends keyof paths> =
  Lowercase<M> extends keyof paths[P] ? paths[P][Lowercase<M>] : never;

/** An operation by method and path, such as `GET /v1/contracts/{id}`. */
export type Endpoint = {
  [P in keyof paths]: {
    [M in Method]: OperationAt<M, P> extends { responses: unknown } ? `${M} ${P}` : never;
  }[Method];
}[keyof paths];

type OperationOf<E extends Endpoint> = E extends `${infer M extends Method} ${infer P extends keyof paths}`
  ? OperationAt<M, P>
  : never;
type Json<T> = T extends { content: { "application/json": infer J } } ? J : never;

/** The body of an operation's success response. */
export type ResponseOf<E extends Endpoint> =
  OperationOf<E> extends { responses: infer R } ? Json<R[keyof R]> : never;

type PathOf<O> = O extends { parameters: { path: infer P extends object } } ? { path: P } : unknown;
type QueryOf<O> = O extends { parameters: infer P }
  ? "query" extends keyof P
    ? { query?: P["query"] }
    : unknown
  : unknown;
type BodyOf<O> = O extends { requestBody: infer B } ? { body: Json<B> } : unknown;
/** Path parameters, query and JSON body of an operation; `key` is its `Idempotency-Key`, by default a random one. */
type InputOf<E extends Endpoint> = PathOf<OperationOf<E>> &
  QueryOf<OperationOf<E>> &
  BodyOf<OperationOf<E>> &
  (E extends (typeof KEYED)[number] ? { key?: string } : { key?: never });
/** The input of a call, which can be omitted if nothing in it is required. */
export type InputArguments<E extends Endpoint> =
  Record<string, never> extends InputOf<E> ? [input?: InputOf<E>] : [input: InputOf<E>];

/** Operations whose repetition after a lost response could happen twice. */
const NOT_REPEATABLE: ReadonlySet<string> = new Set<Endpoint>(["POST /v1/agents/{address}/api-key/revoke"]);

/** Operations without a payment that create or act, and take an `Idempotency-Key`. */
const KEYED = [
  "POST /v1/agents/{address}/api-key",
  "POST /v1/contracts/{id}/checkpoint",
  "POST /v1/contracts/{id}/complaints",
  "POST /v1/agents/me/webhooks",
  "POST /v1/agents/me/profile",
  "POST /v1/agents/me/unstake",
  ...(["accept", "approve", "cancel", "delivery", "withdraw"] as const).map(
    (action) => `POST /v1/contracts/{id}/${action}` as const,
  ),
] as const satisfies readonly Endpoint[];

/** Calls any operation. Retries unless it could then happen twice. Never pays: throws RefusedToSign if the response is a quote. */
export async function call<E extends Endpoint>(
  session: Pick<Session, "http" | "apiKey">,
  endpoint: E,
  ...[input]: InputArguments<E>
): Promise<ResponseOf<E>> {
  const response = await session.http.send(requestOf(session, endpoint, input as never));
  if (response.status === 402)
    throw new RefusedToSign(
      "quote",
      `${endpoint} costs money; only create, accept, dispute, vote and stake pay`,
    );
  return response.json as ResponseOf<E>;
}

type DataOf<R> = R extends { data: infer D } ? D : never;

/** Calls an operation like {@link call}, and returns the `data` of its response. */
export async function dataOf<E extends Endpoint>(
  ...args: Parameters<typeof call<E>>
): Promise<DataOf<ResponseOf<E>>> {
  return dataIn(await call(...args));
}

export const dataIn = <R extends object>(json: R) => (json as { data: DataOf<R> }).data;

/** Path parameters become lower case. If the operation takes an `Idempotency-Key`, it is random by default. */
export function requestOf(
  { apiKey }: Pick<Session, "apiKey">,
  endpoint: Endpoint,
  input: { path?: object; query?: object; body?: unknown; key?: string } = {},
): Request {
  const [method, template] = endpoint.split(" ") as [Method, string];
  const path = Object.entries(input.path ?? {}).reduce(
    (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(String(value).toLowerCase())),
    template,
  );
  const query = Object.entries(input.query ?? {}).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(query.map(([name, value]): [string, string] => [name, String(value)]));
  return {
    method,
    path: query.length === 0 ? path : `${path}?${search}`,
    headers: {
      ...(apiKey !== "" && { authorization: `Bearer ${apiKey}` }),
      ...((KEYED as readonly string[]).includes(endpoint) && {
        "idempotency-key": input.key ?? crypto.randomUUID(),
      }),
    },
    body: typeof input.body === "string" ? input.body : JSON.stringify(input.body),
    repeatable: !NOT_REPEATABLE.has(endpoint),
  };
}

/** The only payment that a call expects, without the URL that is paid for. */
export type ExpectedPayment = Omit<Expected, "resource">;

/** Makes the check of a payment to a contract's own escrow, from what its proven terms say is due. */
export type ToEscrow = (id: string, dueOf: (terms: EscrowTerms) => Due) => () => Promise<ExpectedPayment>;

export interface PaidCall<E extends Endpoint, T> {
  path?: object;
  /** JSON text, because its bytes are hashed. */
  body?: string;
  /** The payment's nonce; by default random. */
  nonce?: Hex | undefined;
  /** Computes the expected quote. Throws RefusedToSign if the quote cannot be right. */
  expect: (quoted: QuotedPayment) => Promise<ExpectedPayment>;
  /** Called once nothing can refuse the payment but the signer, with the end of its authorization in seconds. */
  beforeSigning?: (validBefore: number) => Promise<void> | void;
  /** Extracts the result from a success response; by default its `data`. */
  parse?: (json: ResponseOf<E>, headers: Headers) => T | Promise<T>;
}

const RESUME = ". Resume this call; do not sign another payment for it.";

/** Calls an operation that can cost money. If the response is a quote, pays it only if it is exactly the expected one. */
export async function pay<E extends Endpoint, T = DataOf<ResponseOf<E>>>(
  session: Session,
  endpoint: E,
  { path, body, nonce, expect, beforeSigning, parse = dataIn as never }: PaidCall<E, T>,
): Promise<T> {
  const request = requestOf(session, endpoint, { ...(path && { path }), body });
  let signed: UnusedPayment | undefined;
  const resultOf = async (response: ServiceResponse): Promise<T> => {
    try {
      return await parse(response.json as ResponseOf<E>, response.headers);
    } catch (error) {
      const { signal } = session.http;
      const isAborted = response !== first && error === signal?.reason;
      const resume = () => resultOf(response);
      if (error instanceof NotOnChain) {
        error.resume = resume;
        if (signed) withPayment(error, signed);
      }
      // The caller's node was silent: to start again would be to pay again.
      if (!(error instanceof ConnectionError || isAborted)) throw error;
      const reason = (error as Error)?.message ?? error;
      throw new OutcomeUnknown(reason + RESUME, resume, error, signal);
    }
  };
  const first = await session.http.send(request);
  if (first.status !== 402) return resultOf(first);

  const { network } = session;
  const quoted = readQuote(first.headers);
  const expected = { ...(await expect(quoted)), resource: network.baseUrl + request.path };
  requireExpected(quoted, expected, network);
  const payment = plannedOf(expected, network);
  const report = (step: PaymentProgress["step"]): void => session.onProgress?.({ step, payment });
  report("quoted");
  if (session.node !== undefined) {
    const { requireKnownCode, requireOnChain, requireTokens } = await import("./chain-check.js");
    await requireKnownCode(session.node, network);
    await requireOnChain(session.node, network, expected.escrow, expected.status);
    await requireTokens(session.node, network);
  }
  const time = await session.boundedTime();
  const readAt = performance.now();
  // Last, because it counts the payment: whatever can refuse it has done so.
  await session.beforePayment?.(payment);
  session.http.signal?.throwIfAborted();
  session.budget.spend(payment);
  // The caller can have thought about it for a while.
  const now = time + Math.floor((performance.now() - readAt) / 1000);
  const validBefore = Math.min(now + VALIDITY_SECONDS, expected.deadline ?? Infinity);
  await beforeSigning?.(validBefore);
  report("signing");
  session.http.signal?.throwIfAborted();
  const signature = await signPayment(session, quoted, { expected, validBefore, nonce });
  const paid = { ...request, headers: { ...request.headers, "PAYMENT-SIGNATURE": signature } };
  report("sent");
  signed = { payTo: expected.payTo, until: new Date(validBefore * 1000) };
  const parsePaid = async (response: ServiceResponse): Promise<T> => {
    report("paid");
    await prove(session, quoted, { headers: response.headers, expected, signedAt: time });
    return resultOf(response);
  };
  return sendSigned(session.http, paid, { parse: parsePaid, ...signed });
}

/** The payment is made, so nothing that goes wrong with its proof may hide the result. */
async function prove(session: Session, ...payment: ProofArguments): Promise<void> {
  if (session.onReceipt === undefined) return;
  try {
    const { proofOf } = await import("./receipts.js");
    session.onReceipt(await proofOf(session, ...payment));
  } catch {}
}

function roleOf(status: Status | undefined, escrow: Expected["escrow"]): PlannedPayment["role"] {
  if (status === "under-review") return "Client";
  if (escrow === undefined || status === "disputed") return "Backup Agent";
  return (escrow.isNew ?? false) === escrow.terms.workerInitiated ? "Worker" : "Client";
}

/** An expected payment as callers see it before it is signed. */
export function plannedOf(expected: Expected, network: Addresses): PlannedPayment {
  const { amount, currency, resource, payTo, escrow, status } = expected;
  const decimals = currency === "protocol-token" ? TOKEN_DECIMALS : undefined;
  const decimal = formatDecimal(amount, decimals);
  return {
    currency,
    token: assetOf(expected, network),
    amount,
    decimal,
    resource,
    payTo,
    role: roleOf(status, escrow),
    ...(escrow !== undefined && { terms: escrow.terms }),
  };
}

/** Refusals before the service looks at the payment. For a retry, they say nothing about the first attempt. */
const UNSEEN: ReadonlySet<number> = new Set([401, 413]);

/**
 * Once a payment is signed, every retry sends the identical request with that payment. If an attempt can have delivered
 * it (`wasSent`), a refusal of the repetition alone says nothing of the outcome. Neither does the caller's own abort.
 */
async function sendSigned<T>(
  http: Http,
  request: Request,
  paid: UnusedPayment & { parse: (response: ServiceResponse) => Promise<T>; wasSent?: boolean },
): Promise<T> {
  const { parse, wasSent = false, ...payment } = paid;
  let isSent = wasSent;
  const onRetry = (): void => {
    isSent = true;
  };
  const attempt = async () => {
    const response = await http.send(request, onRetry);
    if (response.status === 402) return readQuote(response.headers);
    if (!response.json.data) throw new ConnectionError("the service's response has no data");
    return response;
  };
  const outcome = await attempt().catch((error) => {
    const isUnseen = isSent && UNSEEN.has(error?.status);
    if (error instanceof ServiceError && !isOutage(error) && !isUnseen) throw withPayment(error, payment);
    const isUnreadable = error instanceof RefusedToSign;
    const reason = isUnreadable ? "the service's response could not be read" : (error?.message ?? error);
    const state = `The outcome of ${request.method} ${request.path} is not known yet (${reason})`;
    const resume = () =>
      sendSigned(http.signal?.aborted ? http.withoutSignal() : http, request, { ...paid, wasSent: true });
    throw withPayment(new OutcomeUnknown(state + RESUME, resume, error, http.signal), payment);
  });
  if ("headers" in outcome) return parse(outcome);
  throw withPayment(new PaymentRejected(outcome.error, outcome.message), payment);
}

/** The items are in the list's order. */
export interface Page<T> {
  items: T[];
  /** Cursor of the next page; null on the last page. */
  nextCursor: string | null;
}

/** By default the first page. `limit` is at most 200 (docs/rules.md 56). */
export interface PageQuery {
  limit?: number;
  /** `nextCursor` of the page before. */
  cursor?: string;
}

/** Far more than an agent can need: a list that a service invents does not end. */
const MAX_KEYS = 100_000;

/** Reads of the service. Nothing is signed, and nothing is compared with the chain. */
export function reads(session: Session) {
  const me = session.signer.address;

  return {
    get: (id: string) => dataOf(session, "GET /v1/contracts/{id}", { path: { id } }),
    /** One page of contracts, newest first unless `sort` says otherwise. */
    list: (query: ListQuery = {}) => pageOf(call(session, "GET /v1/contracts", { query })),
    /** Everything that a contract's address commits to. */
    terms: (id: string) => dataOf(session, "GET /v1/contracts/{id}/terms", { path: { id } }),
    /** Each payment of a contract and its state. */
    settlement: (id: string) => dataOf(session, "GET /v1/contracts/{id}/settlement", { path: { id } }),
    votes: (query: VoteQuery = {}) => pageOf(call(session, "GET /v1/votes", { query })),
    checkpoints: (id: string) => dataOf(session, "GET /v1/contracts/{id}/checkpoints", { path: { id } }),
    /** How a checkpoint is included in the signed root of its contract's log. */
    proveCheckpoint: (id: string, checkpointId: string) =>
      dataOf(session, "GET /v1/contracts/{id}/checkpoints/{checkpointId}/proof", {
        path: { id, checkpointId },
      }),
    /** Releases of the keys of a contract's references; for its parties. */
    keyReleases: (id: string, query: PageQuery = {}) =>
      pageOf(call(session, "GET /v1/contracts/{id}/keys/releases", { path: { id }, query })),
    /** Every movement of a contract's money so far. */
    ledger: (id: string) => dataOf(session, "GET /v1/contracts/{id}/ledger", { path: { id } }),
    /** Each with its filer's signature, if it has one. */
    complaints: async (id: string): Promise<SignedComplaint[]> => {
      const { data, signed } = await call(session, "GET /v1/contracts/{id}/complaints", { path: { id } });
      return data.map((one) => ({ ...one, signed: signed[one.id] }));
    },

    stakeOf: (address: string = me) =>
      dataOf(session, "GET /v1/agents/{address}/stake", { path: { address } }),
    workload: (address: string = me) =>
      dataOf(session, "GET /v1/agents/{address}/workload", { path: { address } }),
    /** Counts of an agent's results. */
    record: (address: string = me) =>
      dataOf(session, "GET /v1/agents/{address}/record", { path: { address } }),
    profile: (address: string = me) =>
      dataOf(session, "GET /v1/agents/{address}/profile", { path: { address } }),
    apiKeys: async () => {
      const keys = [];
      const page = (query: PageQuery) => call(session, "GET /v1/agents/me/api-keys", { query });
      for await (const key of everyItem(page))
        if (keys.push(key) > MAX_KEYS) throw new Error(`The service lists over ${MAX_KEYS} API keys`);
      return keys;
    },
    protocol: () => dataOf(session, "GET /v1/protocol"),
    limits: () => dataOf(session, "GET /v1/limits"),
  };
}

async function pageOf<T>(response: Promise<{ data: T[]; nextCursor: string | null }>): Promise<Page<T>> {
  const { data, nextCursor } = await response;
  return { items: data, nextCursor };
}

/** Pages of a list that ends. */
const MAX_PAGES = 10_000;

/** Every item of a list, page by page. Throws if it does not end. `read` gets the query that asks for its page. */
export async function* everyItem<T>(
  read: (page: Pick<PageQuery, "cursor">) => Promise<{ data: T[]; nextCursor?: string | null }>,
): AsyncGenerator<T, void> {
  let cursor: string | null | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await read(cursor ? { cursor } : {});
    yield* page.data;
    cursor = page.nextCursor;
    if (!cursor) return;
  }
  throw new Error(`The service's list did not end after ${MAX_PAGES} pages`);
}

/** Every logged event that matches. One page can be empty although later ones are not. Throws if the log does not end. */
export const everyEvent = (
  read: (query: EventQuery) => Promise<ResponseOf<"GET /v1/events">>,
  query: EventQuery,
): AsyncGenerator<ContractEvent, void> =>
  everyItem(async ({ cursor: after = "0" }) => {
    const { data, hasMore, nextAfter } = await read({ ...query, after });
    return { data, nextCursor: hasMore ? nextAfter : null };
  });
