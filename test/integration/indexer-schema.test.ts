import { readFileSync } from "node:fs";
import { escrowAbi } from "@working-contracts/protocol/abi";
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

it("the handlers follow every event of an escrow", () => {
  const code = readFileSync("src/indexer/src/handlers.ts", "utf8");
  for (const { type, name = "" } of escrowAbi as readonly { type: string; name?: string }[]) {
    // ActionSigned says who allowed an action, for `wcontract verify`; what the action changed has its own event.
    if (type === "event" && name !== "ActionSigned")
      expect(code).toMatch(new RegExp(`(onEscrow\\(\\s*"|"Escrow:)${name}"`));
  }
});
