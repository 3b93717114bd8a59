/** Asks a Backup Agent on whatever page it opens to open its votes, once that is due: after a day they lose their bonds. */

import type { Agent } from "@working-contracts/client/index";
import { votesKey } from "@working-contracts/client/session";
import { type Account, ask, submittedBy } from "./account.js";

const INTERVAL_MS = 60_000;

/** Never opens a vote unasked: the wallet has to sign for that. */
export function remindOfVotes(account: Account): void {
  const asked = new Set<string>();
  /** Contracts whose disputes have ended. */
  const ended = new Set<string>();
  let connected: Agent | null = null;
  let isRunning = false;
  let startedAt = Number.NEGATIVE_INFINITY;
  const remind = async (agent: Agent): Promise<void> => {
    for (const id of await dueVotes(agent, ended)) {
      if (agent !== connected || asked.has(id)) continue;
      asked.add(id);
      const question = `Voting on ${id} has ended. Open your vote within a day, or it loses its bond`;
      if ((await ask(question, { choices: ["Later", "Open it now"] })) === "Open it now")
        await account.perform("Open your vote", (by) => openVote(by, id));
    }
  };
  const check = async (): Promise<void> => {
    if (connected === null || isRunning || performance.now() < startedAt + INTERVAL_MS) return;
    isRunning = true;
    startedAt = performance.now();
    // A later update retries.
    await remind(connected).catch(() => {});
    isRunning = false;
  };
  account.onChange((agent) => {
    connected = agent;
    startedAt = Number.NEGATIVE_INFINITY;
    void check();
  });
  addEventListener("page-updated", check);
}

export async function openVote(agent: Agent, id: string): Promise<void> {
  const opened = await agent.openVotes({ wait: false, id });
  if (!opened.includes(id)) throw new Error("it cannot be opened yet, or is open already");
}

/** Of those that the service lists, and those that this browser remembers. */
async function dueVotes(agent: Agent, ended: Set<string>): Promise<string[]> {
  const backupAgent = agent.address;
  const { items } = await agent.votes({ backupAgent, status: "disputed", limit: 200 });
  const opened = items.filter(({ vote }) => vote !== null).map(({ contractId }) => contractId);
  const remembered = await submittedBy(backupAgent).read(votesKey(agent.network));
  const due: string[] = [];
  for (const id of new Set([...remembered, ...items.map(({ contractId }) => contractId)])) {
    if (ended.has(id) || opened.includes(id)) continue;
    // A failure of one must not hide the others.
    if (await isDue(agent, id, ended).catch(() => false)) due.push(id);
  }
  return due;
}

async function isDue(agent: Agent, id: string, ended: Set<string>): Promise<boolean> {
  const { status } = await agent.get(id);
  if (/^(resolved|settled|cancelled)/.test(status)) ended.add(id);
  if (status !== "disputed") return false;
  const query = { contractId: id, agent: agent.address, type: "deadline.approaching" };
  const { data } = await agent.call("GET /v1/events", { query });
  return data.some((event) => event.data.deadline === "openingDeadline");
}
