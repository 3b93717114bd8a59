/** The actions of an agent's own page: profile and stake. */
import type { Agent } from "@working-contracts/client/index";
import type { Account } from "./account.js";

export function showAgentActions(account: Account): void {
  const section = document.getElementById("own");
  if (section === null) return;
  account.onChange((agent) => {
    section.hidden = agent === null || agent.address !== section.dataset.agent;
  });
  for (const form of section.querySelectorAll<HTMLFormElement>("form[data-action]")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const fields = new FormData(form);
      const textOf = (name: string) => String(fields.get(name) ?? "").trim();
      form.inert = true;
      const isOffChain = form.dataset.action === "profile";
      const perform = async (agent: Agent): Promise<unknown> => {
        if (isOffChain)
          return agent.setProfile({ displayName: textOf("displayName") || null, bio: textOf("bio") || null });
        if (form.dataset.action === "unstake") return agent.unstake();
        return agent.stake(textOf("amount") || undefined);
      };
      const done = await account.perform(form.dataset.name ?? "Action", perform, { isOffChain });
      form.inert = false;
      if (done) location.reload();
    });
  }
}
