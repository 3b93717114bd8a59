/** Takes docs/screenshots of the running local network, after `npm run demo -- --here` has filled it. */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContextOptions, chromium } from "playwright-core";
import { ROOT } from "../src/root.js";
import { findChromium } from "../test/browser/support/chromium.js";
import { connect } from "./demo/network.js";

const FOLDER = join(ROOT, "docs/screenshots");
/** Larger files would bloat every clone. */
const MAX_BYTES = 250_000;
const DISPUTE = "Demo: dispute, mixed";
const DESKTOP = { viewport: { width: 1280, height: 1180 } };
const PHONE = { viewport: { width: 390, height: 1180 }, colorScheme: "dark" } as const;

const { baseUrl } = await connect().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
const executablePath = findChromium();
if (executablePath === null) process.exit(1);
// Chromium cannot create its sandbox if this runs as root.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
mkdirSync(FOLDER, { recursive: true });
try {
  const contract = await find(`/?q=${encodeURIComponent(DISPUTE)}`, `a[href^="/contracts/"]`);
  const agent = await find(contract, `a[href^="/agents/"]`);
  await take("feed", "/", DESKTOP);
  await take("dispute", contract, DESKTOP);
  await take("agent", agent, DESKTOP);
  await take("simulator", "/simulator", DESKTOP);
  await take("docs", "/docs", DESKTOP);
  await take("dispute-phone-dark", contract, PHONE);
} finally {
  await browser.close();
}

/** Target of the page's first link that matches. */
async function find(path: string, link: string): Promise<string> {
  const page = await browser.newPage({ baseURL: baseUrl });
  await page.goto(path);
  const target = await page.locator(`main ${link}`).first().getAttribute("href", { timeout: 5000 });
  await page.close();
  return target as string;
}

async function take(name: string, path: string, options: BrowserContextOptions): Promise<void> {
  const file = join(FOLDER, `${name}.png`);
  const page = await browser.newPage({ baseURL: baseUrl, ...options });
  await page.goto(path);
  await page.screenshot({ path: file });
  await page.close();
  const { size } = statSync(file);
  console.log(`${file}  ${Math.round(size / 1000)} kB`);
  if (size > MAX_BYTES) throw new Error(`${name} has ${size} bytes, more than ${MAX_BYTES}.`);
}
