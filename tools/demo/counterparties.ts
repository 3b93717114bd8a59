/** Contracts with the sandbox's scripted counterparties: the agent plays one part, they play the others. */
import type { Address } from "viem";
import type { Play } from "../local/sandbox/plays.js";
import { expectOk } from "./agent.js";
import { LEDGER } from "./expected.js";
import { accept, deliver, type Played, played, post, type Stage, type Story } from "./stories.js";

export const COUNTERPARTY_STORIES: Story[] = [scriptedClient, scriptedWorkerAndJury];

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
  return {
    ...played({ story, id, status: "settled-all-met", row: LEDGER.approved, client: null, worker }),
    counterparties: [counterparty(client, LEDGER.approved.clientOut - LEDGER.approved.clientIn)],
  };
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
  expectOk(await client.post(`/v1/contracts/${id}/dispute`));
  await stage.sandbox.ended(jury);
  stage.say(story, "Client disputed; the sandbox's three Backup Agents voted");
  const row = LEDGER.twoOfThreeMet;
  return {
    ...played({ story, id, status: "settled-partial", row, client, worker: null }),
    counterparties: [counterparty(worker, row.workerOut - row.workerIn)],
  };
}

/** Initial funds of the sandbox's counterparties, in base units. */
const COUNTERPARTY_FUNDS = 1_000_000_000_000n;

function counterparty({ role, addresses }: Play, gain: bigint): Played["counterparties"][number] {
  return { name: `sandbox ${role}`, address: addresses[0] as Address, holds: COUNTERPARTY_FUNDS + gain };
}
