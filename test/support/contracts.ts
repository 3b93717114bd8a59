/** Working Contracts in every state, by the service and the stock x402 client alone. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";
import type { Hex } from "viem";
import { type ConcurrencyLimit, createConcurrencyLimit } from "../../src/scheduling.js";
import { until } from "../../tools/local/processes.js";
import type { Agent, ApiResponse } from "./agent.js";
import { type Quote, quoteOf } from "./payment.js";
import type { Scene, World } from "./world.js";

export const HOUR = 3600;
export const DAY = 24 * HOUR;
export const UNKNOWN = `0x${"ab".repeat(20)}`;

/** A JSON object of a response. Its shape is what the tests check. */
// biome-ignore lint/suspicious/noExplicitAny: reading its fields is the test.
export type Json = Record<string, any>;

export type Place = Pick<Scene, "now" | "inSeconds" | "newAgent">;

/** A Create body that is in order: open tender, price 50.0, three criteria. */
export async function draft(place: Pick<Place, "inSeconds">, overrides: Json = {}): Promise<Json> {
  const body: Json = {
    idempotencyKey: randomBytes(8).toString("hex"),
    title: "Translate a page",
    taskDescription: "Translate the attached page into Latin.",
    acceptanceCriteria: ["Every sentence is there", "The grammar is right", "Delivered as Markdown"],
    contractType: "fixed",
    awardMethod: "open_tender",
    budgetOrPrice: 50,
    matchDeadline: await place.inSeconds(HOUR),
    withdrawalDeadline: await place.inSeconds(DAY),
    deliveryDeadline: await place.inSeconds(2 * DAY),
    reviewDeadline: await place.inSeconds(3 * DAY),
    ...overrides,
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

export function ok<T>(response: ApiResponse<T>, status = 200): T {
  if (response.status !== status) throw new Error(`${response.status}: ${JSON.stringify(response.body)}`);
  return response.data;
}

/** The quote of a call that requires payment. */
export async function quoteFor(agent: Agent, path: string, body?: unknown): Promise<Quote> {
  return quoteOf(await agent.post(path, body));
}

/** A paid contract, with the body that it was posted with. */
export async function posted<C = Json>(
  place: Place,
  client: Agent,
  overrides: Json = {},
): Promise<{ body: Json; contract: C }> {
  const body = await draft(place, overrides);
  return inTurn(client, async () => ({ body, contract: ok(await client.pay<C>("/v1/contracts", body)) }));
}

export async function created<C = Json>(place: Place, client: Agent, overrides: Json = {}): Promise<C> {
  return (await posted<C>(place, client, overrides)).contract;
}

const limits = new WeakMap<Agent, ConcurrencyLimit>();

/**
 * Limits how many creations of one agent are unpaid at a time, because the service allows five. Tests that quote or pay
 * by hand use a separate agent, or at most two of them share one.
 */
function inTurn<T>(agent: Agent, act: () => Promise<T>): Promise<T> {
  const limit = limits.get(agent) ?? createConcurrencyLimit(3);
  limits.set(agent, limit);
  return limit(act);
}

export interface Pair {
  client: Agent;
  worker: Agent;
}

/** A client and a worker with money. */
export async function newPair(place: Place, usd = "5000"): Promise<Pair> {
  const [client, worker] = await Promise.all([place.newAgent({ usd }), place.newAgent({ usd })]);
  return { client, worker };
}

export async function matched<C = Json>(
  place: Place,
  { client, worker }: Pair,
  overrides: Json = {},
): Promise<C> {
  const { id } = await created(place, client, overrides);
  return ok(await worker.pay<C>(`/v1/contracts/${id}/accept`, { accept: true }));
}

export async function delivered<C = Json>(place: Place, pair: Pair, overrides: Json = {}): Promise<C> {
  const { id } = await matched(place, pair, overrides);
  return ok(await pair.worker.post<C>(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));
}

export async function disputed<C = Json>(place: Place, pair: Pair, overrides: Json = {}): Promise<C> {
  const { id } = await delivered(place, pair, overrides);
  return ok(await pair.client.pay<C>(`/v1/contracts/${id}/dispute`));
}

/** A Backup Agent with a stake, by default enough to vote. */
export async function newJuror(
  place: Place,
  { usd = "5000", tokens = 1000 }: { usd?: string; tokens?: number } = {},
): Promise<Agent> {
  const juror = await place.newAgent({ usd, tokens });
  const { stakedSince } = ok(await juror.pay<Json>("/v1/agents/me/stake", { amount: String(tokens) }));
  await laterThan(place, stakedSince);
  return juror;
}

/**
 * Resolves in a later second: a stake counts for contracts that are matched after the second in which it was made. In a
 * world of its own the next block is made a second later, at once.
 */
export async function laterThan(
  { now, testClient }: Pick<Place, "now"> & Partial<Pick<World, "testClient">>,
  time: string,
): Promise<void> {
  const isLater = async () => (await now()) * 1000 > Date.parse(time);
  if (testClient !== undefined && !(await isLater())) {
    await testClient.increaseTime({ seconds: 1 });
    await testClient.mine({ blocks: 1 });
  }
  await until("the second of the stake is over", isLater, { timeoutMs: 60_000 });
}

/** The body of Submit Votes: one word per criterion, in their order. */
export function ballot(...words: string[]): { votes: { criterionIndex: number; vote: string }[] } {
  return { votes: words.map((vote, criterionIndex) => ({ criterionIndex, vote })) };
}

/** Pays the bond and votes. Throws if that fails. */
export async function vote(
  juror: Agent,
  id: string,
  ...words: string[]
): Promise<{ votes: Json[]; salt: Hex }> {
  const response = await juror.pay<Json[]>(`/v1/contracts/${id}/votes`, ballot(...words));
  return { votes: ok(response), salt: response.headers.get("vote-salt") as Hex };
}

let sequences = 0;

/** A valid checkpoint. `overrides` can make it follow a previous one. */
export async function checkpointBody(place: Place, overrides: Json = {}): Promise<Json> {
  sequences++;
  return {
    fromSequence: 1,
    toSequence: 10,
    merkleRoot: `0x${"aa".repeat(32)}`,
    lastReceiptHash: `0x${"bb".repeat(32)}`,
    teeMeasurement: "measurement",
    teeSignature: "signature",
    checkpointedAt: await place.inSeconds(-1000 + sequences),
    data: { tokens: 12 },
    ...overrides,
  };
}

/** Reads until the value is right, and returns it. Throws after a minute: keeper and relayer can be slow. */
export async function readUntil<T>(
  what: string,
  read: () => Promise<T>,
  isRight: (value: T) => boolean,
): Promise<T> {
  const giveUpAt = performance.now() + 60_000;
  for (;;) {
    const value = await read();
    if (isRight(value)) return value;
    if (performance.now() > giveUpAt) throw new Error(`${what}: not within a minute, but ${inspect(value)}`);
    await delay(100);
  }
}

/** Reads a contract until it has one of the statuses. */
export const untilStatus = <C = Json>(agent: Agent, id: string, ...statuses: string[]): Promise<C> =>
  readUntil(
    `${id} is ${statuses.join(" or ")}`,
    async () => (await agent.get<C & { status: string }>(`/v1/contracts/${id}`)).data,
    (data) => statuses.includes(data?.status),
  );

export const eventually = <T>(read: () => Promise<T>, expected: T): Promise<T> =>
  readUntil(`it is ${expected}`, read, (value) => value === expected);

/** A fresh challenge of an address and the address's signature over it. */
export async function signedChallenge(
  place: { call<T>(method: string, path: string): Promise<ApiResponse<T>> },
  { address, account }: Pick<Agent, "address" | "account">,
): Promise<{ challengeId: string; signature: string }> {
  const { challengeId, message } = ok(await place.call<Json>("POST", `/v1/agents/${address}/challenge`)) as {
    challengeId: string;
    message: string;
  };
  return { challengeId, signature: await account.signMessage({ message }) };
}
