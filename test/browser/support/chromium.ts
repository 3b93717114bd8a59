/** A real Chromium: the one that is installed, or Debian's where it can be installed. */
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

/** Path of the browser; null, with a word on why, where there is none and none can be installed. */
export function findChromium(): string | null {
  const found = installed();
  if (found !== null) return found;
  if (process.getuid?.() === 0 && existsSync(APT)) {
    console.log("No Chromium here: installing Debian's.");
    // The package lists may be missing, or name a version that is gone.
    apt("update");
    const { status, stderr } = apt("install", "--yes", "--no-install-recommends", "chromium");
    if (status !== 0) console.warn(stderr);
  }
  const path = installed();
  if (path === null) {
    console.warn(
      "\n*** The browser tests are SKIPPED: there is no Chromium. Install one, or name it in CHROMIUM_PATH. ***\n",
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
