/** The actions of an agent's own page: profile and stake. */
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
      const done = await account.perform(form.dataset.name ?? "Action", async (agent) => {
        if (form.dataset.action === "profile")
          return agent.setProfile({ displayName: textOf("displayName") || null, bio: textOf("bio") || null });
        if (form.dataset.action === "unstake") return agent.unstake();
        return agent.stake(textOf("amount") || undefined);
      });
      form.inert = false;
      if (done) location.reload();
    });
  }
}
