/** Working Contracts in every state, as the chapters need them. */
import { randomBytes } from "node:crypto";
import type { Agent, Answer } from "../../support/agent.js";
import { type Quote, quoteOf } from "./payment.js";
import type { Scene } from "./scene.js";

export const HOUR = 3600;
export const DAY = 24 * HOUR;
export const UNKNOWN = `0x${"ab".repeat(20)}`;

/** A JSON object of a response. Its shape is what the tests check. */
// biome-ignore lint/suspicious/noExplicitAny: reading its fields is the test.
export type Json = Record<string, any>;

/** A valid Create body: open tender, price 50.0, three criteria. */
export async function draft(scene: Scene, overrides: Json = {}): Promise<Json> {
  const body: Json = {
    idempotencyKey: randomBytes(8).toString("hex"),
    title: "Translate a page",
    taskDescription: "Translate the attached page into Latin.",
    acceptanceCriteria: ["Every sentence is there", "The grammar is right", "Delivered as Markdown"],
    contractType: "fixed",
    awardMethod: "open_tender",
    budgetOrPrice: 50,
    matchDeadline: await scene.inSeconds(HOUR),
    withdrawalDeadline: await scene.inSeconds(DAY),
    deliveryDeadline: await scene.inSeconds(2 * DAY),
    reviewDeadline: await scene.inSeconds(3 * DAY),
    ...overrides,
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

export function ok<T>(answer: Answer<T>, status = 200): T {
  if (answer.status !== status) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.data;
}

/** The quote of a call that requires payment. */
export async function quoteFor(agent: Agent, path: string, body?: unknown): Promise<Quote> {
  return quoteOf(await agent.post(path, body));
}

/** A paid contract, with the body that it was posted with. */
export async function posted(
  scene: Scene,
  client: Agent,
  overrides: Json = {},
): Promise<{ body: Json; contract: Json }> {
  const body = await draft(scene, overrides);
  return inTurn(client, async () => ({ body, contract: ok(await client.pay<Json>("/v1/contracts", body)) }));
}

export async function created(scene: Scene, client: Agent, overrides: Json = {}): Promise<Json> {
  return (await posted(scene, client, overrides)).contract;
}

const turns = new WeakMap<Agent, Promise<unknown>[]>();
const LANES = 3;

/**
 * Limits how many creations of one agent are unpaid at a time, because the service allows five. Tests that quote or pay
 * by hand use a separate agent, or at most two of them share one.
 */
function inTurn<T>(agent: Agent, act: () => Promise<T>): Promise<T> {
  const lanes =
    turns.get(agent) ?? Array.from({ length: LANES }, () => Promise.resolve() as Promise<unknown>);
  turns.set(agent, lanes);
  const turn = (lanes.shift() as Promise<unknown>).then(act);
  lanes.push(turn.catch(() => {}));
  return turn;
}

export interface Pair {
  client: Agent;
  worker: Agent;
}

/** A client and a worker with money. */
export async function newPair(scene: Scene): Promise<Pair> {
  const [client, worker] = await Promise.all([
    scene.newAgent({ usd: "5000" }),
    scene.newAgent({ usd: "5000" }),
  ]);
  return { client, worker };
}

export async function matched(scene: Scene, { client, worker }: Pair, overrides: Json = {}): Promise<Json> {
  const { id } = await created(scene, client, overrides);
  return ok(await worker.pay<Json>(`/v1/contracts/${id}/accept`, { accept: true }));
}

export async function delivered(scene: Scene, pair: Pair, overrides: Json = {}): Promise<Json> {
  const { id } = await matched(scene, pair, overrides);
  return ok(await pair.worker.post<Json>(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" }));
}

export async function disputed(scene: Scene, pair: Pair, overrides: Json = {}): Promise<Json> {
  const { id } = await delivered(scene, pair, overrides);
  return ok(await pair.client.pay<Json>(`/v1/contracts/${id}/dispute`));
}

/** A Backup Agent with enough tokens staked to vote. */
export async function newJuror(scene: Scene): Promise<Agent> {
  const juror = await scene.newAgent({ usd: "5000", tokens: 1000 });
  ok(await juror.pay("/v1/agents/me/stake", {}));
  return juror;
}

/** The body of Submit Votes: one word per criterion, in their order. */
export function ballot(...words: string[]): Json {
  return { votes: words.map((vote, criterionIndex) => ({ criterionIndex, vote })) };
}

let sequences = 0;

/** A valid checkpoint. `overrides` can make it follow a previous one. */
export async function checkpointBody(scene: Scene, overrides: Json = {}): Promise<Json> {
  sequences++;
  return {
    fromSequence: 1,
    toSequence: 10,
    merkleRoot: `0x${"aa".repeat(32)}`,
    lastReceiptHash: `0x${"bb".repeat(32)}`,
    teeMeasurement: "measurement",
    teeSignature: "signature",
    checkpointedAt: await scene.inSeconds(-1000 + sequences),
    data: { tokens: 12 },
    ...overrides,
  };
}

/** The keeper and the relayer can be slow, and share their machine with other suites. */
const PATIENCE_MS = 60_000;

/** Reads a contract until it has the status. Throws if that takes too long. */
export async function untilStatus(agent: Agent, id: string, ...statuses: string[]): Promise<Json> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const { data } = await agent.get<Json>(`/v1/contracts/${id}`);
    if (statuses.includes(data?.status)) return data;
    if (performance.now() > giveUpAt)
      throw new Error(`${id} is ${data?.status}, not ${statuses.join(" or ")}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Reads until the value is `expected`. Throws if that takes too long. */
export async function eventually<T>(read: () => Promise<T>, expected: T): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await read();
    if (value === expected) return;
    if (performance.now() > giveUpAt) throw new Error(`The value stays ${value}, expected ${expected}.`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A fresh challenge of an address and the address's signature over it. */
export async function signedChallenge(
  scene: Scene,
  { address, account }: Pick<Agent, "address" | "account">,
): Promise<{ challengeId: string; signature: string }> {
  const { challengeId, message } = ok(await scene.call<Json>("POST", `/v1/agents/${address}/challenge`)) as {
    challengeId: string;
    message: string;
  };
  return { challengeId, signature: await account.signMessage({ message }) };
}
