/** Properties of all pages, whatever they show. */
import { Hono } from "hono";
import { type FC, jsx } from "hono/jsx";
import { describe, expect, it } from "vitest";
import { type AppEnv, limitDownloads } from "../../../src/http/middleware.js";
import { duration, Json, percent, Transaction } from "../../../src/pages/components.js";
import { Clock } from "../../../src/pages/contract/clock.js";
import { Votes } from "../../../src/pages/contract/history.js";
import { Escrow, Settlement } from "../../../src/pages/contract/money.js";
import { pageRenderer } from "../../../src/pages/layout.js";
import { testApp, testConfig } from "../http/fixtures.js";

const BROWSER = { accept: "text/html,application/xhtml+xml" };

/** The page of one component. */
async function render(
  component: unknown,
  props: object,
  settings: Record<string, string> = {},
): Promise<string> {
  const deployment = { domain: "contracts.example", chainId: 84_532, asset: { symbol: "TUSD" } };
  const app = new Hono<AppEnv>();
  app.use(limitDownloads({ trustedProxies: 0 }));
  app.use(pageRenderer({ config: testConfig(settings), deployment } as never));
  app.get("/", (c) => c.render(jsx(component as FC, props) as never, { title: "x" }));
  return (await app.request("/")).text();
}

describe("pages", () => {
  it("run no inline script, load nothing from elsewhere, and cannot be framed", async () => {
    const answer = await testApp().app.request("/simulator?price=x");
    expect(answer.headers.get("content-security-policy")).toBe(
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    const text = await answer.text();
    expect(text).toMatch(/^<!DOCTYPE html>/i);
    expect(text).not.toMatch(
      /<script(?![^>]* src="\/assets\/)|<style| style=| on\w+=|https?:\/\/(?!www\.w3\.org)/,
    );
  });

  it("show a query as text", async () => {
    const text = await (
      await testApp().app.request(`/simulator?price=${encodeURIComponent('"><script>x</script>')}`)
    ).text();
    expect(text).not.toContain("<script>x");
    expect(text).toContain("&quot;&gt;&lt;script&gt;x");
  });

  it("name their assets by content, so that they can be cached forever", async () => {
    const { app } = testApp();
    const text = await (await app.request("/simulator?price=x")).text();
    const paths = [...text.matchAll(/"(\/assets\/[0-9a-f]{12}-[\w.]+)"/g)].map(([, path]) => path as string);
    expect(paths).toHaveLength(3);
    for (const path of paths) {
      const asset = await app.request(path);
      expect(asset.status).toBe(200);
      expect(asset.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    }
  });

  it("show the beginning of long stored data", async () => {
    const value = { text: "&".repeat(60_000) };
    const text = await render(Json, { value, summary: "Evidence" });
    expect(text).toContain("Evidence (the first 4096 of 60011 characters)");
    expect(text.length).toBeLessThan(30_000);
    expect(await render(Json, { value: { a: 1 }, summary: "Evidence" })).toContain(
      "{\n  &quot;a&quot;: 1\n}",
    );
  });

  it("respond for unknown paths if a browser asks, and leave them to the API otherwise", async () => {
    const { app } = testApp();
    const page = await app.request("/nowhere", { headers: BROWSER });
    expect(page.status).toBe(404);
    expect(await page.text()).toContain("There is no page at /nowhere.");
    for (const [path, headers] of [
      ["/nowhere", {}],
      ["/v1/nowhere", BROWSER],
    ] as const) {
      const answer = await app.request(path, { headers });
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject({ error: { code: "not_found" } });
    }
  });

  it("reject NUL characters and invalid addresses", async () => {
    const { app } = testApp();
    expect((await app.request("/?q=%00")).status).toBe(400);
    expect((await app.request("/contracts/0x12")).status).toBe(404);
    expect((await app.request("/live?contractId=nonsense")).status).toBe(400);
  });
});

describe("chain data", () => {
  const HASH = `0x${"12".repeat(32)}`;
  const show = (settings: Record<string, string>) => render(Transaction, { hash: HASH, block: 77 }, settings);

  it("links to the explorer if one is configured", async () => {
    const text = await show({ EXPLORER_URL: "https://explorer.example/" });
    expect(text).toContain(`href="https://explorer.example/tx/${HASH}"`);
    expect(text).toContain('href="https://explorer.example/block/77"');
  });

  it("is shown in full if there is none", async () => {
    const text = await show({});
    expect(text).toContain(`>${HASH}</code> in block 77`);
  });
});

describe("a contract's money", () => {
  const ENDED = "2026-01-31T12:00:00Z";
  const HELD_UNTIL = "2026-02-01T12:00:00Z";
  const pay = { name: "worker-pay", to: "worker", address: null, amount: "47.5" };
  const settlement = async (facts: object): Promise<string> => {
    const approved = { ending: "approved", endedAt: ENDED, settledAt: null, heldUntil: HELD_UNTIL, ...facts };
    return (await render(Settlement, { data: { settlement: approved } })).replaceAll(/<[^>]+>/g, "");
  };

  it("is held for review only while a payment is", async () => {
    expect(await settlement({ legs: [{ ...pay, state: "held" }] })).toContain(
      "Ended 2026-01-31 12:00 UTC, payouts held for review until 2026-02-01 12:00 UTC.",
    );
    expect(await settlement({ legs: [{ ...pay, state: "queued" }] })).toContain(
      "Ended 2026-01-31 12:00 UTC; the payout is pending.",
    );
  });

  it("has its hold among the deadlines while a payment is held, however the contract ended", async () => {
    const contract = {
      ...{ status: "cancelled-withdrawn", client: null, createdAt: "2026-01-30T12:00:00Z" },
      ...{ matchDeadline: ENDED, withdrawalDeadline: ENDED, deliveryDeadline: ENDED, reviewDeadline: ENDED },
    };
    const hold = async (state: string) => {
      const data = {
        ...{ contract, events: [], now: Date.parse(ENDED) / 1000 + 3600 },
        settlement: { endedAt: ENDED, heldUntil: HELD_UNTIL, legs: [{ ...pay, state }] },
      };
      return (await render(Clock, { data })).replaceAll(/<[^>]+>/g, "").match(/Payout hold.*/s)?.[0];
    };
    expect(await hold("held")).toContain("Payout hold before payouts are possible23 h left");
    expect(await hold("confirmed")).toBeUndefined();
  });

  it("is claimable if the token refused it at the settlement, and pending before", async () => {
    const jury = { ...pay, name: "jury-payout", to: "backup-agent" };
    const legs = [pay, jury].map((leg) => ({ ...leg, state: "queued" }));
    expect(await settlement({ legs })).toMatch(/Worker47.5pending.*Backup Agents47.5pending/);
    expect(await settlement({ legs, settledAt: HELD_UNTIL })).toMatch(
      /Worker47.5refused by the token; claimable.*Backup Agents47.5pending/,
    );
  });

  it("is due from the client of a listing only while it is open", async () => {
    const stake = {
      ...{ direction: "in", name: "worker-stake", party: null, amount: "2.5" },
      ...{ blockNumber: 7, transactionHash: "0x12" },
    };
    const ledger = { in: "2.5", out: "0.0", held: "2.5", entries: [stake], asOfBlock: null };
    const listing = async (status: string): Promise<string> => {
      const contract = { status, escrowedFunds: null };
      return render(Escrow, { data: { contract, ledger, settlement: { legs: [] } } });
    };
    expect(await listing("created")).toContain("The client pays the price on acceptance.");
    expect(await listing("cancelled-unmatched")).toMatch(/Worker Stake(?!.*on acceptance)/s);
  });
});

describe("a dispute", () => {
  const CLOSES = Date.parse("2026-02-02T12:00:00Z") / 1000;
  const deadline = "2026-01-31T12:00:00Z";
  const dataOf = (names: string[], { seats = 0, after = 3600 } = {}) => ({
    contract: {
      ...{ status: "disputed", client: null, createdAt: deadline, acceptanceCriteria: ["One page"] },
      ...{ matchDeadline: deadline, withdrawalDeadline: deadline, deliveryDeadline: deadline },
      ...{ reviewDeadline: deadline, disputeBond: "1.0", backupAgents: ["0x1", "0x2", "0x3"] },
    },
    events: names.map((name) => ({ name, args: { votingClosesAt: String(CLOSES) } })),
    terms: { escrowTerms: { parameters: { baRecruitCount: seats } } },
    settlement: { endedAt: null, heldUntil: null, legs: [] },
    votes: { data: [], nextCursor: null },
    now: CLOSES + after,
  });
  const clock = async (...given: Parameters<typeof dataOf>) =>
    (await render(Clock, { data: dataOf(...given) })).replaceAll(/<small>.*?<\/small>|<[^>]+>/gs, "");

  it("shows until when votes can be opened, and how many are", async () => {
    expect(await clock(["WorkingContractDisputed"])).toMatch(
      /Voting for Backup Agents to vote1 h ago.*Opening for Backup Agents to open their votes23 h left/s,
    );
    const data = dataOf(["WorkingContractDisputed", "VoteOpened", "VoteOpened"]);
    expect(await render(Votes, { data })).toContain("3 ballots so far, 2 of them opened.");
  });

  it("ends its voting once every seat is taken, and its opening with the tally", async () => {
    const early = { seats: 3, after: -3600 };
    const names = ["WorkingContractDisputed", "WorkingContractTallied"];
    expect(await clock(names, early)).toMatch(/to voteall have voted.*their votesvotes tallied/s);
    const html = async (seats: number) => render(Clock, { data: dataOf(names, { ...early, seats }) });
    expect(await html(3)).toContain('data-voting="over"');
    expect(await html(4)).toContain('data-voting="open"');
  });
});

describe("words", () => {
  it.each([
    [-5, "0 s"],
    [3660, "1 h 1 min"],
    [86_460, "1 d"],
  ])("%i seconds are %s", (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });

  it("writes fractions without float noise", () => {
    expect([0.05, 0.3, 0.1234, 0].map(percent)).toEqual(["5 %", "30 %", "12.34 %", "0 %"]);
  });
});
