import { readdirSync, readFileSync } from "node:fs";
import { escrowAbi, registryAbi } from "@working-contracts/protocol/abi";
import { getTableColumns, getTableName, is } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { describe, expect, it } from "vitest";
import * as views from "../../src/db/onchain.js";
import * as tables from "../../src/indexer/ponder.schema.js";

/** Everything on which a query or its result depends. */
function shapeOf(table: PgTable) {
  const columns = Object.entries(getTableColumns(table)).map(([key, column]) => {
    const { dataType, name, notNull, primary } = column;
    const type = column.getSQLType();
    // Both read numeric(78) as bigint; the mirror uses its own custom type.
    return [
      key,
      {
        name: toSnakeCase(name),
        type,
        notNull,
        primary,
        dataType: type === "numeric(78)" ? "bigint" : dataType,
      },
    ];
  });
  const keys = getTableConfig(table).primaryKeys.flatMap((key) =>
    key.columns.map(({ name }) => toSnakeCase(name)),
  );
  return { name: getTableName(table), columns: Object.fromEntries(columns), keys };
}

const tablesOf = (module: object) =>
  Object.entries(module).filter(([, value]) => is(value, PgTable)) as [string, PgTable][];

describe("the read-only handle", () => {
  it("has every table of the indexer, column by column", () => {
    const shapes = (module: object) =>
      Object.fromEntries(tablesOf(module).map(([key, table]) => [key, shapeOf(table)]));
    expect(Object.keys(shapes(views))).toHaveLength(7);
    expect(shapes(views)).toEqual(shapes(tables));
  });

  it("reads from the views, never directly from a release", () => {
    for (const [, table] of tablesOf(views)) expect(getTableConfig(table).schema).toBe("onchain");
  });
});

describe("the handlers", () => {
  const directory = "src/indexer/src";
  const code = readdirSync(directory)
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(`${directory}/${file}`, "utf8"))
    .join("\n");
  const namesOf = (abi: readonly { type: string; name?: string }[]) =>
    abi.flatMap((item) => (item.type === "event" && item.name !== undefined ? [item.name] : []));

  // Says who allowed an action, for `wcontract verify`; what the action changed has its own event.
  const isFollowed = (name: string) => name !== "ActionSigned";

  it.each(namesOf(escrowAbi).filter(isFollowed))(
    "follow the escrow's event %s under its own name",
    (name) => {
      const ownHandler = `ponder\\.on\\("Escrow:${name}".{0,800}recordEvent\\(args, "${name}"`;
      expect(code).toMatch(new RegExp(`onEscrow\\(\\s*"${name}"|${ownHandler}`, "s"));
    },
  );

  // Declared in the interface but never emitted: a lock changes no eligibility.
  it.each(namesOf(registryAbi).filter((name) => isFollowed(name) && name !== "LockedForVote"))(
    "follow the registry's event %s",
    (name) => {
      expect(code).toContain(`ponder.on("BackupAgentRegistry:${name}"`);
    },
  );
});
