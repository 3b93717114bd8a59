/** Pages and API show the same figures. */
import type { Page } from "playwright-core";
import type { Address } from "viem";
import { beforeAll, describe, expect, inject, test } from "vitest";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { LedgerView, SettlementView } from "../../src/features/contracts/ledger.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { type ProtocolView, presentParameters } from "../../src/features/protocol/routes.js";
import type { RecordView } from "../../src/features/records/routes.js";
import type { VoteView } from "../../src/features/votes/view.js";
import { caller } from "../support/agent.js";
import { ok } from "../support/contracts.js";
import { useWorld } from "../support/world.js";
import { leadOn, useBrowser } from "./support/browser.js";

const isSkipped = inject("chromium") === null;
const seed = isSkipped ? (undefined as never) : inject("seed");
const surfer = useBrowser();
let page: Page;

beforeAll(async () => {
  if (!isSkipped) page = await surfer.open("/", { javaScriptEnabled: false });
});

async function api<T>(path: string): Promise<T> {
  const call = caller(inject("stack").url, { authorization: `Bearer ${seed.apiKey}` });
  return ok(await call<T>("GET", `/v1${path}`));
}

/** The attribute of each element that the selector finds. */
function attributes(selector: string, name: string): Promise<string[]> {
  return page.evaluate(
    `[...document.querySelectorAll(${JSON.stringify(selector)})].map((one) => one.getAttribute("${name}"))`,
  );
}

/** The line of the balance. On the screen it can break anywhere. */
async function equation(): Promise<string> {
  return (await page.locator("#balance").innerText()).replaceAll(/\s+/g, " ");
}

const CONTRACTS = [
  ...(["disputed", "approved", "voting", "open", "matched"] as const),
  ...(["underReview", "listing", "withdrawn", "absent", "hostile"] as const),
];

describe.skipIf(isSkipped)("a contract's page", () => {
  test.each(CONTRACTS)("%s: matches the API", async (name) => {
    const id = seed[name];
    const [contract, settlement, ledger, votes, { escrowTerms }] = await Promise.all([
      api<ContractView>(`/contracts/${id}`),
      api<SettlementView>(`/contracts/${id}/settlement`),
      api<LedgerView>(`/contracts/${id}/ledger`),
      api<VoteView[]>(`/contracts/${id}/votes`),
      api<TermsView>(`/contracts/${id}/terms`),
    ]);
    await page.goto(`/contracts/${id}`);

    const summary = page.locator("#summary");
    expect(await summary.locator(".badge").getAttribute("title")).toBe(contract.status);
    expect(await summary.locator(".amount").innerText()).toBe(`${contract.budgetOrPrice} USDC`);
    expect(await page.locator(".criteria .badge").allInnerTexts()).toEqual(
      contract.criteriaMet ?? contract.acceptanceCriteria.map(() => "undecided"),
    );
    const parameters = presentParameters(escrowTerms.parameters);
    const names = await page.locator("#parameters dt").allTextContents();
    expect(await attributes("#parameters [data-value]", "data-value")).toEqual(
      names.map((name) => String(parameters[name as keyof ProtocolView])),
    );
    expect(names).toHaveLength(Object.keys(parameters).length);
    const { matchDeadline, withdrawalDeadline, deliveryDeadline, reviewDeadline } = contract;
    expect(await attributes("#clock time", "datetime")).toEqual(
      expect.arrayContaining([matchDeadline, withdrawalDeadline, deliveryDeadline, reviewDeadline]),
    );

    expect(await equation()).toBe(`${ledger.in} USDC in − ${ledger.out} USDC out = ${ledger.held} USDC held`);
    expect(await page.locator("#escrow .notice").innerText()).toContain(
      `The token reports ${ledger.balance} USDC`,
    );
    expect(ledger.balance).toBe(ledger.held);
    expect(await page.locator("#escrow .entries .figure").allInnerTexts()).toEqual(
      ledger.entries.map(({ direction, amount }) => `${direction === "in" ? "+" : "−"}${amount}`),
    );
    for (const { transactionHash } of ledger.entries) {
      expect(await page.locator("#escrow .tx").allInnerTexts()).toContainEqual(
        expect.stringContaining(transactionHash),
      );
    }

    expect(await page.locator("#settlement td.number").allInnerTexts()).toEqual(
      settlement.legs.map(({ amount }) => amount),
    );
    const words = { held: "held for review", queued: "pending", confirmed: "paid" };
    expect(await page.locator("#settlement td:nth-child(4)").allInnerTexts()).toEqual(
      settlement.legs.map(({ state }) => words[state]),
    );

    const opened = votes.filter(({ majorityOutcome }) => majorityOutcome !== null);
    expect(await page.locator("#votes tbody .badge").allInnerTexts()).toEqual(opened.map(({ vote }) => vote));
    if (contract.status === "disputed") {
      expect(await page.locator("#votes").innerText()).toContain(
        `${contract.backupAgents.length} ballots so far, 0 of them opened`,
      );
    }
  });

  test("shows a stranger's direct transfer separately in the books", async () => {
    await (await useWorld()).fundUsd(seed.withdrawn as Address, "3");
    const ledger = () => api<LedgerView>(`/contracts/${seed.withdrawn}/ledger`);
    await expect.poll(async () => (await ledger()).unbooked).toBe("3.0");
    expect(await ledger()).toMatchObject({ in: "52.5", out: "52.5", held: "0.0", balance: "3.0" });
    await page.goto(`/contracts/${seed.withdrawn}`);
    expect(await page.locator("#escrow .notice").innerText()).toContain(
      "Another 3.0 USDC arrived by direct transfer.",
    );
  });
});

describe.skipIf(isSkipped)("the other pages", () => {
  test("the feed's pages contain the API's list once, in its order", async () => {
    const contracts = await api<ContractView[]>("/contracts?sort=-budgetOrPrice&limit=100");
    const seen: string[] = [];
    await page.goto("/?sort=-budgetOrPrice&limit=4");
    for (;;) {
      const links = await attributes(".card h2 a", "href");
      seen.push(...links.map((path) => path.replace("/contracts/", "")));
      const next = page.getByRole("link", { name: "Next page" });
      if ((await next.count()) === 0) break;
      await leadOn(page, () => next.click());
    }
    expect(seen).toEqual(contracts.map(({ id }) => id));
    expect(seen.length).toBeGreaterThan(8);
  });

  test("an agent's page shows its record", async () => {
    const record = await api<RecordView>(`/agents/${seed.worker}/record`);
    await page.goto(`/agents/${seed.worker}`);
    const { asWorker, asClient } = record;
    const rows = [asWorker, asClient].map((role) => [
      ...[role.active, role.completed, role.withdrawn, role.absent],
      ...[role.disputesWon, role.disputesLost, role.disputesSplit],
      ...[`${role.settledValue} USDC`, `${role.received} USDC`],
    ]);
    expect(await page.locator("#record td").allInnerTexts()).toEqual(
      rows[0]?.flatMap((value, i) => [String(value), String(rows[1]?.[i])]),
    );
    expect(asWorker).toMatchObject({
      completed: 2,
      withdrawn: 1,
      absent: 1,
      disputesSplit: 1,
      settledValue: "100.0",
      // 35.0 from the dispute, 47.5 and the stake from the approval, 1.75 from the withdrawal.
      received: "86.75",
    });
    expect(await page.locator("h1").innerText()).toBe("Tern");
    expect(await page.getByText(/^active/i).allInnerTexts()).toEqual(["Active"]);

    // The seed is played within two days, which can belong to two months.
    const months = await page.locator("#earnings tbody tr").allInnerTexts();
    expect(months).toHaveLength(12);
    const figures = months.map((row) => row.split("\t"));
    const sumOf = (column: number) =>
      figures.reduce((sum, row) => sum + Number.parseFloat(row[column] as string), 0);
    expect(sumOf(1)).toBe(4);
    expect(sumOf(2)).toBe(Number(asWorker.received));
  });

  test("parameters match the API", async () => {
    const parameters = await api<ProtocolView>("/protocol");
    await page.goto("/parameters");
    const names = await page.locator("#parameters dt").allInnerTexts();
    const values = await attributes("#parameters [data-value]", "data-value");
    expect(Object.fromEntries(names.map((name, i) => [name, values[i]]))).toEqual(
      Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)])),
    );
  });
});
