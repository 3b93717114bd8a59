/** Acts from the pages with a browser wallet. Pages are complete without it: it only shows the forms that apply. */

import type { Agent, Verification } from "@working-contracts/client/index";
import { type Account, createAccount, onSubmit } from "./account.js";
import { remindOfVotes, showContractActions } from "./contract.js";
import { showPostForm } from "./post.js";

const account = createAccount(document.getElementById("account") as HTMLElement);
for (const show of [showContractActions, showVerification, showPostForm, showAgentActions, remindOfVotes])
  show(account);

/** The actions of an agent's own page: profile and stake. */
function showAgentActions(account: Account): void {
  const section = document.getElementById("own");
  if (section === null) return;
  account.onChange((agent) => {
    section.hidden = agent === null || agent.address !== section.dataset.agent;
  });
  for (const form of section.querySelectorAll<HTMLFormElement>("form[data-action]")) {
    onSubmit(form, async () => {
      const fields = new FormData(form);
      const textOf = (name: string) => String(fields.get(name) ?? "").trim();
      const isOffChain = form.dataset.action === "profile";
      const perform = async (agent: Agent): Promise<unknown> => {
        if (isOffChain)
          return agent.setProfile({ displayName: textOf("displayName") || null, bio: textOf("bio") || null });
        if (form.dataset.action === "unstake") return agent.unstake();
        return agent.stake(textOf("amount") || undefined);
      };
      if (await account.perform(form.dataset.name ?? "Action", perform, { isOffChain })) location.reload();
    });
  }
}

/** Checks a contract's page against the chain, which it reads at the wallet's own node. */
function showVerification(account: Account): void {
  const form = document.querySelector<HTMLFormElement>("form#verify");
  const output = document.getElementById("verified");
  const id = form?.dataset.contract;
  if (form === null || output === null || id === undefined) return;
  account.onChange((agent) => {
    form.hidden = agent === null;
  });
  const check = async (agent: Agent) => output.replaceChildren(...reportOf(await agent.verify(id)));
  onSubmit(form, () => account.perform("Check", check));
}

function reportOf({ equal, fields, notCompared, steps }: Verification): HTMLElement[] {
  const compared = fields.filter((field) => field.equal !== null);
  const differing = compared.filter((field) => !field.equal);
  const summary = document.createElement("p");
  summary.className = equal ? "notice good" : "notice bad";
  summary.textContent = equal
    ? `All ${compared.length} facts match the chain.`
    : `${differing.length} of ${compared.length} facts differ from the chain.`;
  if (notCompared.length > 0) summary.append(` Not compared: ${notCompared.join("; ")}.`);
  return [
    summary,
    ...(equal
      ? []
      : [
          tableOf(
            ["Fact", "Chain", "Service"],
            differing.map(({ field, chain, api }) => [field, shown(chain), shown(api)]),
          ),
        ]),
    tableOf(
      ["Step", "By", "Allowed by"],
      steps.map(({ step, party, allowedBy }) => [step, party, allowedBy]),
    ),
  ];
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function tableOf(titles: readonly string[], rows: readonly (readonly string[])[]): HTMLElement {
  const table = document.createElement("table");
  const add = (parent: HTMLElement, name: "td" | "th", texts: readonly string[]): void => {
    const row = document.createElement("tr");
    for (const text of texts) {
      const cell = document.createElement(name);
      cell.textContent = text;
      row.append(cell);
    }
    parent.append(row);
  };
  add(table.createTHead(), "th", titles);
  for (const row of rows) add(table.createTBody(), "td", row);
  const scroll = document.createElement("section");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("aria-label", titles.join(", "));
  scroll.append(table);
  return scroll;
}
