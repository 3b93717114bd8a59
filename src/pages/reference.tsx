/** `/docs`: the OpenAPI document as a page. */
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { MiddlewareHandler } from "hono";
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { Deps } from "../deps.js";
import { ERROR_STATUS, type ErrorCode } from "../errors.js";
import {
  type ApiDocument,
  type ApiResponse,
  describeApi,
  type MediaType,
  type Operation,
  operationsOf,
  type Schema,
} from "../features/docs/document.js";
import { type AppEnv, createRouter } from "../http/middleware.js";
import { ERROR_EXAMPLES } from "../http/responses.js";
import { Rows, ScrollTable, say } from "./components.js";
import { pageRenderer } from "./layout.js";

const JSON_HEADERS = { "Content-Type": "application/json", "Cache-Control": "public, max-age=300" };

/** Serves the API's document as JSON and as a page. `app` must have every route by the first request. */
export function docsRoutes(app: OpenAPIHono<AppEnv>, deps: Deps, limit: MiddlewareHandler<AppEnv>) {
  let made: Promise<{ json: string; html: string }> | undefined;
  const make = async () => {
    const document = describeApi(app, deps.config);
    return { json: JSON.stringify(document), html: String(await (<Reference document={document} />)) };
  };
  const texts = () => {
    made ??= make();
    return made;
  };
  const router = createRouter();
  router.get("/openapi.json", limit, async (c) => {
    const { json } = await texts();
    c.get("limitDownload")(json.length);
    return c.body(json, 200, JSON_HEADERS);
  });
  router.get("/docs", limit, pageRenderer(deps), async (c) =>
    c.render(raw((await texts()).html), {
      title: "API reference",
      section: "/docs",
      dataPath: "/openapi.json",
    }),
  );
  return router;
}

function Reference({ document }: { document: ApiDocument }) {
  const operations = operationsOf(document);
  const schemas = Object.entries((document.components?.schemas ?? {}) as Record<string, Schema>);
  return (
    <>
      <h1>{document.info.title}</h1>
      {(document.info.description ?? "").split("\n\n").map((paragraph) => (
        <p>
          <Prose text={paragraph} />
        </p>
      ))}
      <p>
        OpenAPI document: <a href="/openapi.json">/openapi.json</a>. A complete contract, step by step:{" "}
        <a href="/guide.md">/guide.md</a>. Overview for agents: <a href="/llms.txt">/llms.txt</a>.
      </p>
      {(document.tags ?? []).map(({ name, description }) => (
        <section aria-label={name}>
          <h2>{name}</h2>
          <p>{description}</p>
          {operations
            .filter(({ operation }) => operation.tags?.[0] === name)
            .map((found) => (
              <OperationView {...found} />
            ))}
        </section>
      ))}
      <section aria-label="Errors">
        <h2>Errors</h2>
        <NamedRows
          label="Error codes"
          rows={(Object.entries(ERROR_STATUS) as [ErrorCode, number][]).map(([code, status]) => [
            code,
            status,
            ERROR_EXAMPLES[code],
          ])}
        />
      </section>
      <section aria-label="Schemas">
        <h2>Schemas</h2>
        {schemas.map(([name, schema]) => (
          <article id={`schema-${name}`}>
            <h3>{name}</h3>
            <Prose text={schema.description ?? ""} />
            <SchemaView label={`Fields of ${name}`} schema={schema} />
          </article>
        ))}
      </section>
    </>
  );
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

function OperationView({ path, method, operation }: { path: string; method: string; operation: Operation }) {
  const { operationId: id = "", summary, description } = operation;
  const parameters = (operation.parameters ?? []) as Parameter[];
  const body = (operation.requestBody as ApiResponse | undefined)?.content?.["application/json"];
  const responses = Object.entries(operation.responses as Record<string, ApiResponse>);
  return (
    <details id={id}>
      <summary>
        <code>
          {method.toUpperCase()} {path}
        </code>{" "}
        {summary}
      </summary>
      <p>
        <span class="badge quiet">{"apiKey" in (operation.security?.[0] ?? {}) ? "API key" : "public"}</span>{" "}
        {responses.some(([status]) => status === "402") && <span class="badge active">paid</span>}{" "}
        <Prose text={description ?? ""} />
      </p>
      {parameters.length > 0 && (
        <NamedRows
          label={`Parameters of ${id}`}
          rows={parameters.map(({ name, in: location, required, description, schema }) => [
            name,
            required ? location : `${location}, optional`,
            <Prose text={description ?? schema?.description ?? (schema?.enum ?? []).join(", ")} />,
          ])}
        />
      )}
      <Body title="Request" of={id} media={body} />
      <NamedRows
        label={`Responses of ${id}`}
        rows={responses.map(([status, { description }]) => [status, <Prose text={description} />])}
      />
      {responses.map(
        ([status, { content }]) =>
          Number(status) < 300 && (
            <Body title={`Response ${status}`} of={id} media={content?.["application/json"]} />
          ),
      )}
    </details>
  );
}

function Body({ title, of, media }: { title: string; of: string; media: MediaType | undefined }) {
  if (media === undefined) return null;
  return (
    <>
      <h3>{title}</h3>
      <SchemaView label={`${title} of ${of}`} schema={media.schema as Schema} />
      {media.example !== undefined && <pre>{JSON.stringify(media.example, null, 2)}</pre>}
    </>
  );
}

/** A table whose first column names the row. */
function NamedRows({ label, rows }: { label: string; rows: [string, ...Child[]][] }) {
  return (
    <ScrollTable label={label}>
      <Rows headed rows={rows.map(([name, ...cells]) => [<code>{name}</code>, ...cells])} />
    </ScrollTable>
  );
}

/** Renders the fields of an object schema as a table, and other schemas as their type. */
function SchemaView({ label, schema }: { label: string; schema: Schema }) {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return <TypeOf label={label} schema={schema} />;
  return (
    <NamedRows
      label={label}
      rows={fields.map(([name, field]) => [
        name,
        <>
          <TypeOf label={`${label}, ${name}`} schema={field} />
          {schema.required?.includes(name) !== true && <small>optional</small>}
        </>,
        <Prose text={field.description ?? ""} />,
      ])}
    />
  );
}

function TypeOf({ label, schema }: { label: string; schema: Schema }): Child {
  const { $ref, type, format, items } = schema;
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return <a href={`#schema-${name}`}>{name}</a>;
  }
  if (schema.const !== undefined) return <code>{JSON.stringify(schema.const)}</code>;
  const parts =
    schema.enum?.map((word) => <code>{JSON.stringify(word)}</code>) ??
    (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.map((part, i) => (
      <TypeOf label={`${label} ${i + 1}`} schema={part} />
    ));
  if (parts !== undefined) return <>{parts.flatMap((part, i) => (i === 0 ? [part] : [" or ", part]))}</>;
  if (items !== undefined) return say`array of ${<TypeOf label={label} schema={items} />}`;
  if (Object.keys(schema.properties ?? {}).length > 0) return <SchemaView label={label} schema={schema} />;
  const kinds = [type ?? "any"].flat().join(" or ");
  return format === undefined ? kinds : `${kinds} (${format})`;
}

/** Renders the two kinds of markup that descriptions use: `code` and **strong**. */
function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
        if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
        return part.startsWith("**") ? <strong>{part.slice(2, -2)}</strong> : part;
      })}
    </>
  );
}
