/** Checks responses against the service's published OpenAPI document (`/openapi.json`). */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";

export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

interface Operation {
  responses: Record<string, DeclaredResponse>;
}

interface DeclaredResponse {
  headers?: Record<string, { required?: boolean; schema?: object }>;
  content?: Record<string, { schema?: object }>;
}

interface Observed {
  method: string;
  /** Without query. */
  path: string;
  status: number;
  headers: Headers;
  body: string;
}

export type Judge = ReturnType<typeof createJudge>;

/** By what they judge by. This module stays loaded for all files of a project; their setup does not. */
const judges = new Map<string, Judge>();

/** The judge of this document, which has compiled its schemas if another service published the same. */
export function judgeOf({ paths, components }: OpenApiDocument): Judge {
  const key = JSON.stringify({ paths, components });
  const judge = judges.get(key) ?? createJudge({ paths, components });
  judges.set(key, judge);
  return judge;
}

/** Statuses of a path without an operation. No operation declares them. */
const UNROUTED_STATUSES = [400, 404, 405, 413, 429];

/** Stricter than the document: a response must not have an undeclared field, because no test has checked it. */
function createJudge(published: OpenApiDocument) {
  const document = closed(published) as OpenApiDocument;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
  formats.default(ajv);
  ajv.addSchema({ $id: "document", ...document });
  const validators = new Map<string, ValidateFunction>();
  const validatorAt = (pointer: string): ValidateFunction => {
    let validator = validators.get(pointer);
    if (validator === undefined) {
      validator = ajv.compile({ $ref: `document#${pointer}` });
      validators.set(pointer, validator);
    }
    return validator;
  };
  const faultsAt = (pointer: string, value: unknown, where: string): string[] => {
    const validator = validatorAt(pointer);
    if (validator(value)) return [];
    return (validator.errors ?? []).map(
      ({ instancePath, message, params }) => `${where}${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
  const routes = Object.keys(document.paths)
    .map((path) => ({ path, pattern: patternOf(path), isPlain: !path.includes("{") }))
    // `/agents/me/profile` before `/agents/{address}/profile`.
    .sort((a, b) => Number(b.isPlain) - Number(a.isPlain));

  return {
    /** The faults of a response, one line each. Empty if it matches the document. */
    faultsOf({ method, path, status, headers, body }: Observed): string[] {
      const verb = method === "HEAD" ? "get" : method.toLowerCase();
      const route = routes.find(
        (one) => one.pattern.test(path) && document.paths[one.path]?.[verb] !== undefined,
      );
      if (route === undefined) {
        if (verb === "options" && status === 204) return [];
        if (!UNROUTED_STATUSES.includes(status)) return [`${status}, but no operation is published here`];
        return method === "HEAD" ? [] : faultsAt("/components/schemas/Error", parse(body), "body");
      }
      const declared = document.paths[route.path]?.[verb]?.responses[status];
      // Published for callers. No test may receive it.
      if (status === 500) return ["an internal error"];
      if (declared === undefined) return [`the status ${status} is not published`];

      const pointer = `/paths/${escaped(route.path)}/${verb}/responses/${status}`;
      const faults: string[] = [];
      for (const [name, header] of Object.entries(declared.headers ?? {})) {
        const value = headers.get(name);
        if (value === null) {
          if (header.required === true) faults.push(`the header ${name} is missing`);
        } else if (header.schema !== undefined) {
          const number = isNumeric(header.schema) ? Number(value) : value;
          faults.push(...faultsAt(`${pointer}/headers/${escaped(name)}/schema`, number, name));
        }
      }
      if (method === "HEAD" || (declared.content === undefined && body === "")) return faults;
      const type = headers.get("content-type")?.split(";")[0];
      const content = declared.content?.[type ?? ""];
      if (content === undefined) faults.push(`the content type ${type} is not published`);
      else if (content.schema !== undefined && type === "application/json")
        faults.push(...faultsAt(`${pointer}/content/${escaped(type as string)}/schema`, parse(body), "body"));
      return faults;
    },
  };
}

/** Closes every object schema that lists its properties: no others are allowed. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== "object" || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]));
  const isObjectSchema = typeof copy.properties === "object" && copy.type !== undefined;
  return isObjectSchema && copy.additionalProperties === undefined
    ? { ...copy, additionalProperties: false }
    : copy;
}

function isNumeric(schema: object): boolean {
  const { type } = schema as { type?: unknown };
  return type === "integer" || type === "number";
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`);
}

/** Escapes one step of a JSON pointer for a URI. */
function escaped(step: string): string {
  return encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
