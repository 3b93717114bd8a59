/** The actions of a contract's page: shows those that the connected agent can take now. And votes that wait to be opened. */

import type { Agent, Contract, Outcome, ReferenceField } from "@working-contracts/client/index";
import { everyEvent, votesKey } from "@working-contracts/client/session";
import { visibleText } from "@working-contracts/protocol/json";
import { complaintsCloseAt } from "@working-contracts/protocol/status";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { type Account, ask, onSubmit, submittedBy, tell } from "./account.js";

type Fields = (name: string) => string;

interface Action {
  isOpen: (contract: Contract, me: string, at: { now: number; invited: string; voting: string }) => boolean;
  /** A text that it returns is shown after "done". */
  perform: (agent: Agent, id: string, fields: Fields, contract: Contract) => Promise<unknown>;
}

const initiatorOf = ({ initiator, client, worker }: Contract) => (initiator === "worker" ? worker : client);
const isParty = ({ client, worker }: Contract, me: string) => me === client || me === worker;
const wasMatched = ({ escrowedFunds, workerStake }: Contract) =>
  escrowedFunds !== null && workerStake !== null;

/** By the name of the form in src/pages/contract/page.tsx. */
const ACTIONS: Record<string, Action> = {
  accept: {
    isOpen: (c, me, { invited }) =>
      c.status === "created" && me !== initiatorOf(c) && [ZERO_ADDRESS, me].includes(invited),
    perform: (agent, id) => agent.accept(id),
  },
  decline: {
    isOpen: (c, me, { invited }) => c.status === "created" && me === invited,
    perform: (agent, id) => agent.decline(id),
  },
  cancel: {
    isOpen: (c, me) => c.status === "created" && me === initiatorOf(c),
    perform: (agent, id) => agent.cancel(id),
  },
  deliver: {
    isOpen: (c, me) => c.status === "matched" && me === c.worker,
    perform: (agent, id, field) =>
      agent.deliver(id, field("reference"), field("seal") === "" ? {} : { seal: true }),
  },
  withdraw: {
    isOpen: (c, me, { now }) =>
      c.status === "matched" && me === c.worker && now < Date.parse(c.withdrawalDeadline) / 1000,
    perform: (agent, id) => agent.withdraw(id),
  },
  approve: {
    isOpen: (c, me) => c.status === "under-review" && me === c.client,
    perform: (agent, id) => agent.approve(id),
  },
  dispute: {
    isOpen: (c, me) => c.status === "under-review" && me === c.client,
    perform: (agent, id) => agent.dispute(id),
  },
  share: {
    isOpen: (c, me) => c.status === "disputed" && isParty(c, me),
    async perform(agent, id) {
      const failures: Error[] = [];
      const shared = await agent.shareDelivery(id, { onFailure: (failure) => failures.push(failure) });
      if (shared.length === 0) {
        throw failures[0] ?? new Error("no Backup Agent has asked for it, or it is not sealed");
      }
      return failures.map(({ message }) => `Not shared: ${message}`).join("; ");
    },
  },
  vote: {
    isOpen: (c, me, { voting }) =>
      c.status === "disputed" && voting === "open" && !isParty(c, me) && !c.backupAgents.includes(me),
    perform: (agent, id, field, { acceptanceCriteria }) =>
      agent.vote(
        id,
        acceptanceCriteria.map((_, i) => field(`vote-${i}`) as Outcome),
      ),
  },
  "open-vote": {
    isOpen: (c, me, { voting }) =>
      c.status === "disputed" && voting === "over" && c.backupAgents.includes(me),
    perform: openVote,
  },
  complain: {
    // Whatever the status (docs/rules.md 53).
    isOpen: (c, me, { now }) =>
      isParty(c, me) && wasMatched(c) && now < complaintsCloseAt(Date.parse(c.reviewDeadline) / 1000),
    perform: (agent, id, field) => agent.complain(id, { reason: field("reason") }),
  },
};

export function showContractActions(account: Account): void {
  const section = document.getElementById("act");
  const id = section?.dataset.contract;
  if (section == null || id === undefined) return;
  const forms = [...section.querySelectorAll<HTMLFormElement>("form[data-action]")];
  const references = readReferences(id, account);
  let contract: Contract | null = null;
  let connected: Agent | null = null;
  /**
   * The chain's time in seconds: as of the page's load, plus the time since then in which the machine was awake.
   * `voting` ("open", "over") is as of the newest update. `invited` is the party that the terms name: the zero address
   * if anyone can accept.
   */
  const at = () => ({
    now: Number(section.dataset.now) + performance.now() / 1000,
    invited: section.dataset.invited ?? "",
    voting: document.querySelector<HTMLElement>("#clock ol")?.dataset.voting ?? "",
  });

  const update = async (agent: Agent | null): Promise<void> => {
    const latest = agent === null ? null : await agent.get(id);
    if (agent !== connected) return;
    contract = latest;
    for (const form of forms) {
      const action = ACTIONS[form.dataset.action ?? ""];
      form.hidden = agent === null || contract === null || !action?.isOpen(contract, agent.address, at());
    }
    section.hidden = forms.every((form) => form.hidden);
    references.show(agent);
  };

  account.onChange((agent) => {
    connected = agent;
    update(agent).catch((error) => account.failed("Actions", error));
  });
  addEventListener("page-updated", () => {
    references.show(connected);
    // The next event or minute retries.
    if (connected !== null) update(connected).catch(() => {});
  });
  for (const form of forms) {
    onSubmit(form, async () => {
      const action = ACTIONS[form.dataset.action ?? ""];
      const fields = new FormData(form);
      const field: Fields = (name) => String(fields.get(name) ?? "");
      await account.perform(
        form.dataset.name ?? "Action",
        async (agent) => action?.perform(agent, id, field, contract as Contract),
        { show: (note, agent) => update(agent).then(() => note) },
      );
    });
  }
}

/** Decrypts a reference when its reader opens it, and never unasked: the wallet can have to sign for that. */
function readReferences(id: string, account: Account) {
  let reader: Agent | null = null;
  let isReading = false;
  /** What was decrypted, by the encrypted text: after a reorg the same field can hold another. */
  const texts = new Map<string | null, string>();
  /** The elements as the service sent them. */
  const originals = new Map<Element, string | null>();
  const replaceText = (element: Element, text: string): void => {
    if (!originals.has(element)) originals.set(element, element.textContent);
    element.textContent = text;
  };
  const servedIn = (pre: HTMLElement) => originals.get(pre) ?? pre.textContent;

  /** Live updates bring the encrypted text back, so what was decrypted is shown again; to another reader it is not. */
  const show = (agent: Agent | null): void => {
    if (agent?.address !== reader?.address) {
      texts.clear();
      for (const [element, text] of originals) element.textContent = text;
      originals.clear();
    }
    for (const element of originals.keys()) if (!element.isConnected) originals.delete(element);
    reader = agent;
    if (agent === null) return;
    for (const pre of document.querySelectorAll<HTMLElement>("pre[data-reference]")) {
      const text = texts.get(servedIn(pre));
      if (text !== undefined) replaceText(pre, visibleText(text));
      const summary = pre.parentElement?.querySelector("summary");
      const isOpen = pre.closest("details")?.open === true;
      const toDecrypt = isOpen ? "close and open to decrypt" : "open to decrypt";
      const state = text === undefined ? toDecrypt : "decrypted for you";
      if (summary) replaceText(summary, `${summary.dataset.name}: ${state}`);
    }
  };

  document.addEventListener("click", async ({ target }) => {
    const details = (target as Element).closest("summary[data-name]")?.parentElement as HTMLDetailsElement;
    const pre = details?.querySelector<HTMLElement>("pre");
    const field = pre?.dataset.reference as ReferenceField | undefined;
    if (!pre || field === undefined || details.open || reader === null) return;
    const served = servedIn(pre);
    if (texts.has(served)) return;
    if (isReading) return tell("Decrypt: still working on the other reference");
    const agent = reader;
    isReading = true;
    try {
      tell("Decrypt: working");
      const text = await agent.readReference(id, field);
      if (text === null) throw new Error("you have no key for it yet; a party has to share it with you");
      if (reader === agent) texts.set(served, text);
      show(reader);
      tell("Decrypt: done");
    } catch (error) {
      account.failed("Decrypt", error);
    }
    isReading = false;
  });
  return { show };
}

const INTERVAL_MS = 60_000;

/** Asks a Backup Agent on any page to open due votes, which lose their bonds after a day. Never opens one unasked. */
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

async function openVote(agent: Agent, id: string): Promise<void> {
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
  for await (const { data } of everyEvent((query) => agent.call("GET /v1/events", { query }), query))
    if (data.deadline === "openingDeadline") return true;
  return false;
}
