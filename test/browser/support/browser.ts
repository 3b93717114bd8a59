/** One browser for a test file, and the checks for each of its pages. */
import axe from "axe-core";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject } from "vitest";

export const PHONE = { width: 360, height: 740 };
export const DESKTOP = { width: 1280, height: 900 };

/** Generous, because the browser shares its machine with other suites. */
const PATIENCE_MS = 60_000;

/** Starts the browser for the file, and closes it and all its pages afterwards. */
export function useBrowser() {
  let browser: Browser;
  let opened: BrowserContext[] = [];
  beforeAll(async () => {
    const executablePath = inject("chromium");
    if (executablePath === null) return;
    // Chromium cannot create its sandbox if the tests run as root.
    browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: 2 * PATIENCE_MS });
  });
  afterAll(() => browser?.close());
  // Contexts of the file itself stay open.
  beforeEach(() => {
    opened = [];
  });
  // Open pages keep polling and drawing.
  afterEach(async () => {
    await Promise.all(opened.map((context) => context.close()));
  });
  return {
    /** Opens a page of the service in a separate context, which ends with the test that opened it. */
    async open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
      const context = await browser.newContext({
        viewport: DESKTOP,
        baseURL: inject("stack").url,
        ...options,
      });
      opened.push(context);
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      page.on("console", (message) => {
        if (message.type() === "error") faultsOf(page).push(message.text());
      });
      page.on("pageerror", (error) => faultsOf(page).push(error.message));
      await page.goto(path);
      return page;
    },
  };
}

const faults = new WeakMap<Page, string[]>();

/** Script errors and violations of the content policy on the page. */
export function faultsOf(page: Page): string[] {
  const list = faults.get(page) ?? [];
  faults.set(page, list);
  return list;
}

/** Runs an action that opens another document, and waits until it is loaded. A click alone does not wait for that. */
export async function leadOn(page: Page, act: () => Promise<void>): Promise<void> {
  await Promise.all([page.waitForEvent("load"), act()]);
}

/** Checks all of axe's rules (WCAG 2 A and AA, and best practice), or only the named ones. */
export async function expectAccessible(page: Page, { rules }: { rules?: string[] } = {}): Promise<void> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe.source);
  const violations = await page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    // Nothing else is read of the results, and describing each passed element takes most of the time.
    const { violations } = await axe.run({
      resultTypes: ["violations"],
      ...(runOnly !== undefined && { runOnly }),
    });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  }, rules);
  expect(violations).toEqual([]);
}

/** Checks that nothing is wider than the screen. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const [content, screen] = await page.evaluate(() => {
    const { document } = globalThis as unknown as {
      document: { documentElement: { scrollWidth: number; clientWidth: number } };
    };
    return [document.documentElement.scrollWidth, document.documentElement.clientWidth];
  });
  expect(content).toBeLessThanOrEqual(screen as number);
}
