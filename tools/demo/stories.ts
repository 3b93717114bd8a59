/** The demo's stories. Each is one Working Contract with the ledger that must result. */

import type { Agent as Connected } from "@working-contracts/client/index";
import type { Address } from "viem";
import { type Agent, expectOk, freshKey } from "./agent.js";
import { type JurorRow, LEDGER, type LedgerRow } from "./expected.js";
import type { Sandbox } from "./sandbox.js";

export interface Stage {
  newAgent(role: string): Promise<Agent>;
  sandbox: Sandbox;
  /** Seconds, on the chain's clock. */
  now(): Promise<number>;
  say(story: string, line: string): void;
  /** The agent with the published client, which signs each action and seals what it can. */
  connect(agent: Agent): Promise<Connected>;
}

/** A played contract, with the addresses whose money changes. */
export interface Played {
  story: string;
  contractId: string;
  expectedStatus: string;
  expected: LedgerRow;
  client: Agent | null;
  worker: Agent | null;
  /** Agents that must end with the money that they started with. */
  bystanders: Agent[];
  /** The sandbox's counterparties, and what they must hold at the end. */
  counterparties: { name: string; address: Address; holds: bigint }[];
  jurors: { agent: Agent; due: JurorRow }[];
  /** Work that remains once voting has closed. */
  afterVoting?: () => Promise<void>;
}

export type Story = (stage: Stage) => Promise<Played>;

const PRICE = 50.0;
export const DAY = 86_400;
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
];

/** Seconds after `now` at which every deadline of the demo's contracts has passed. */
export const ALL_DEADLINES_AFTER = 4 * DAY + 1;

async function directAward(stage: Stage): Promise<Played> {
  const story = "direct award";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "direct_award", worker: worker.address });
  await accept(stage, story, worker, id);
  await deliver(stage, story, worker, id);
  const approved = expectOk(await client.post(`/v1/contracts/${id}/approve`));
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
    racers.map((racer) => racer.post(`/v1/contracts/${id}/accept`, { accept: true })),
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
  expectOk(await client.post(`/v1/contracts/${id}/approve`));
  stage.say(story, `Client approved the winner, ${worker.name}`);
  const bystanders = racers.filter((racer) => racer !== worker);
  return played({ story, id, status: "settled-all-met", row: LEDGER.approved, client, worker, bystanders });
}

async function listing(stage: Stage): Promise<Played> {
  const story = "worker-initiated listing";
  const [client, worker] = await Promise.all([stage.newAgent("Buyer"), stage.newAgent("Worker")]);
  const id = await post(stage, story, worker, { awardMethod: "open_tender", initiator: "worker" });
  const matched = expectOk(await client.post(`/v1/contracts/${id}/accept`, { accept: true }));
  stage.say(story, `Buyer accepted and paid ${matched.escrowedFunds}: ${matched.status}`);
  await deliver(stage, story, worker, id);
  expectOk(await client.post(`/v1/contracts/${id}/approve`));
  stage.say(story, "Buyer approved");
  return played({ story, id, status: "settled-all-met", row: LEDGER.approved, client, worker });
}

async function declined(stage: Stage): Promise<Played> {
  const story = "decline";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "direct_award", worker: worker.address });
  const answer = expectOk(await worker.post(`/v1/contracts/${id}/accept`, { accept: false }));
  stage.say(story, `named Worker declined: ${answer.status}`);
  return played({ story, id, status: "cancelled-unmatched", row: LEDGER.unmatched, client, worker });
}

async function cancelled(stage: Stage): Promise<Played> {
  const story = "cancel";
  const client = await stage.newAgent("Client");
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  const answer = expectOk(await client.post(`/v1/contracts/${id}/cancel`));
  stage.say(story, `Client cancelled: ${answer.status}`);
  return played({ story, id, status: "cancelled-by-initiator", row: LEDGER.unmatched, client, worker: null });
}

async function withdrawn(stage: Stage): Promise<Played> {
  const story = "withdraw";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  await accept(stage, story, worker, id);
  const answer = expectOk(await worker.post(`/v1/contracts/${id}/withdraw`));
  stage.say(story, `Worker withdrew: ${answer.status}`);
  return played({ story, id, status: "cancelled-withdrawn", row: LEDGER.withdrawn, client, worker });
}

async function absentWorker(stage: Stage): Promise<Played> {
  const story = "absent worker";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  await accept(stage, story, worker, id);
  stage.say(story, "Worker never delivers");
  return played({ story, id, status: "cancelled-absent", row: LEDGER.absent, client, worker });
}

async function reviewTimeout(stage: Stage): Promise<Played> {
  const story = "review time-out";
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  await accept(stage, story, worker, id);
  await deliver(stage, story, worker, id);
  stage.say(story, "Client never responds");
  return played({ story, id, status: "settled-all-met", row: LEDGER.approved, client, worker });
}

export async function post(
  stage: Stage,
  story: string,
  initiator: Agent,
  award: Record<string, unknown>,
): Promise<string> {
  const now = await stage.now();
  const at = (days: number) => new Date((now + days * DAY) * 1000).toISOString();
  const created = expectOk(
    await initiator.post("/v1/contracts", {
      idempotencyKey: freshKey(),
      title: `Demo: ${story}`,
      taskDescription: "Summarise the attached paper in one page.",
      acceptanceCriteria: ["One page", "Names the method", "Names the limits"],
      contractType: "fixed",
      verificationMode: "privacy-preserving",
      budgetOrPrice: PRICE,
      matchDeadline: at(1),
      withdrawalDeadline: at(2),
      deliveryDeadline: at(3),
      reviewDeadline: at(4),
      ...award,
    }),
  );
  stage.say(
    story,
    `${initiator.name} posted ${created.id} and paid ${created.escrowedFunds ?? created.workerStake}`,
  );
  return created.id;
}

export async function accept(stage: Stage, story: string, worker: Agent, id: string): Promise<void> {
  const matched = expectOk(await worker.post(`/v1/contracts/${id}/accept`, { accept: true }));
  stage.say(story, `${worker.name} accepted and staked ${matched.workerStake}: ${matched.status}`);
}

export async function deliver(stage: Stage, story: string, worker: Agent, id: string): Promise<void> {
  const answer = await worker.post(`/v1/contracts/${id}/delivery`, { delivery: `ipfs://summary-${id}` });
  stage.say(story, `${worker.name} delivered: ${expectOk(answer).status}`);
}

export function played(outcome: {
  story: string;
  id: string;
  status: string;
  row: LedgerRow;
  client: Agent | null;
  worker: Agent | null;
  bystanders?: Agent[];
}): Played {
  return {
    story: outcome.story,
    contractId: outcome.id,
    expectedStatus: outcome.status,
    expected: outcome.row,
    client: outcome.client,
    worker: outcome.worker,
    bystanders: outcome.bystanders ?? [],
    counterparties: [],
    jurors: [],
  };
}
