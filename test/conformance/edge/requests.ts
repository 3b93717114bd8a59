/** Requests for every published operation, built from its own schemas, more or less broken. */
import fc from "fast-check";
import type { Json } from "../../support/contracts.js";
import { fromSchema } from "./from-schema.js";
import { bodyMutation, hostileValue, mutate, textMutation, write } from "./mutations.js";

export interface EdgeRequest {
  operation: string;
  method: string;
  path: string;
  /** Name of the agent whose key is sent, `nobody` or `forged`. */
  caller: string;
  headers: Record<string, string>;
  body: string | Uint8Array | undefined;
}

export interface EdgeWorld {
  document: { paths: Record<string, Json>; components: { schemas: Json } };
  /** Contract ids and agents' addresses. */
  known: readonly string[];
  callers: readonly string[];
}

const HEADERS: Record<string, string>[] = [
  {},
  {},
  {},
  {},
  { "x-402-version": "1" },
  { "payment-signature": "e30=" },
  { "payment-signature": "not base64" },
  { "x-payment": Buffer.from('{"x402Version":1,"payload":{}}').toString("base64") },
  { "content-type": "text/plain" },
  { "content-type": "application/json; charset=utf-16" },
  { "x-request-id": "x".repeat(200) },
  { accept: "text/html" },
];

export function edgeRequests(world: EdgeWorld): fc.Arbitrary<EdgeRequest> {
  const operations = Object.entries(world.document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      // Streams have no end.
      .filter(([, one]) => path.startsWith("/v1/") && (one as Json).operationId !== "streamEvents")
      .map(([method, operation]) => requestsOf(world, { path, method, operation: operation as Json })),
  );
  return fc.oneof(...operations);
}

function requestsOf(
  world: EdgeWorld,
  { path, method, operation }: { path: string; method: string; operation: Json },
): fc.Arbitrary<EdgeRequest> {
  const within = { schemas: world.document.components.schemas, known: world.known };
  const parameters = (operation.parameters ?? []) as { name: string; in: string; schema: Json }[];
  const valueFor = (schema: Json) =>
    fc.oneof(
      { weight: 6, arbitrary: fromSchema(schema, within) },
      {
        weight: 1,
        arbitrary: hostileValue.map((value) => (typeof value === "object" ? "[]" : String(value))),
      },
      { weight: 1, arbitrary: fc.string({ maxLength: 60 }) },
    );
  const pathValues = Object.fromEntries(
    parameters
      .filter((one) => one.in === "path")
      .map(({ name, schema }) => [name, idOr(world, valueFor(schema))]),
  );
  const queryValues = Object.fromEntries(
    parameters.filter((one) => one.in === "query").map(({ name, schema }) => [name, valueFor(schema)]),
  );
  const bodySchema = operation.requestBody?.content?.["application/json"]?.schema as Json | undefined;
  return fc
    .record({
      params: fc.record(pathValues),
      query: fc.record(queryValues, { requiredKeys: [] }),
      caller: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom(...world.callers) },
        { weight: 1, arbitrary: fc.constantFrom("nobody", "forged") },
      ),
      headers: fc.constantFrom(...HEADERS),
      body: bodySchema === undefined ? fc.constant(undefined) : fromSchema(bodySchema, within),
      mutations: fc.array(bodyMutation, { maxLength: 2 }),
      text: textMutation,
    })
    .map(({ params, query, caller, headers, body, mutations, text }) => ({
      operation: operation.operationId,
      method: method.toUpperCase(),
      path: target(path, params, query),
      caller,
      headers,
      body: body === undefined ? undefined : write(mutations.reduce<unknown>(mutate, body), text),
    }));
}

/** Mostly an existing id; otherwise most requests would end at 404. */
function idOr(world: EdgeWorld, other: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...world.known) },
    { weight: 1, arbitrary: other.filter((value) => !["", ".", ".."].includes(String(value))) },
  );
}

function target(path: string, params: Json, query: Json): string {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name) => encode(params[name]));
  const search = Object.entries(query).map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return search.length === 0 ? filled : `${filled}?${search.join("&")}`;
}

/** Half of a surrogate pair cannot be written in a URL. */
function encode(value: unknown): string {
  return encodeURIComponent(Buffer.from(String(value)).toString("utf8"));
}
