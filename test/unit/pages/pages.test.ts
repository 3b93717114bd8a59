/** Properties of all pages, whatever they show. */
import { Hono } from "hono";
import { jsx } from "hono/jsx";
import { describe, expect, it } from "vitest";
import { Transaction } from "../../../src/pages/components.js";
import { duration, percent } from "../../../src/pages/format.js";
import { pageRenderer } from "../../../src/pages/layout.js";
import { testApp, testConfig } from "../http/fixtures.js";

const BROWSER = { accept: "text/html,application/xhtml+xml" };

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

  it("are limited per client", async () => {
    const { app } = testApp({ RATE_LIMIT_PAGES: "2" });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) statuses.push((await app.request("/simulator?price=x")).status);
    expect(statuses).toEqual([400, 400, 429]);
    expect((await app.request("/parameters")).headers.get("content-type")).toContain("text/html");
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
  const show = async (settings: Record<string, string>): Promise<string> => {
    const deployment = { domain: "contracts.example", chainId: 84_532, asset: { symbol: "TUSD" } };
    const app = new Hono();
    app.use(pageRenderer({ config: testConfig(settings), deployment } as never));
    app.get("/", (c) => c.render(jsx(Transaction, { hash: HASH, block: 77 }) as never, { title: "x" }));
    return (await app.request("/")).text();
  };

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

describe("words", () => {
  it.each([
    [-5, "0 s"],
    [0, "0 s"],
    [59, "59 s"],
    [60, "1 min"],
    [61, "1 min"],
    [3600, "1 h"],
    [3660, "1 h 1 min"],
    [90_000, "1 d 1 h"],
    [86_460, "1 d"],
  ])("%i seconds are %s", (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });

  it("writes fractions without float noise", () => {
    expect([0.05, 0.3, 0.1234, 0].map(percent)).toEqual(["5 %", "30 %", "12.34 %", "0 %"]);
  });
});
