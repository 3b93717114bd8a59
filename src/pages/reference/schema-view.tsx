/** Renders a JSON schema: one row per field, references as links. */

import { ScrollTable } from "../components.js";

/** The parts of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  additionalProperties?: Schema | boolean;
}

const NAMED = "#/components/schemas/";

/** Renders the fields of an object schema as a table, and other schemas as their type. */
export function SchemaView({ label, schema }: { label: string; schema: Schema }) {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) {
    return (
      <p>
        <TypeOf label={label} schema={schema} />
      </p>
    );
  }
  return (
    <ScrollTable label={label}>
      <tbody>
        {fields.map(([name, field]) => (
          <tr>
            <th scope="row">
              <code>{name}</code>
              {schema.required?.includes(name) !== true && <small> optional</small>}
            </th>
            <td>
              <TypeOf label={`${label}, ${name}`} schema={field} />
            </td>
            <td>{field.description !== undefined && <Prose text={field.description} />}</td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

function TypeOf({ label, schema }: { label: string; schema: Schema }) {
  const { $ref, enum: words, anyOf, oneOf, allOf, items, type } = schema;
  if ($ref !== undefined) {
    const name = $ref.replace(NAMED, "");
    return <a href={`#schema-${name}`}>{name}</a>;
  }
  if (schema.const !== undefined) return <code>{JSON.stringify(schema.const)}</code>;
  if (words !== undefined) return <Choice parts={words.map((word) => <code>{JSON.stringify(word)}</code>)} />;
  const parts = anyOf ?? oneOf ?? allOf;
  if (parts !== undefined)
    return <Choice parts={parts.map((part, i) => <TypeOf label={`${label} ${i + 1}`} schema={part} />)} />;
  if (items !== undefined) {
    return (
      <>
        array of <TypeOf label={label} schema={items} />
      </>
    );
  }
  if (Object.keys(schema.properties ?? {}).length > 0) return <SchemaView label={label} schema={schema} />;
  const kinds = (Array.isArray(type) ? type : [type ?? "any"]).join(" or ");
  return <span>{schema.format === undefined ? kinds : `${kinds} (${schema.format})`}</span>;
}

function Choice({ parts }: { parts: unknown[] }) {
  return (
    <span>
      {parts.map((part, i) => (
        <>
          {i > 0 && " or "}
          {part}
        </>
      ))}
    </span>
  );
}

/** Renders the two kinds of markup that descriptions use: `code` and **strong**. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
        if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
        return part.startsWith("**") ? <strong>{part.slice(2, -2)}</strong> : part;
      })}
    </>
  );
}
