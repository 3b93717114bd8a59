/** Asks a Backup Agent on whatever page it opens to open its votes, once that is due: after a day they lose their bonds. */
import type { Agent } from "@working-contracts/client/index";
import { type Account, ask, votedOn } from "./account.js";

/** Never opens a vote unasked: the wallet has to sign for that. */
export function remindOfVotes(account: Account): void {
  const asked = new Set<string>();
  let connected: Agent | null = null;
  const remind = async (agent: Agent): Promise<void> => {
    for (const id of await dueVotes(agent)) {
      if (agent !== connected || asked.has(id)) continue;
      asked.add(id);
      const question = `Voting on ${id} has ended. Open your vote within a day, or it loses its bond`;
      if ((await ask(question, { choices: ["Later", "Open it now"] })) === "Open it now")
        await account.perform("Open your vote", (by) => openVote(by, id));
    }
  };
  // The next page, event or minute retries.
  const check = () => connected && remind(connected).catch(() => {});
  account.onChange((agent) => {
    connected = agent;
    check();
  });
  addEventListener("page-updated", check);
}

export async function openVote(agent: Agent, id: string): Promise<void> {
  const opened = await agent.openVotes({ wait: false, id });
  if (!opened.includes(id)) throw new Error("it cannot be opened yet, or is open already");
}

/** Of those that the service lists, and those that this browser remembers. */
async function dueVotes(agent: Agent): Promise<string[]> {
  const backupAgent = agent.address;
  const { items } = await agent.votes({ backupAgent, status: "disputed", limit: 200 });
  const opened = items.filter(({ vote }) => vote !== null).map(({ contractId }) => contractId);
  const due: string[] = [];
  for (const id of new Set([...votedOn(backupAgent), ...items.map(({ contractId }) => contractId)])) {
    if (opened.includes(id) || (await agent.get(id)).status !== "disputed") continue;
    const query = { contractId: id, agent: backupAgent, type: "deadline.approaching" };
    const { data } = await agent.call("GET /v1/events", { query });
    if (data.some((event) => event.data.deadline === "openingDeadline")) due.push(id);
  }
  return due;
}
