/** The client reaches every operation of the API by a named method, not only by `call`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ApiDocument, operationsOf } from "../../src/features/docs/document.js";
import { testApp } from "./http/fixtures.js";

const CLIENT = join(import.meta.dirname, "../../packages/client/src");
/** Operations that the client calls by another path that returns the same. */
const COVERED: Record<string, string> = { "GET /v1/contracts/{id}/votes": "GET /v1/votes" };

test("the client has a method for every operation of the document", async () => {
  const response = await testApp().app.request("/openapi.json");
  const documented = operationsOf((await response.json()) as ApiDocument)
    .filter(({ path }) => path.startsWith("/v1/") && !path.startsWith("/v1/test/"))
    .map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  const modules = readdirSync(CLIENT).filter((file) => file.endsWith(".ts") && file !== "api.ts");
  const source = modules.map((file) => readFileSync(join(CLIENT, file), "utf8")).join("\n");
  // Without comments, and without the sets of operations that differ in how they are repeated.
  const code = source.replaceAll(/\/\*\*.*?\*\/|new Set<Endpoint>\(\[.*?\]\)/gs, "");
  const called = new Set([...code.matchAll(/"([A-Z]+ \/v1\/[^"]+)"/g)].map(([, one]) => one));
  expect(documented.length).toBeGreaterThan(40);
  expect(documented.filter((one) => !called.has(COVERED[one] ?? one))).toEqual([]);
});
