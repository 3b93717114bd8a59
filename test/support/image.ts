/** The files that deploy/Dockerfile puts into the image, laid out without Docker so that tests can run them. */
import { spawnSync } from "node:child_process";
import { cpSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { ROOT } from "../../src/root.js";

export type Image = ReturnType<typeof unpackImage>;

/** Executes the COPY and RUN lines of the last stage. The installed packages are those of this checkout. */
export function unpackImage() {
  const dir = mkdtempSync(join(tmpdir(), "image-"));
  const dockerfile = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8").replaceAll(/\\\n\s*/g, "");
  const lines = dockerfile.slice(dockerfile.lastIndexOf("\nFROM ")).split("\n");
  for (const line of lines) {
    const [instruction, ...words] = line.split(" ");
    if (instruction === "RUN") {
      const { status, stderr } = spawnSync("sh", ["-ec", words.join(" ")], { cwd: dir, encoding: "utf8" });
      if (status !== 0) throw new Error(`${line}: ${stderr}`);
    }
    if (instruction !== "COPY") continue;
    if (words[0] === "--from=packages") {
      symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
      continue;
    }
    const target = words.at(-1) as string;
    // This checkout's bundles.
    if (words[0] === "--from=bundle") {
      cpSync(join(ROOT, relative("/app", words[1] as string)), join(dir, target), { recursive: true });
      continue;
    }
    for (const source of words.slice(0, -1)) {
      cpSync(join(ROOT, source), join(dir, target.endsWith("/") ? join(target, source) : target), {
        recursive: true,
      });
    }
  }
  /** Command line of its default process. */
  const command: string[] = JSON.parse(/^CMD (.*)$/m.exec(dockerfile)?.[1] ?? "[]");
  const within = (name: string): string[] =>
    lstatSync(join(dir, name)).isDirectory()
      ? readdirSync(join(dir, name), { recursive: true, encoding: "utf8" }).map((path) => join(name, path))
      : [];
  /** Every file with the time of its last change. The list stays equal as long as nothing writes into the image. */
  const files = () =>
    readdirSync(dir)
      // Belongs to this checkout, and other processes write their caches into it meanwhile.
      .filter((name) => name !== "node_modules")
      .flatMap((name) => [name, ...within(name)])
      .map((path) => `${path} ${lstatSync(join(dir, path)).mtimeMs}`);
  return { dir, command, files, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
