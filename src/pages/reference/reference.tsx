/** Renders the OpenAPI document as a page. */
import { ERROR_STATUS, type ErrorCode } from "../../errors.js";
import {
  type ApiDocument,
  type ApiResponse,
  type MediaType,
  type Operation,
  operationsOf,
} from "../../features/docs/document.js";
import { ERROR_EXAMPLES } from "../../http/responses.js";
import { ScrollTable } from "../components.js";
import { Prose, type Schema, SchemaView } from "./schema-view.js";

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

export function Reference({ document }: { document: ApiDocument }) {
  const operations = operationsOf(document);
  const groups = (document.tags ?? []).map(({ name, description }) => ({
    name,
    description,
    operations: operations.filter(({ operation }) => operation.tags?.[0] === name),
  }));
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
      <nav aria-label="Operations">
        {groups.map(({ name, operations }) => (
          <details>
            <summary>
              {name} ({operations.length})
            </summary>
            <ul>
              {operations.map(({ path, method, operation }) => (
                <li>
                  <a href={`#${operation.operationId}`}>
                    <code>
                      {method.toUpperCase()} {path}
                    </code>
                  </a>
                </li>
              ))}
            </ul>
          </details>
        ))}
      </nav>
      {groups.map(({ name, description, operations }) => (
        <section aria-label={name}>
          <h2>{name}</h2>
          <p>{description}</p>
          {operations.map(({ path, method, operation }) => (
            <OperationView path={path} method={method} operation={operation} />
          ))}
        </section>
      ))}
      <section aria-label="Errors">
        <h2>Errors</h2>
        <ErrorTable />
      </section>
      <section aria-label="Schemas">
        <h2>Schemas</h2>
        {schemas.map(([name, schema]) => (
          <article id={`schema-${name}`}>
            <h3>{name}</h3>
            {schema.description !== undefined && (
              <p>
                <Prose text={schema.description} />
              </p>
            )}
            <SchemaView label={`Fields of ${name}`} schema={schema} />
          </article>
        ))}
      </section>
    </>
  );
}

function OperationView({ path, method, operation }: { path: string; method: string; operation: Operation }) {
  const { operationId = "", summary, description } = operation;
  const parameters = (operation.parameters ?? []) as Parameter[];
  const body = (operation.requestBody as { content: Record<string, MediaType> } | undefined)?.content;
  const responses = Object.entries(operation.responses as Record<string, ApiResponse>);
  const isPaid = responses.some(([status]) => status === "402");
  return (
    <article id={operationId}>
      <h3>
        <code>
          {method.toUpperCase()} {path}
        </code>
      </h3>
      <p>
        <strong>{summary}.</strong>{" "}
        <span class="badge quiet">{operation.security === undefined ? "public" : "API key"}</span>{" "}
        {isPaid && <span class="badge active">paid</span>}
      </p>
      {description !== undefined && (
        <p>
          <Prose text={description} />
        </p>
      )}
      {parameters.length > 0 && <ParameterTable of={operationId} parameters={parameters} />}
      {body?.["application/json"] !== undefined && (
        <Body title="Request" of={operationId} media={body["application/json"]} />
      )}
      <ResponseTable of={operationId} responses={responses} />
      {responses.map(([status, { content }]) =>
        Number(status) < 300 && content?.["application/json"] !== undefined ? (
          <Body title={`Response ${status}`} of={operationId} media={content["application/json"]} />
        ) : null,
      )}
    </article>
  );
}

function ParameterTable({ of, parameters }: { of: string; parameters: Parameter[] }) {
  return (
    <ScrollTable label={`Parameters of ${of}`}>
      <thead>
        <tr>
          <th scope="col">Parameter</th>
          <th scope="col">In</th>
          <th scope="col">Meaning</th>
        </tr>
      </thead>
      <tbody>
        {parameters.map(({ name, in: location, required, description, schema }) => (
          <tr>
            <th scope="row">
              <code>{name}</code>
              {required !== true && <small> optional</small>}
            </th>
            <td>{location}</td>
            <td>
              <Prose text={description ?? schema?.description ?? (schema?.enum ?? []).join(", ")} />
            </td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

function ResponseTable({ of, responses }: { of: string; responses: [string, ApiResponse][] }) {
  return (
    <ScrollTable label={`Responses of ${of}`}>
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Meaning or error codes</th>
        </tr>
      </thead>
      <tbody>
        {responses.map(([status, { description }]) => (
          <tr>
            <th scope="row">{status}</th>
            <td>
              <Prose text={description} />
            </td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

function Body({ title, of, media }: { title: string; of: string; media: MediaType }) {
  return (
    <details>
      <summary>{title}</summary>
      <SchemaView label={`${title} of ${of}`} schema={media.schema as Schema} />
      {media.example !== undefined && <pre>{JSON.stringify(media.example, null, 2)}</pre>}
    </details>
  );
}

function ErrorTable() {
  return (
    <ScrollTable label="Error codes">
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Code</th>
          <th scope="col">Example</th>
        </tr>
      </thead>
      <tbody>
        {(Object.entries(ERROR_STATUS) as [ErrorCode, number][]).map(([code, status]) => (
          <tr>
            <td>{status}</td>
            <th scope="row">
              <code>{code}</code>
            </th>
            <td>{ERROR_EXAMPLES[code]}</td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}
