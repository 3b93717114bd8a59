/** Another API process on the database and chain of the suite's own stack, as an operator would add one. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { until } from "../../../src/indexer/supervision/processes.js";
import { ROOT } from "../../../src/root.js";
import { freePort } from "../../../tools/local/ports.js";
import type { Target } from "./target.js";

export interface SecondProcess {
  url: string;
  stop(): Promise<void>;
}

/** Starts `npm run serve` for HTTP only. Its request rates are the defaults unless `env` sets them. */
export async function startSecondProcess(
  { stack }: Target,
  env: Record<string, string> = {},
): Promise<SecondProcess> {
  if (stack === null) throw new Error("A second process needs the suite's own stack.");
  const port = String(await freePort());
  const child = spawn(join(ROOT, "node_modules/.bin/tsx"), [join(ROOT, "src/commands/serve.ts")], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: stack.databaseUrl,
      RPC_URL: stack.rpcUrl,
      DEPLOYMENT: stack.deploymentPath,
      MASTER_KEY: "11".repeat(32),
      PORT: port,
      ...env,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`The second process ended: ${errors}`);
    return (await fetch(`${url}/ready`).catch(() => null))?.ok === true;
  };
  await until("the second process is ready", isReady, { timeoutMs: 120_000 });
  return {
    url,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
