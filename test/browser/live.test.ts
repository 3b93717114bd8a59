/** Open pages update themselves, and the operator's page opens only for the operator. */
import type { Page, Route } from "playwright-core";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { created, matched, newPair, ok } from "../support/contracts.js";
import { useWorld } from "../support/world.js";
import {
  expectAccessible,
  expectNoSidewaysScroll,
  faultsOf,
  leadOn,
  PHONE,
  useBrowser,
} from "./support/browser.js";

const isSkipped = inject("chromium") === null;
const surfer = useBrowser();
const world = isSkipped ? (undefined as never) : await useWorld();
const { client, worker } = isSkipped ? ({} as never) : await newPair(world);

describe.skipIf(isSkipped)("live", () => {
  // One context for all: each starts another process.
  let page: Page;
  beforeAll(async () => {
    page = await surfer.open("about:blank");
  });

  test("a contract's page follows the contract, and keeps what the reader opened", async () => {
    const { id } = await matched(world, { client, worker }, { supplementaryMaterials: "ipfs://materials" });
    await page.goto(`/contracts/${id}`);
    await page.evaluate("window.isSamePage = true");
    await page.locator("#live-state", { hasText: "Live" }).waitFor();
    await page.getByText("Supplementary materials").click();

    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://done" }));
    await page.locator("#summary .badge[title=under-review]").waitFor();
    await page.getByText("The worker delivered.").waitFor();
    expect(await page.locator("#task details").first().getAttribute("open")).not.toBeNull();
    expect(await page.locator("#live-state").innerText()).toBe("Status: under-review");

    ok(await client.post(`/v1/contracts/${id}/approve`));
    await page.locator("#summary .badge[title=settled-all-met]").waitFor();
    await page.locator("#settlement").getByText("The client approved.").waitFor();
    await page.locator("#balance", { hasText: "0.0 USDC held" }).waitFor();
    expect(await page.evaluate("window.isSamePage")).toBe(true);
    expect(faultsOf(page)).toEqual([]);
  });

  test("a slow response does not replace a newer one", async () => {
    const { id } = await matched(world, { client, worker });
    await page.goto(`/contracts/${id}`);
    await page.locator("#live-state", { hasText: "Live" }).waitFor();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const fetched = new Promise<void>((resolve) => {
      const hold = async (route: Route) => {
        const response = await route.fetch();
        resolve();
        await held;
        await route.fulfill({ response });
      };
      void page.route(`/contracts/${id}`, hold, { times: 1 });
    });
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://done" }));
    await fetched;

    ok(await client.post(`/v1/contracts/${id}/approve`));
    await page.locator("#summary .badge[title=settled-all-met]").waitFor();
    const ended = page.waitForEvent("requestfinished");
    release();
    await ended;
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 200))");
    expect(await page.locator("#summary .badge").getAttribute("title")).toBe("settled-all-met");
  });

  test("the feed gains new contracts, and the focus stays where it was", async () => {
    await page.goto("/");
    await page.locator("#live-state", { hasText: "Live" }).waitFor();
    await page.getByRole("searchbox").fill("half a wo");
    await created(world, client, { title: "Appears by itself" });
    await page.getByRole("link", { name: "Appears by itself" }).waitFor();
    expect(await page.getByRole("searchbox").inputValue()).toBe("half a wo");
    expect(await page.evaluate("document.activeElement.name")).toBe("q");

    const link = page.getByRole("link", { name: "Appears by itself" });
    await link.focus();
    await created(world, client, { title: "Appears above it" });
    await page.getByRole("link", { name: "Appears above it" }).waitFor();
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Appears by itself");
  });

  test("a page says if it cannot be fetched, and reconnects after its stream was refused", async () => {
    await page.clock.install();
    await page.route(/\/live\?/, (route) => route.fulfill({ status: 503 }));
    await page.goto("/");
    const shows = (text: string) => page.locator("#live-state", { hasText: text }).waitFor();
    const minute = () => page.clock.fastForward(60_000);
    await shows("Disconnected");
    await page.unroute(/\/live\?/);
    await minute();
    await shows("Live");

    await page.route("/", (route) => route.fulfill({ status: 503 }));
    await minute();
    await shows("Not up to date");
    await page.unroute("/");
    await minute();
    await shows("Live");
  });
});

describe.skipIf(isSkipped)("the operator's page", () => {
  test("shows queue, signers, lag and held payouts to anyone with the key, until they leave", async () => {
    const page = await surfer.open("/operator", { viewport: PHONE, colorScheme: "dark" });
    await expectAccessible(page);
    await page.getByLabel("Operator's key").fill("not the operator's key");
    await page.getByRole("button", { name: "Sign in" }).click();
    expect(await page.getByRole("alert").innerText()).toBe("This is not the operator's key.");

    await page.getByLabel("Operator's key").fill(inject("operatorKey"));
    await leadOn(page, () => page.keyboard.press("Enter"));
    expect(await page.locator("#lag").innerText()).toMatch(/ok block \d+, \d+ blocks? behind/);
    expect(await page.locator("#signers li").count()).toBeGreaterThan(0);
    expect(await page.locator("#signers .figure").first().innerText()).toMatch(/^\d+(\.\d+)? for gas$/);
    expect(page.url()).not.toContain("key");
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);

    const again = await page.context().newPage();
    await again.goto("/operator");
    await again.getByRole("button", { name: "Sign out" }).click();
    await again.getByLabel("Operator's key").waitFor();
    await page.reload();
    expect(await page.locator("#signers").count()).toBe(0);
  });
});
