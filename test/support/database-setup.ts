/** One Postgres, and compiled contracts, for a vitest project whose files start everything else themselves. */
import type { TestProject } from "vitest/node";
import { compileContracts } from "../../tools/local/foundry.js";
import { startOwnPostgres } from "./network.js";

declare module "vitest" {
  export interface ProvidedContext {
    /** Of the project's Postgres server. */
    databaseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await compileContracts(console.log);
  const postgres = await startOwnPostgres();
  project.provide("databaseUrl", postgres.url);
  return postgres.stop;
}
