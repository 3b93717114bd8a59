/** How the local Postgres comes to its data and its binaries. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { initialize, type NewData, reachableBinaries } from "../../../tools/local/postgres.js";
import { until } from "../../../tools/local/processes.js";
import { newFolder, startOwnPostgres } from "../../support/network.js";
import { startProcess } from "../../support/run-process.js";

const SUPPORT = new URL("../../support/network.ts", import.meta.url).href;

it("Postgres starts after a first start that was killed while it initialized the data", async () => {
  const dir = newFolder("postgres-killed-");
  const options = JSON.stringify({ dir, volatile: false });
  const script = `(await import(${JSON.stringify(SUPPORT)})).startOwnPostgres(${options});`;
  const args = ["--import", "tsx", "--input-type=module", "--eval", script];
  const first = startProcess("node", args, { env: {}, detached: true });
  const isInitializing = async () => readdirSync(dir, { recursive: true }).join().includes("PG_VERSION");
  await until("initdb runs", isInitializing, { timeoutMs: 60_000, intervalMs: 1 });
  process.kill(-(first.child.pid ?? 0), "SIGKILL");
  await first.exited;

  const postgres = await startOwnPostgres({ dir, volatile: false });
  await postgres.stop();
});

it("a program that cannot be run, as on another platform, is named as the reason", () => {
  const dir = newFolder("postgres-absent-");
  const options = { dataDir: join(dir, "data"), native: dir, password: "test" } as NewData;
  expect(() => initialize(options)).toThrow(/could not be initialized: spawnSync .*bin\/initdb ENOENT/);
  rmSync(dir, { recursive: true });
});

it("the networks share one copy of each version of the binaries that Postgres's user cannot reach", () => {
  const packaged = mkdtempSync(join(tmpdir(), "closed-"));
  const shared = newFolder("shared-");
  const user = { uid: 65_534, gid: 65_534 };
  mkdirSync(join(packaged, "native/bin"), { recursive: true });
  for (const version of ["18.4.0", "18.5.0"]) {
    writeFileSync(join(packaged, "package.json"), JSON.stringify({ version }));
    for (const network of ["first", "second"]) {
      const copy = reachableBinaries(join(packaged, "native"), join(shared, network), user);
      expect(readdirSync(copy)).toEqual(["bin"]);
    }
  }
  expect(readdirSync(shared)).toEqual(["postgres-18.4.0", "postgres-18.5.0"]);
  for (const dir of [packaged, shared]) rmSync(dir, { recursive: true });
});
