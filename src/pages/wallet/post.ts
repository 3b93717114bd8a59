/** The form that posts a contract: criteria are added and removed, deadlines picked in words, the quote follows the price. */
import { type Agent, type Draft, type Duration, ServiceError } from "@working-contracts/client/index";
import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import { type Account, onSubmit } from "./account.js";

/** How long the service keeps a quote open. */
const KEPT_MS = 30 * 60_000;
const STAGES = ["match", "withdrawal", "delivery", "review"] as const;

export function showPostForm(account: Account): void {
  const form = document.querySelector<HTMLFormElement>("form#post");
  if (form === null) return;
  const list = form.querySelector("ol") as HTMLOListElement;
  const [first] = list.children;
  const add = form.querySelector("#add-criterion") as HTMLButtonElement;
  const fieldOf = (name: string): string => String(new FormData(form).get(name) ?? "");

  add.addEventListener("click", () => {
    const item = first?.cloneNode(true) as HTMLElement;
    const input = item.querySelector("input") as HTMLInputElement;
    input.value = "";
    list.append(item);
    number();
    input.focus();
  });
  list.addEventListener("click", (event) => {
    const item = (event.target as HTMLElement).closest("button")?.closest("li");
    if (!item) return;
    item.remove();
    number();
    list.querySelector("input")?.focus();
  });
  const number = (): void => {
    const items = [...list.children];
    for (const [i, item] of items.entries()) {
      const remove = item.querySelector("button") as HTMLButtonElement;
      item.querySelector("input")?.setAttribute("aria-label", `Criterion ${i + 1}`);
      remove.setAttribute("aria-label", `Remove criterion ${i + 1}`);
      remove.disabled = items.length === 1;
    }
    add.disabled = items.length >= Number(list.dataset.most);
  };
  number();

  const quote = form.querySelector("output") as HTMLOutputElement;
  const showQuote = (): void => {
    const price = parseDecimal(fieldOf("price"));
    const { stake, fee, symbol } = quote.dataset;
    const share = (ratio: string | undefined): string =>
      `${formatDecimal(((price ?? 0n) * BigInt(Math.round(Number(ratio) * 10_000))) / 10_000n)} ${symbol}`;
    quote.textContent =
      price === null || price === 0n
        ? ""
        : fieldOf("listing") === "on"
          ? `You pay a stake of ${share(stake)} now, and get it back with the price, less a fee of ${share(fee)}, when the work is accepted.`
          : `You pay ${formatDecimal(price)} ${symbol} into the escrow now. The worker stakes ${share(stake)}, and receives the price less a fee of ${share(fee)}.`;
  };
  form.addEventListener("input", showQuote);
  showQuote();

  account.onChange((agent) => {
    form.hidden = agent === null;
    for (const note of document.querySelectorAll<HTMLElement>("[data-without-wallet]"))
      note.hidden = agent !== null;
  });
  /** The draft that was quoted last. The same form gets the same quote: an address can have five unpaid ones at a time. */
  let kept: { form: string; at: number; draft: Draft; isSigned?: true } | undefined;

  async function draftOf(agent: Agent): Promise<Draft> {
    const fields = new FormData(form as HTMLFormElement);
    const filledIn = JSON.stringify([...fields]);
    if (kept?.form === filledIn && performance.now() - kept.at < KEPT_MS) return kept.draft;
    const isListing = fieldOf("listing") === "on";
    const named = fieldOf("counterparty").trim();
    const materials = fieldOf("materials").trim();
    const after = Object.fromEntries(STAGES.map((stage) => [stage, fieldOf(stage)])) as Record<
      (typeof STAGES)[number],
      Duration
    >;
    const draft: Draft = {
      idempotencyKey: crypto.randomUUID(),
      title: fieldOf("title"),
      taskDescription: fieldOf("task"),
      acceptanceCriteria: fields.getAll("criterion").map(String),
      budgetOrPrice: fieldOf("price"),
      ...(isListing && { initiator: "worker" as const }),
      ...(named !== "" && (isListing ? { client: named } : { worker: named })),
      ...(materials !== "" && { supplementaryMaterials: materials }),
      ...(await agent.deadlines(after)),
    };
    kept = { form: filledIn, at: performance.now(), draft };
    return draft;
  }

  onSubmit(form, async () => {
    const create = async (agent: Agent) => {
      try {
        const created = await agent.create(await draftOf(agent));
        // A page that is shown again by the back button would post the same draft.
        kept = undefined;
        return created;
      } catch (error) {
        const { payment } = error as { payment?: object };
        if (kept && payment) kept = { ...kept, at: performance.now(), isSigned: true };
        // Refused as it is, so it must not be sent again: unless a payment for it, of this or an earlier try, can still be used.
        if (error instanceof ServiceError && !kept?.isSigned) kept = undefined;
        throw error;
      }
    };
    await account.perform("Post", create, {
      show: ({ id }) => location.assign(`/contracts/${id}`),
    });
  });
}
