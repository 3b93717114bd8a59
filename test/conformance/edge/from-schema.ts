/** Generates JSON values from the JSON Schemas of the published document. */
import fc from "fast-check";
import type { Json } from "../../support/contracts.js";

interface Within {
  schemas: Json;
  /** Existing addresses and ids. */
  known: readonly string[];
}

const LONGEST_TEXT = 300;

/** Values that mostly fit the schema. */
export function fromSchema(schema: Json, within: Within): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) return fromSchema(within.schemas[schema.$ref.split("/").at(-1)], within);
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf?.slice(0, 1);
  if (choices !== undefined) return fc.oneof(...choices.map((choice: Json) => fromSchema(choice, within)));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  const types = [schema.type ?? "object"].flat();
  return fc.oneof(...types.map((type) => ofType(type, schema, within)));
}

function ofType(type: string, schema: Json, within: Within): fc.Arbitrary<unknown> {
  switch (type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1000 });
    case "number":
      return fc.oneof(
        fc.integer({ min: schema.minimum ?? 1, max: schema.maximum ?? 1000 }),
        fc.integer({ min: 1, max: 10_000 }).map((cents) => cents / 100),
      );
    case "string":
      return text(schema, within.known);
    case "array":
      return fc.array(fromSchema(schema.items ?? {}, within), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 5, 12),
      });
    default:
      return object(schema, within);
  }
}

function object(schema: Json, within: Within): fc.Arbitrary<unknown> {
  if (schema.properties === undefined) return fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue());
  const members = Object.fromEntries(
    Object.entries<Json>(schema.properties).map(([name, member]) => [name, fromSchema(member, within)]),
  );
  return fc.record(members, { requiredKeys: schema.required ?? [] });
}

function text(schema: Json, known: readonly string[]): fc.Arbitrary<string> {
  if (schema.format === "date-time") {
    const days = fc.integer({ min: -1, max: 400 });
    return days.map((day) => new Date(Date.now() + day * 86_400_000).toISOString());
  }
  if (schema.pattern?.includes("0x") === true) return fc.constantFrom(...known);
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
  const minLength = Math.min(schema.minLength ?? 0, LONGEST_TEXT);
  const maxLength = Math.min(schema.maxLength ?? 40, LONGEST_TEXT);
  return fc.oneof(
    fc.string({ minLength, maxLength }),
    fc.string({ unit: "grapheme", minLength, maxLength: Math.max(minLength, 40) }),
    fc.constantFrom(...known),
  );
}
