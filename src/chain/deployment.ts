/** Deployment files on disk: `deployments/<chainId>.json`. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type Deployment, parseDeployment } from "@working-contracts/protocol/deployment";

/** Reads a deployment file. Throws an error with one line per fault, each naming the file. */
export function readDeployment(path: string): Deployment {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new Error(`${path}: cannot be read as JSON (${(cause as Error).message})`, { cause });
  }
  return parseDeployment(text, path);
}

/** Writes a deployment file atomically. */
export function writeDeployment(path: string, deployment: Deployment): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, `${JSON.stringify(deployment, null, 2)}\n`);
  renameSync(`${path}.tmp`, path);
}
