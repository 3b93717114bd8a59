/** The demo's stories. Each is one Working Contract with the ledger that must result. */
import type { Agent as Connected } from "@working-contracts/client/index";
import { type Address, parseUnits } from "viem";
import type { Agent as Newcomer } from "../../test/support/agent.js";
import { DAY, draft, type Json, ok } from "../../test/support/contracts.js";
import { ballotsOf, WORKED_RESULTS } from "../../test/support/worked-results.js";
import type { Play } from "../local/sandbox/plays.js";
import type { Sandbox } from "./network.js";

export interface Agent extends Newcomer {
  name: string;
}

/** An agent that was never signed in but with the published client, which leaves nothing to the operator. */
export interface Strict extends Member {
  client: Connected;
}

type Member = Pick<Agent, "name" | "address" | "get">;

export interface Stage {
  newAgent(role: string): Promise<Agent>;
  sandbox: Sandbox;
  /** Seconds, on the chain's clock. */
  now(): Promise<number>;
  say(story: string, line: string): void;
  /** An agent of the published client, which signs each action and seals what it can. */
  newStrict(role: string): Promise<Strict>;
}

/** A played contract, with the addresses whose money changes. */
export interface Played {
  story: string;
  id: string;
  /** Its last status, and its ledger. */
  status: string;
  row: LedgerRow;
  client: Member | null;
  worker: Member | null;
  /** Agents that must end with the money that they started with. */
  bystanders: Member[];
  /** The sandbox's counterparties, and what they must hold at the end. */
  counterparties: { name: string; address: Address; holds: bigint }[];
  jurors: { agent: Member; due: JurorRow }[];
  /** Work that remains once voting has closed. */
  afterVoting?: () => Promise<void>;
}

export type Story = (stage: Stage) => Promise<Played>;

const RACERS = 8;

export const STORIES: Story[] = [
  directAward,
  openTender,
  listing,
  declined,
  cancelled,
  withdrawn,
  absentWorker,
  reviewTimeout,
  scriptedClient,
  scriptedWorkerAndJury,
];

/** Seconds after `now` at which every deadline of the demo's contracts has passed. */
export const ALL_DEADLINES_AFTER = 4 * DAY + 1;

async function directAward(stage: Stage): Promise<Played> {
  const story = "direct award";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "direct_award", worker: worker.address });
  await accept(stage, story, worker, id);
  await deliver(stage, story, worker, id);
  const approved = ok(await client.pay<Json>(`/v1/contracts/${id}/approve`));
  stage.say(story, `Client approved: ${approved.status}, criteria ${approved.criteriaMet.join(", ")}`);
  return played({ story, id, status: "settled-all-met", row: LEDGER.approved, client, worker });
}

async function openTender(stage: Stage): Promise<Played> {
  const story = "open tender";
  const client = await stage.newAgent("Client");
  const racers = await Promise.all(
    Array.from({ length: RACERS }, (_, i) => stage.newAgent(`Worker ${i + 1}`)),
  );
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  const answers = await Promise.all(
    racers.map((racer) => racer.pay(`/v1/contracts/${id}/accept`, { accept: true })),
  );
  const statuses = answers.map((answer) => answer.status);
  const winners = racers.filter((_, i) => statuses[i] === 200);
  stage.say(story, `${RACERS} Workers raced for one seat: ${statuses.join(" ")}`);
  const [worker] = winners;
  if (
    worker === undefined ||
    winners.length !== 1 ||
    statuses.filter((s) => s === 409).length !== RACERS - 1
  ) {
    throw new Error(`expected one 200 and ${RACERS - 1} times 409, got ${statuses.join(" ")}`);
  }
  await deliver(stage, story, worker, id);
  ok(await client.pay(`/v1/contracts/${id}/approve`));
  stage.say(story, `Client approved the winner, ${worker.name}`);
  const bystanders = racers.filter((racer) => racer !== worker);
  return played({ story, id, status: "settled-all-met", row: LEDGER.approved, client, worker, bystanders });
}

async function listing(stage: Stage): Promise<Played> {
  const story = "worker-initiated listing";
  const [client, worker] = await Promise.all([stage.newAgent("Buyer"), stage.newAgent("Worker")]);
  const id = await post(stage, story, worker, { awardMethod: "open_tender", initiator: "worker" });
  const accepted = ok(await client.pay<Json>(`/v1/contracts/${id}/accept`, { accept: true }));
  stage.say(story, `Buyer accepted and paid ${accepted.escrowedFunds}: ${accepted.status}`);
  await deliver(stage, story, worker, id);
  ok(await client.pay(`/v1/contracts/${id}/approve`));
  stage.say(story, "Buyer approved");
  return played({ story, id, status: "settled-all-met", row: LEDGER.approved, client, worker });
}

async function declined(stage: Stage): Promise<Played> {
  const story = "decline";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "direct_award", worker: worker.address });
  const answer = ok(await worker.pay<Json>(`/v1/contracts/${id}/accept`, { accept: false }));
  stage.say(story, `named Worker declined: ${answer.status}`);
  return played({ story, id, status: "cancelled-unmatched", row: LEDGER.unmatched, client, worker });
}

async function cancelled(stage: Stage): Promise<Played> {
  const story = "cancel";
  const client = await stage.newAgent("Client");
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  const answer = ok(await client.pay<Json>(`/v1/contracts/${id}/cancel`));
  stage.say(story, `Client cancelled: ${answer.status}`);
  return played({ story, id, status: "cancelled-by-initiator", row: LEDGER.unmatched, client, worker: null });
}

async function withdrawn(stage: Stage): Promise<Played> {
  const begun = await matched(stage, "withdraw");
  const answer = ok(await begun.worker.pay<Json>(`/v1/contracts/${begun.id}/withdraw`));
  stage.say(begun.story, `Worker withdrew: ${answer.status}`);
  return played({ ...begun, status: "cancelled-withdrawn", row: LEDGER.withdrawn });
}

async function absentWorker(stage: Stage): Promise<Played> {
  const begun = await matched(stage, "absent worker");
  stage.say(begun.story, "Worker never delivers");
  return played({ ...begun, status: "cancelled-absent", row: LEDGER.absent });
}

async function reviewTimeout(stage: Stage): Promise<Played> {
  const begun = await matched(stage, "review time-out");
  await deliver(stage, begun.story, begun.worker, begun.id);
  stage.say(begun.story, "Client never responds");
  return played({ ...begun, status: "settled-all-met", row: LEDGER.approved });
}

async function scriptedClient(stage: Stage): Promise<Played> {
  const story = "scripted Client";
  const worker = await stage.newAgent("Worker");
  const client = await stage.sandbox.play({ role: "client", price: "50", title: `Demo: ${story}` });
  const id = client.contractId as string;
  stage.say(story, `the sandbox's Client posted ${id}`);
  await accept(stage, story, worker, id);
  await deliver(stage, story, worker, id);
  await stage.sandbox.ended(client);
  stage.say(story, "the sandbox's Client approved");
  const row = LEDGER.approved;
  const counterparties = [counterparty(client, row.clientOut - row.clientIn)];
  return played({ story, id, status: "settled-all-met", row, client: null, worker, counterparties });
}

async function scriptedWorkerAndJury(stage: Stage): Promise<Played> {
  const story = "dispute, scripted jury";
  const client = await stage.newAgent("Client");
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  // Backup Agents must have staked before the match of the contract that they judge.
  const votes = ["met", "met", "not met"];
  const jury = await stage.sandbox.play({ role: "backup-agents", contractId: id, votes });
  const worker = await stage.sandbox.play({ role: "worker", contractId: id });
  await stage.sandbox.ended(worker);
  stage.say(story, "the sandbox's Worker accepted and delivered");
  ok(await client.pay(`/v1/contracts/${id}/dispute`));
  await stage.sandbox.ended(jury);
  stage.say(story, "Client disputed; the sandbox's three Backup Agents voted");
  const { status, row } = workedOut("dispute, 2 of 3 met");
  const counterparties = [counterparty(worker, row.workerOut - row.workerIn)];
  return played({ story, id, status, row, client, worker: null, counterparties });
}

/** Initial funds of the sandbox's counterparties, in base units. */
const COUNTERPARTY_FUNDS = 1_000_000_000_000n;

function counterparty({ role, addresses }: Play, gain: bigint): Played["counterparties"][number] {
  return { name: `sandbox ${role}`, address: addresses[0] as Address, holds: COUNTERPARTY_FUNDS + gain };
}

async function post(
  stage: Stage,
  story: string,
  initiator: Agent,
  award: Record<string, unknown>,
): Promise<string> {
  const inSeconds = async (seconds: number) => new Date(((await stage.now()) + seconds) * 1000).toISOString();
  const body = { title: `Demo: ${story}`, verificationMode: "privacy-preserving", ...award };
  const created = ok(await initiator.pay<Json>("/v1/contracts", await draft({ inSeconds }, body)));
  stage.say(
    story,
    `${initiator.name} posted ${created.id} and paid ${created.escrowedFunds ?? created.workerStake}`,
  );
  return created.id;
}

/** A Client's open tender, accepted by a Worker. */
export async function matched(stage: Stage, story: string) {
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  await accept(stage, story, worker, id);
  return { story, client, worker, id };
}

async function accept(stage: Stage, story: string, worker: Agent, id: string): Promise<void> {
  const accepted = ok(await worker.pay<Json>(`/v1/contracts/${id}/accept`, { accept: true }));
  stage.say(story, `${worker.name} accepted and staked ${accepted.workerStake}: ${accepted.status}`);
}

export async function deliver(stage: Stage, story: string, worker: Agent, id: string): Promise<void> {
  const answer = await worker.pay<Json>(`/v1/contracts/${id}/delivery`, { delivery: `ipfs://summary-${id}` });
  stage.say(story, `${worker.name} delivered: ${ok(answer).status}`);
}

type Unusual = "bystanders" | "counterparties" | "jurors";

export function played(outcome: Omit<Played, Unusual> & Partial<Pick<Played, Unusual>>): Played {
  return { bystanders: [], counterparties: [], jurors: [], ...outcome };
}

/** By hand from docs/rules.md 52 (price 50.0, three criteria, base units): not from the code that is checked. */
interface LedgerRow {
  /** Paid in and received by the party. */
  clientIn: bigint;
  clientOut: bigint;
  workerIn: bigint;
  workerOut: bigint;
  treasuryOut: bigint;
}

/** A Backup Agent's receipts from one dispute: base units of the stablecoin, and whole tokens. */
export interface JurorRow {
  out: bigint;
  tokens: bigint;
}

const PRICE = 50_000_000n;
const STAKE = 2_500_000n;
const BOND = 2_500_000n;

/** A Backup Agent's bond on three criteria. */
export const JUROR_BOND = 7_500_000n;

const PAID_IN = { clientIn: PRICE, workerIn: STAKE };

const LEDGER = {
  approved: { ...PAID_IN, clientOut: 0n, workerOut: 50_000_000n, treasuryOut: 2_500_000n },
  unmatched: { clientIn: PRICE, clientOut: 50_000_000n, workerIn: 0n, workerOut: 0n, treasuryOut: 0n },
  withdrawn: { ...PAID_IN, clientOut: 50_750_000n, workerOut: 1_750_000n, treasuryOut: 0n },
  absent: { ...PAID_IN, clientOut: 52_000_000n, workerOut: 0n, treasuryOut: 500_000n },
} satisfies Record<string, LedgerRow>;

/** A dispute at the demo's price: its votes, and what each party and Backup Agent must receive. */
export function workedOut(name: string) {
  const result = WORKED_RESULTS.find((one) => one.name === name && one.price === "50.0");
  if (result === undefined) throw new Error(`docs/rules.md 52 works out no "${name}" at 50.0`);
  const usd = (amount: string) => parseUnits(amount, 6);
  const row: LedgerRow = {
    clientIn: PRICE + BOND,
    clientOut: usd(result.client),
    workerIn: STAKE,
    workerOut: usd(result.worker),
    treasuryOut: usd(result.treasury),
  };
  const dues = result.jury.map((out, i) => ({ out: usd(out), tokens: BigInt(result.tokens[i] ?? 0) }));
  return { status: result.status, votes: ballotsOf(result), row, dues };
}
