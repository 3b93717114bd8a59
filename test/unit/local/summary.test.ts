import { expect, it } from "vitest";
import { summary } from "../../../tools/local/main.js";
import type { Network } from "../../../tools/local/network.js";
import { exampleDeployment } from "../../support/deployment.js";

it("the summary says if the database is that of DATABASE_URL, without its password", () => {
  const network = { rpcUrl: "http://node", deployment: exampleDeployment, parts: {} as Network["parts"] };
  const summaryWith = (databaseUrl?: string) =>
    summary({ url: "http://service", network, settings: { dir: ".", databaseUrl }, seconds: 1 });
  const given = summaryWith("postgres://user:secret@host/database");
  expect(given).toContain("  Database        from DATABASE_URL\n");
  expect(given).not.toContain("secret");
  expect(summaryWith()).not.toContain("Database");
});
