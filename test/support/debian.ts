/** Programs that tests need besides Node.js, from Debian's packages. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const APT = "/usr/bin/apt-get";
/** Suites run side by side, and apt fails while another one runs. */
const LOCK = join(tmpdir(), "test-packages.lock");
const INSTALL_TIMEOUT_MS = 240_000;

/** Installs the package if it can: on Debian, as root. Prints why it fails; the caller checks what it needs. */
export function installPackage(name: string): void {
  if (process.getuid?.() !== 0 || !existsSync(APT)) return;
  console.log(`Installing Debian's package ${name}.`);
  // The package lists can be missing, or name a version that no longer exists.
  apt("update");
  const { status, stderr } = apt("install", "--yes", "--no-install-recommends", name);
  if (status !== 0) console.warn(stderr);
}

function apt(...args: string[]) {
  return spawnSync("flock", [LOCK, APT, "--quiet", ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    encoding: "utf8",
    timeout: INSTALL_TIMEOUT_MS,
  });
}
