import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../src/root.js";

const ARCHITECTURES: Record<string, string> = { x64: "amd64", arm64: "arm64" };

/** The actual binary behind an npm shim: a signal to the shim would not always reach it. */
export function foundryBinary(tool: "anvil" | "forge"): string {
  const name = `@foundry-rs/${tool}-${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "bin", tool);
  } catch (cause) {
    throw new Error(`${tool} is not available for this platform (${name}).`, { cause });
  }
}

/** Compiles the Solidity contracts if their sources have changed since `out/` was built. */
export async function compileContracts(report: (line: string) => void): Promise<void> {
  const stamp = join(ROOT, "out", ".sources");
  const sources = hashSources();
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === sources) return;
  report("Compiling the contracts (the first time takes a minute or two).");
  try {
    await promisify(execFile)(foundryBinary("forge"), ["build", "contracts"], {
      cwd: ROOT,
      maxBuffer: 1 << 26,
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`The contracts do not compile:\n${stdout ?? ""}${stderr ?? (error as Error).message}`);
  }
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, sources);
}

function hashSources(): string {
  const hash = createHash("sha256");
  const files = readdirSync(join(ROOT, "contracts"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".sol"),
  );
  for (const path of files.sort()) hash.update(path).update(readFileSync(join(ROOT, "contracts", path)));
  for (const path of ["foundry.toml", "package-lock.json"]) hash.update(readFileSync(join(ROOT, path)));
  return hash.digest("hex");
}
