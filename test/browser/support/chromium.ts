/**
 * A real Chromium: the installed one, or Debian's if it can be installed. The headless shell first: without windows, which
 * nothing here needs, it takes half of the processor time.
 */
import { existsSync } from "node:fs";
import { installPackage } from "../../support/debian.js";

const PLACES = [
  process.env.CHROMIUM_PATH,
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Path of the browser. Null, with the reason on the console, if there is none and none can be installed. */
export function findChromium(): string | null {
  for (const name of ["chromium-headless-shell", "chromium"]) {
    if (installed() === null) installPackage(name);
  }
  const path = installed();
  if (path === null) {
    console.warn(
      "\n*** The browser tests are SKIPPED: Chromium not found. Install it, or set CHROMIUM_PATH. ***\n",
    );
  }
  return path;
}

const installed = (): string | null => PLACES.find((path) => path !== undefined && existsSync(path)) ?? null;
