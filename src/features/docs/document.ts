/** `/openapi.json`: the declarations of all routes, with the parts that apply to all of them. */
import type { OpenAPIHono } from "@hono/zod-openapi";
import { PaymentRequiredSchema } from "../../http/operation.js";
import { ERROR_EXAMPLES, errorResponses } from "../../http/responses.js";
import type { AppEnv } from "../../http/router.js";
import {
  DESCRIPTION,
  PAYMENT_INFO,
  PAYMENT_PARAMETERS,
  SECURITY_SCHEMES,
  SHARED_HEADERS,
  TAGS,
} from "./document-parts.js";
import { AGENT_EXAMPLES } from "./examples/agents.js";
import { CONTRACT_EXAMPLES } from "./examples/contracts.js";
import { SERVICE_EXAMPLES } from "./examples/service.js";
import type { Examples } from "./examples/shared.js";
import { WEBHOOK_EXAMPLES } from "./examples/webhooks.js";
import { WORK_EXAMPLES } from "./examples/work.js";

/** One example of every operation. */
const EXAMPLES: Examples = {
  ...SERVICE_EXAMPLES,
  ...AGENT_EXAMPLES,
  ...CONTRACT_EXAMPLES,
  ...WORK_EXAMPLES,
  ...WEBHOOK_EXAMPLES,
};

export type ApiDocument = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;
type PathItem = NonNullable<ApiDocument["paths"]>[string];
export type Operation = NonNullable<PathItem["get"]>;
export type MediaType = {
  schema?: unknown;
  example?: unknown;
  examples?: Record<string, object>;
};
export interface ApiResponse {
  description: string;
  headers?: Record<string, unknown>;
  content?: Record<string, MediaType>;
}

export const METHODS = ["get", "post", "put", "patch", "delete"] as const;

/** The operations of a document in its own order. */
export function operationsOf(
  document: ApiDocument,
): { path: string; method: (typeof METHODS)[number]; operation: Operation }[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ path, method, operation }];
    }),
  );
}

/** The API's document, for the routes that are mounted so far. */
export function describeApi(app: OpenAPIHono<AppEnv>, { baseUrl }: { baseUrl: string }): ApiDocument {
  const { openAPIRegistry: registry } = app;
  for (const [name, scheme] of Object.entries(SECURITY_SCHEMES)) {
    registry.registerComponent("securitySchemes", name, scheme);
  }
  for (const [name, header] of Object.entries(SHARED_HEADERS)) {
    registry.registerComponent("headers", name, header);
  }
  for (const [code, message] of Object.entries(ERROR_EXAMPLES)) {
    registry.registerComponent("examples", code, { value: { error: { code, message } } });
  }
  registry.register("PaymentRequired", PaymentRequiredSchema);
  const document = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Working Contract Service", version: "1.0.0", description: DESCRIPTION },
    servers: [{ url: baseUrl }],
    tags: TAGS,
    externalDocs: { description: "One whole contract, step by step", url: `${baseUrl}/guide.md` },
  });
  // The parts are the routes' own objects.
  const completed = structuredClone(document);
  for (const { path, operation } of operationsOf(completed)) complete(operation, path);
  return completed;
}

function complete(operation: Operation, path: string): void {
  const responses = operation.responses as Record<string, ApiResponse>;
  addErrors(responses, path);
  if (responses[402] !== undefined) describePayment(operation, responses);
  for (const [status, response] of Object.entries(responses)) {
    if (Number(status) >= 400 && Number(status) !== 402) nameCodes(response);
    response.headers = { ...response.headers, ...headersOf(Number(status), response) };
  }
  addExamples(operation, responses);
}

/** Error responses of the middleware in front of every route. */
function addErrors(responses: Record<string, ApiResponse>, path: string): void {
  const common = path.startsWith("/v1/")
    ? errorResponses("invalid_request", "rate_limited", "internal_error", "unavailable")
    : errorResponses("internal_error");
  for (const [status, { content }] of Object.entries(common)) {
    const declared = responses[status]?.content?.["application/json"];
    const examples = { ...declared?.examples, ...content["application/json"].examples };
    responses[status] = {
      description: codesOf({ examples })
        .map((code) => `\`${code}\``)
        .join(", "),
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" }, examples } },
    };
  }
}

function codesOf(media: MediaType | undefined): string[] {
  return Object.keys(media?.examples ?? {});
}

/** Restricts an error response's schema to the codes of its examples. */
function nameCodes(response: ApiResponse): void {
  const media = response.content?.["application/json"];
  const codes = codesOf(media);
  if (media === undefined || codes.length === 0) return;
  media.schema = {
    allOf: [media.schema, { properties: { error: { properties: { code: { enum: codes } } } } }],
  };
}

function headersOf(status: number, response: ApiResponse) {
  const codes = codesOf(response.content?.["application/json"]);
  return shared(
    "X-Request-Id",
    ...(codes.includes("unauthorized") ? (["WWW-Authenticate"] as const) : []),
    ...(status === 429 ? (["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"] as const) : []),
    ...(status === 429 || status === 503 ? (["Retry-After"] as const) : []),
  );
}

function shared(...names: (keyof typeof SHARED_HEADERS)[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function describePayment(operation: Operation, responses: Record<string, ApiResponse>): void {
  operation.parameters = [...(operation.parameters ?? []), ...PAYMENT_PARAMETERS];
  operation.security = [{ apiKey: [] }, { apiKey: [], payment: [] }];
  Object.assign(operation, PAYMENT_INFO);
  const success = responses[200];
  if (success !== undefined)
    success.headers = {
      ...success.headers,
      ...shared("PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE", "Idempotent-Replay"),
    };
}

function addExamples(operation: Operation, responses: Record<string, ApiResponse>): void {
  const example = EXAMPLES[operation.operationId ?? ""];
  if (example === undefined) return;
  const body = (operation.requestBody as { content: Record<string, MediaType> } | undefined)?.content;
  if (body?.["application/json"] !== undefined) body["application/json"].example = example.request;
  const success = responses[200] ?? responses[201];
  const media = success?.content?.["application/json"];
  if (media !== undefined) media.example = example.response;
  const quote = responses[402];
  if (quote?.content?.["application/json"] !== undefined && example.quote !== undefined) {
    quote.content["application/json"].examples = {
      version2: { value: {} },
      version1: { value: example.quote },
    };
  }
}
