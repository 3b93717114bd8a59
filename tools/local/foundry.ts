import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { CONTRACTS } from "../../src/chain/deploy.js";
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

/** The creation bytecode that is deployed, and the hash of the sources that it was compiled from. */
const BYTECODE_PATH = join(ROOT, "src/chain/bytecode.json");

/** Compiles the contracts and renews the committed bytecode if their sources differ from its. Throws if that fails. */
export async function compileContracts(report: (line: string) => void): Promise<void> {
  const { sources } = JSON.parse(readFileSync(BYTECODE_PATH, "utf8")) as { sources: string };
  if (sources === hashSources()) return;
  report("Compiling the contracts: their sources differ from the committed bytecode (a minute or two).");
  try {
    await promisify(execFile)(foundryBinary("forge"), ["build", "contracts"], {
      cwd: ROOT,
      maxBuffer: 1 << 26,
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`The contracts do not compile:\n${stdout ?? ""}${stderr ?? (error as Error).message}`);
  }
  // Renamed into place, because several networks can start at the same time.
  const draft = `${BYTECODE_PATH}.${process.pid}`;
  writeFileSync(draft, compiledBytecode());
  renameSync(draft, BYTECODE_PATH);
}

/** The text of the bytecode file, from the compiler's output in `out/`. */
export function compiledBytecode(): string {
  const bytecode = Object.fromEntries(
    CONTRACTS.map((name) => {
      const artifact = JSON.parse(readFileSync(join(ROOT, `out/${name}.sol/${name}.json`), "utf8"));
      return [name, artifact.bytecode.object as string];
    }),
  );
  return `${JSON.stringify({ sources: hashSources(), bytecode }, null, 2)}\n`;
}

/** Hash of everything that decides the bytecode: the sources, the compiler with its settings, OpenZeppelin's contracts. */
function hashSources(): string {
  const hash = createHash("sha256");
  const files = readdirSync(join(ROOT, "contracts"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".sol"),
  );
  for (const path of files.sort()) hash.update(path).update(readFileSync(join(ROOT, "contracts", path)));
  hash.update(readFileSync(join(ROOT, "foundry.toml")));
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "tools/package.json"), "utf8"));
  for (const name of ["solc", "@openzeppelin/contracts"]) hash.update(`${name}@${devDependencies[name]}`);
  return hash.digest("hex");
}
