/** Another API process on the database and chain of the suite's own stack, as an operator would add one. */
import { type ServiceProcess, startServiceProcess } from "../../support/programs.js";
import type { Target } from "./target.js";

/** Starts `npm run serve` for HTTP only; its request rates are the defaults unless `env` says otherwise. */
export async function startSecondProcess(
  { stack }: Target,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  if (stack === null) throw new Error("A foreign service cannot be doubled.");
  return startServiceProcess({
    DATABASE_URL: stack.databaseUrl,
    RPC_URL: stack.rpcUrl,
    DEPLOYMENT: stack.deploymentPath,
    MASTER_KEY: "11".repeat(32),
    ...env,
  });
}
