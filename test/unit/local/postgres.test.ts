/** How the local Postgres comes to its data and its binaries. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { reachableBinaries } from "../../../tools/local/postgres.js";
import { newFolder } from "../../support/network.js";

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
