/** Requirements for every page: accessible, light and dark, wide and narrow, usable by keyboard and without scripts. */
import type { Page } from "playwright-core";
import { beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import {
  DESKTOP,
  expectAccessible,
  expectNoSidewaysScroll,
  faultsOf,
  leadOn,
  PHONE,
  useBrowser,
} from "./support/browser.js";
import { HOSTILE } from "./support/seed.js";

const isSkipped = inject("chromium") === null;
const seed = isSkipped ? (undefined as never) : inject("seed");
const surfer = useBrowser();

const PATHS: Record<string, string> = isSkipped
  ? {}
  : {
      feed: "/",
      "feed without results": "/?q=nothing+has+these+words",
      "feed with a wrong filter": "/?status=unheard-of",
      post: "/post",
      "settled contract": `/contracts/${seed.disputed}`,
      "approved contract": `/contracts/${seed.approved}`,
      "voting contract": `/contracts/${seed.voting}`,
      "hostile contract": `/contracts/${seed.hostile}`,
      agent: `/agents/${seed.worker}`,
      "backup agent": `/agents/${seed.juror}`,
      "agent without activity": `/agents/0x${"11".repeat(20)}`,
      simulator: "/simulator",
      parameters: "/parameters",
      "API reference": "/docs",
      "nothing here": "/nowhere",
    };

// One context for all tests that run scripts: each starts another process.
let page: Page;
beforeAll(async () => {
  if (!isSkipped) page = await surfer.open("about:blank");
});
beforeEach(async () => {
  if (isSkipped) return;
  faultsOf(page).length = 0;
  await page.setViewportSize(DESKTOP);
  await page.emulateMedia({ colorScheme: "light" });
});

describe.skipIf(isSkipped)("every page", () => {
  test.each(Object.entries(PATHS))(
    "%s is accessible, fits, and runs without an error",
    async (name, path) => {
      await page.goto(path);
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);

      // Narrow and dark, because only width and contrast can differ.
      await page.setViewportSize(PHONE);
      await page.emulateMedia({ colorScheme: "dark" });
      await expectNoSidewaysScroll(page);
      await expectAccessible(page, {
        rules: ["color-contrast", "scrollable-region-focusable", "target-size"],
      });
      const refused = name === "feed with a wrong filter" ? "400" : "404";
      expect(faultsOf(page).filter((fault) => !fault.includes(`status of ${refused}`))).toEqual([]);
    },
  );

  test("follows the system's colours", async () => {
    await page.goto("/");
    expect(await brightness(page)).toBeGreaterThan(200);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await brightness(page)).toBeLessThan(60);
  });
});

describe.skipIf(isSkipped)("hostile text", () => {
  test("is shown as written, wherever it appears", async () => {
    await page.goto(`/contracts/${seed.hostile}`);
    expect(await page.locator("h1").innerText()).toBe(HOSTILE);
    expect(await page.title()).toBe(`${HOSTILE} · Working Contracts`);
    expect(await page.locator("#task > .text").innerText()).toContain(HOSTILE);
    expect(await page.locator(".criteria li .text").first().innerText()).toBe(HOSTILE);
    expect(await page.locator(".criteria li .text").last().innerText()).toBe("�right to left");
    expect(await page.locator("legend").last().textContent()).toBe("�right to left");
    expect(await page.locator("main").textContent()).not.toMatch(/\p{Bidi_Control}/u);
    for (const summary of await page.locator("summary").all()) await summary.click();
    const inJson = JSON.stringify(HOSTILE);
    expect(await page.locator("#task pre").first().innerText()).toContain(`"note": ${inJson}`);
    expect(await page.locator(".criteria li small").first().innerText()).toContain(inJson);
    const checkpoint = await page.locator("#checkpoints pre").innerText();
    const fields = ["merkleRoot", "lastReceiptHash", "teeMeasurement", "teeSignature", inJson.slice(1, -1)];
    for (const field of fields) expect(checkpoint).toContain(`"${field}": ${inJson}`);
    expect(await page.locator("#complaints pre").innerText()).toContain(`${inJson}: ${inJson}`);
    expect(await page.locator("#complaints .text").innerText()).toBe(HOSTILE);
    await expectHarmless(page);

    await page.goto(`/agents/${seed.hostileAgent}`);
    expect(await page.locator("h1").innerText()).toBe('"><script>hacked=1</script>');
    expect(await page.locator("header .text").innerText()).toBe(HOSTILE);
    await expectHarmless(page);

    await page.goto(`/?q=${encodeURIComponent(HOSTILE)}`);
    expect(await page.locator(".card h2").innerText()).toBe(HOSTILE);
    expect(await page.getByRole("searchbox").inputValue()).toBe(HOSTILE);
    await expectHarmless(page);
  });
});

describe.skipIf(isSkipped)("without scripts", () => {
  let page: Page;
  beforeAll(async () => {
    page = await surfer.open("/", { javaScriptEnabled: false });
  });

  test("the feed filters and pages, and every page is complete", async () => {
    await page.getByRole("searchbox").fill("papers on soil");
    await page.getByLabel("Award").selectOption("Open tender");
    await leadOn(page, () => page.getByRole("button", { name: "Apply" }).click());
    expect(await page.locator(".card h2").allInnerTexts()).toEqual([
      "Summarise twelve papers on soil carbon",
    ]);
    await leadOn(page, () => page.locator(".card h2 a").click());
    expect(await page.locator("h1").innerText()).toBe("Summarise twelve papers on soil carbon");
    expect(await page.locator("#clock .running").first().innerText()).toMatch(/Review[\s\S]*2 d \d+ h left/);

    await page.goto("/?status=closed&sort=budgetOrPrice");
    const open = page.getByRole("navigation", { name: "Status" }).getByRole("link", { name: "Open" });
    await leadOn(page, () => open.click());
    expect(new URL(page.url()).search).toBe("?status=open&sort=budgetOrPrice");
  });

  test("the simulator computes", async () => {
    await page.goto("/simulator");
    const price = page.getByRole("textbox", { name: "Price", exact: true });
    const compute = page.getByRole("button", { name: "Compute" });
    await price.fill("12.345678");
    await leadOn(page, () => compute.click());
    expect(await page.locator("#totals td").allInnerTexts()).toEqual([
      "4.485595",
      "8.641974",
      "0.452676",
      "5.555546",
    ]);
    await price.fill("-1");
    await leadOn(page, () => compute.click());
    expect(await page.getByRole("alert").innerText()).toContain("above 0");
  });
});

describe.skipIf(isSkipped)("the API reference", () => {
  test("shows every operation of the document, and leads to its schemas", async () => {
    await page.goto("/docs#createContract");
    const document = (await (await page.request.get("/openapi.json")).json()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const ids = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    for (const id of ids) expect(await page.locator(`details#${id}`).count(), id).toBe(1);

    const badge = (id: string) => page.locator(`details#${id} .badge.quiet`).first().textContent();
    const ofKeys = ["getProtocol", "getTerms", "listApiKeys", "createContract"].map(badge);
    expect(await Promise.all(ofKeys)).toEqual(["public", "public", "API key", "API key"]);
    const operation = page.locator("details#createContract");
    await operation.locator("summary").click();
    expect(await operation.getByText('"budgetOrPrice": 50').isVisible()).toBe(true);
    expect(await operation.getByText("duplicate_contract").isVisible()).toBe(true);
    await operation.getByRole("link", { name: "Contract", exact: true }).click();
    expect(await page.locator("article#schema-Contract").isVisible()).toBe(true);
    expect(faultsOf(page)).toEqual([]);
  });
});

describe.skipIf(isSkipped)("by keyboard", () => {
  test("every control can be reached in order, and shows where the focus is", async () => {
    await page.goto("/");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toMatchObject({ text: "Skip to content", isVisible: true });
    await page.keyboard.press("Enter");
    await page.waitForURL("**/#main");
    await page.keyboard.press("Tab");
    expect((await focused(page)).text).toBe("All");

    const seen: string[] = [];
    for (let i = 0; i < 12; i++) {
      const { text, isVisible, outline } = await focused(page);
      expect(isVisible, text).toBe(true);
      expect(outline, text).toBeGreaterThanOrEqual(2);
      seen.push(text);
      await page.keyboard.press("Tab");
    }
    expect(seen.slice(0, 11)).toEqual([
      ...["All", "Open", "Active", "Closed"],
      ...["q", "awardMethod", "initiator", "application", "sort"],
      ...["Apply", "Clear"],
    ]);

    await page.getByRole("searchbox").focus();
    await page.keyboard.type("backups");
    await page.keyboard.press("Enter");
    await page.waitForURL("**q=backups**");
    expect(await page.locator(".card h2").allInnerTexts()).toEqual(["Nightly backups, checked, for a month"]);
  });

  test("a table that scrolls can be scrolled", async () => {
    await page.setViewportSize(PHONE);
    await page.goto(`/contracts/${seed.disputed}`);
    const table = page.getByRole("region", { name: "Votes by Backup Agent and criterion" });
    await table.focus();
    await page.keyboard.press("ArrowRight");
    // Scrolling takes time, and the content policy prevents Playwright's own wait.
    const scrolled = () => page.evaluate("document.activeElement.scrollLeft");
    await expect.poll(scrolled).toBeGreaterThan(0);
  });
});

/** Brightness of the page background, from 0 to 255. */
async function brightness(page: Page): Promise<number> {
  const colour = await page.evaluate("getComputedStyle(document.body).backgroundColor");
  const [red = 0, green = 0, blue = 0] = String(colour).match(/\d+/g)?.map(Number) ?? [];
  return (red + green + blue) / 3;
}

async function expectHarmless(page: Page): Promise<void> {
  expect(await page.evaluate("window.hacked")).toBeUndefined();
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(faultsOf(page)).toEqual([]);
}

function focused(page: Page): Promise<{ text: string; isVisible: boolean; outline: number }> {
  return page.evaluate(`(() => {
    const element = document.activeElement;
    const box = element.getBoundingClientRect();
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    return {
      text: element.name || element.innerText.trim(),
      isVisible: box.width > 0 && box.left >= 0 && box.right <= innerWidth && box.top >= 0,
      outline: outlineStyle === "none" ? 0 : parseFloat(outlineWidth),
    };
  })()`);
}
