/** A real Chromium: the installed one, or Debian's if it can be installed. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const PLACES = [
  process.env.CHROMIUM_PATH,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
const APT = "/usr/bin/apt-get";
const INSTALL_TIMEOUT_MS = 240_000;

/** Path of the browser. Null, with the reason on the console, if there is none and none can be installed. */
export function findChromium(): string | null {
  const found = installed();
  if (found !== null) return found;
  if (process.getuid?.() === 0 && existsSync(APT)) {
    console.log("Chromium not found: installing Debian's.");
    // The package lists can be missing, or name a version that no longer exists.
    apt("update");
    const { status, stderr } = apt("install", "--yes", "--no-install-recommends", "chromium");
    if (status !== 0) console.warn(stderr);
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

function apt(...args: string[]) {
  return spawnSync(APT, ["--quiet", ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    encoding: "utf8",
    timeout: INSTALL_TIMEOUT_MS,
  });
}
