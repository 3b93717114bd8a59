/**
 * One declaration per endpoint: the OpenAPI document, validation, authentication, routing and the identity of repeated
 * requests follow from it.
 */
import { createHash, randomUUID } from "node:crypto";
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { type Deps, reading } from "../deps.js";
import type { ErrorCode } from "../errors.js";
import type { StoredResponse } from "../payments/relayed-call.js";
import { type AppEnv, type CallerEnv, isRead, KEY_SECURITY, requireKey } from "./middleware.js";
import { dataResponse, errorResponses } from "./responses.js";

type Schema = z.ZodType;
type ObjectSchema = z.ZodObject | z.ZodPipe<z.ZodObject>;
type Headers = Record<string, { description: string; schema: { type: "string" } }>;

/** The successful response; made by {@link data}, {@link created}, {@link body}, {@link stored} or {@link raw}. */
interface Returns<Result> {
  status: 200 | 201;
  response: { description: string; content: object };
  /** Whether the endpoint sends a relayed action's stored response, whose outcome can still be unknown. */
  relays: boolean;
  send(c: Context, result: Result): Response;
}

const json = (schema: Schema) => ({ "application/json": { schema } });

const wrapped =
  (status: 200 | 201) =>
  <S extends Schema>(description: string, schema: S): Returns<z.input<S>> => {
    const send = (c: Context, result: z.input<S>) => sendJson(c, { data: result }, status);
    return { status, response: dataResponse(description, schema), relays: false, send };
  };

/** `200` with `{ data }`. */
export const data = wrapped(200);

/** `201` with `{ data }`. */
export const created = wrapped(201);

/** The handler's result as the whole body, with siblings of `data`, such as a list's `nextCursor`. */
export function body<S extends Schema>(
  description: string,
  schema: S,
  status: 200 | 201 = 200,
): Returns<z.input<S>> {
  const response = { description, content: json(schema) };
  return { status, response, relays: false, send: (c, result) => sendJson(c, result, status) };
}

/** A read gets a strong ETag, and `304` without a body if the caller has the same bytes; a long one is a download. */
export function sendJson(c: Context, result: unknown, status: 200 | 201): Response {
  const text = JSON.stringify(result);
  const limitDownload = (c as Context<AppEnv>).get("limitDownload");
  if (isRead(c)) {
    const etag = `"${createHash("sha1").update(text).digest("base64url")}"`;
    const isUnchanged = isKnown(c.req.header("if-none-match"), etag);
    // A refusal has no tag.
    if (!isUnchanged) limitDownload(text.length);
    c.header("ETag", etag);
    if (isUnchanged) return c.body(null, 304);
  } else limitDownload(text.length, "outcome");
  return c.body(text, status, JSON_TYPE);
}

const JSON_TYPE = { "Content-Type": "application/json" };

/** Weak validators match too (RFC 9110, If-None-Match): a proxy that compresses responses weakens the tag. */
function isKnown(given: string | undefined, etag: string): boolean {
  return given?.split(",").some((tag) => ["*", etag, `W/${etag}`].includes(tag.trim())) ?? false;
}

/** `200` with a relayed action's stored response, byte for byte the same in every replay. */
export function stored(description: string, schema: Schema, headers?: Headers): Returns<StoredResponse> {
  const response = { ...dataResponse(description, schema), headers };
  return { status: 200, response, relays: true, send: sendStored };
}

/** `200` with a response that the handler builds itself. */
export function raw(description: string, content: Record<string, { schema: Schema }>): Returns<Response> {
  return { status: 200, response: { description, content }, relays: false, send: (_, result) => result };
}

type Method = "get" | "post" | "patch" | "delete";

type Auth = "none" | "optional" | undefined;

interface Declaration<P, Q, H, B, A extends Auth, Result> {
  operationId: string;
  summary: string;
  description?: string;
  /** `none`, `optional`: anyone can call it. Otherwise the call needs an API key, and `caller` is the key's address. */
  auth?: A;
  /** The response is `402` with a quote until the call carries a payment. */
  paid?: true;
  /** The caller can sign the action, and must if it did not delegate it. */
  signable?: true;
  /** Runs on the connections for long reads. */
  longRead?: true;
  params?: P;
  query?: Q;
  headers?: H;
  body?: B;
  /** An empty body of any content type counts as `{}`. */
  optionalBody?: true;
  returns: Returns<Result>;
  /** Error codes in addition to those of every call of its kind. */
  errors?: ErrorCode[];
  handle: (deps: Deps, call: Call<P, Q, H, B, A>) => Promise<Result> | Result;
}

type Output<T> = T extends Schema ? z.output<T> : undefined;

interface Call<P, Q, H, B, A extends Auth> {
  params: Output<P>;
  query: Output<Q>;
  headers: Output<H>;
  body: Output<B>;
  /** Empty unless the endpoint is `signable`. */
  actionHeaders: ActionHeaders;
  /** Address behind the API key. */
  caller: A extends undefined ? Address : undefined;
  rawBody: Buffer;
  c: Context<AppEnv>;
}

/** Its limit is the IP address's: who signs in has no address yet, and can have any number. */
const countedByIp = createMiddleware<AppEnv>(async (c, next) => {
  c.get("limitIp")();
  await next();
});

/** Without a content type, an empty body is not refused for having the wrong one. */
const untypedIfEmpty = createMiddleware<AppEnv>(async (c, next) => {
  if (c.get("rawBody").length === 0) c.req.raw.headers.delete("content-type");
  await next();
});

/** With the same `Idempotency-Key`, a repetition of the same bytes creates and does nothing more, and returns the first. */
export const IdempotencyKeySchema = z.object({
  "idempotency-key": z.string().min(1).max(LIMITS.idempotencyKeyLength).optional().openapi({
    description:
      "Makes the call safe to retry: the same key with the same body runs once, and every retry returns the first result. Use a new random key for each call.",
  }),
});

/** Id of a resource to create: with a key always the same for a caller, path and bytes, otherwise random. */
export function resourceId(call: {
  caller: Address;
  rawBody: Uint8Array;
  headers: z.output<typeof IdempotencyKeySchema>;
  c: { req: { path: string } };
}): string {
  const key = call.headers["idempotency-key"];
  if (key === undefined) return randomUUID();
  const { caller, rawBody, c } = call;
  // An id in another letter case is the same one.
  const path = c.req.path.toLowerCase();
  const hash = createHash("sha256").update(`${caller}\n${path}\n${key}\n`).update(rawBody).digest();
  // A UUID of version 8: its bits have a meaning of ours.
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  return hash.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** The caller's signature (EIP-712) over this one action, and the key with which a repetition gets the first response. */
const ActionHeadersSchema = IdempotencyKeySchema.extend({
  "action-signature": z
    .string()
    .max(LIMITS.actionSignatureLength)
    .regex(/^0x([0-9a-fA-F]{2})+$/, "must be bytes in hex")
    .transform((hex) => hex as Hex)
    .optional()
    .openapi({ type: "string", description: "Your EIP-712 signature over this action" }),
  "action-deadline": z
    .string()
    .regex(/^\d{1,12}$/, "must be a time in Unix seconds")
    .transform(Number)
    .optional()
    .openapi({
      type: "string",
      description:
        "The signed deadline in Unix seconds, at most a day ahead. Without a signature the response is 403 with the typed data to sign for it",
      example: "1767225600",
    }),
});
export type ActionHeaders = z.output<typeof ActionHeadersSchema>;

/** Marks request bodies for the document, which publishes them as optional. */
export const ACCEPTS_EMPTY = "x-accepts-empty";

const NOT_MODIFIED = { 304: { description: "The caller has the same bytes: no body" } };

interface Endpoint {
  mount(router: OpenAPIHono<AppEnv>, deps: Deps): void;
}

/** Declares the endpoints under a tag of the document: `get("/v1/protocol", { ... })`. */
export function endpoints(tag: string) {
  const by = (method: Method) => declaring(method, tag);
  return { get: by("get"), post: by("post"), patch: by("patch"), delete: by("delete") };
}

function declaring(method: Method, tag: string) {
  return <
    Result,
    P extends ObjectSchema | undefined = undefined,
    Q extends ObjectSchema | undefined = undefined,
    H extends ObjectSchema | undefined = undefined,
    B extends Schema | undefined = undefined,
    A extends Auth = undefined,
  >(
    path: string,
    declaration: Declaration<P, Q, H, B, A, Result>,
  ): Endpoint => {
    const { operationId, summary, description, paid, returns } = declaration;
    const { params, query, body: bodySchema, signable } = declaration;
    const own = declaration.headers as z.ZodObject | undefined;
    const headers = signable ? ActionHeadersSchema.extend(own?.shape ?? {}) : own;
    const needsKey = declaration.auth === undefined;
    const notes = [paid && PAYMENT_HEADERS_NOTE, signable && SIGNATURE_HEADERS_NOTE, description];
    const note = notes.filter((part) => part !== undefined).join(" ");
    const codes: ErrorCode[] = [
      ...(needsKey ? (["unauthorized"] as const) : []),
      ...(method === "get" ? [] : (["payload_too_large"] as const)),
      ...(bodySchema === undefined ? [] : (["unsupported_media_type"] as const)),
      ...(returns.relays ? (["settlement_pending"] as const) : []),
      ...(signable ? (["invalid_request", "invalid_signature", "forbidden"] as const) : []),
      ...(declaration.errors ?? []),
      // Of the middleware in front of every endpoint.
      ...(["invalid_request", "rate_limited", "internal_error", "unavailable"] as const),
    ];
    // Hono cannot infer types from a route built conditionally: the schemas in the declaration give `call` its type.
    const route = createRoute({
      method,
      path,
      operationId,
      tags: [tag],
      summary,
      ...(note === "" ? {} : { description: note }),
      ...(needsKey ? { security: KEY_SECURITY } : {}),
      ...(declaration.auth === "optional" ? { security: [{}, ...KEY_SECURITY] } : {}),
      middleware: [
        ...(needsKey ? [requireKey] : method === "get" ? [] : [countedByIp]),
        ...(declaration.optionalBody ? [untypedIfEmpty] : []),
      ],
      request: {
        params,
        query,
        headers,
        body: bodySchema && {
          // Makes an empty body count as `{}`.
          required: true,
          [ACCEPTS_EMPTY]: bodySchema.safeParse({}).success,
          content: json(bodySchema),
        },
      } as never,
      responses: {
        [returns.status]: returns.response,
        ...(method === "get" && "application/json" in returns.response.content ? NOT_MODIFIED : {}),
        ...(paid ? PAYMENT_REQUIRED : {}),
        ...errorResponses(...codes),
      } as never,
    });

    return {
      mount(router, given) {
        const deps = declaration.longRead ? reading(given) : given;
        router.openapi(route, (async (c: Context<CallerEnv>) => {
          const valid = (target: "param" | "query" | "header" | "json") => c.req.valid(target as never);
          const call = {
            params: valid("param"),
            query: valid("query"),
            headers: valid("header"),
            actionHeaders: signable ? valid("header") : {},
            body: valid("json"),
            caller: c.get("caller"),
            rawBody: c.get("rawBody"),
            c,
          } as unknown as Call<P, Q, H, B, A>;
          const requestDeps = {
            ...deps,
            get logger() {
              return c.get("logger")();
            },
          };
          return returns.send(c, await declaration.handle(requestDeps, call));
        }) as never);
      },
    };
  };
}

/** Sends the stored response of a relayed action, its bytes unchanged, so that a replay equals the first response. */
export function sendStored(c: Context, { status, headers, body }: StoredResponse): Response {
  const isReplay = headers["Idempotent-Replay"] !== undefined;
  (c as Context<AppEnv>).get("limitDownload")(body.length, isReplay ? "read" : "outcome");
  return c.body(body, status, { ...JSON_TYPE, ...headers });
}

const quote = {
  scheme: z.literal("exact"),
  network: z.string().openapi({ description: "CAIP-2 name; in version 1 the short name, if there is one" }),
  maxAmountRequired: z.string().openapi({ description: "In the asset's smallest unit", example: "50000000" }),
  payTo: z.string().openapi({
    description: "The contract's escrow, whose address is the contract's id; for a stake the registry",
  }),
  asset: z.string().openapi({ description: "Token contract" }),
  maxTimeoutSeconds: z.int().openapi({ example: 60 }),
  resource: z.url().openapi({ description: "The call that is paid for" }),
  description: z.string(),
  mimeType: z.literal("application/json"),
  extra: z
    .object({ name: z.string(), version: z.string() })
    .openapi({ description: "EIP-712 domain of the asset" }),
};

const refusal = {
  error: z.string().openapi({
    description:
      "Reason of a refused payment: a name of the x402 specification, `payer_mismatch` or `authorization_used`",
  }),
  errorMessage: z.string().optional().openapi({ description: "The reason, for people" }),
};

const RefusalSchema = z
  .strictObject({ error: refusal.error.optional(), errorMessage: refusal.errorMessage })
  .openapi("PaymentRefusal", {
    description: "Version 2: the quote is in the header. Empty unless a payment was refused",
  });

/** The decoded `Payment-Required` header. */
export const PaymentRequiredSchema = z
  .object({
    x402Version: z.literal(2),
    ...refusal,
    resource: z.object({ url: z.url(), description: z.string(), mimeType: z.literal("application/json") }),
    accepts: z.array(
      z.object({
        ...quote,
        amount: z.string().openapi({ description: "As maxAmountRequired", example: "50000000" }),
      }),
    ),
    extensions: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi("PaymentRequired");

const PaymentRequiredV1Schema = z
  .object({ x402Version: z.literal(1), ...refusal, accepts: z.array(z.object(quote)) })
  .openapi("PaymentRequiredV1");

/** OpenAPI response of a paid call without a (good) payment. */
const PAYMENT_REQUIRED = {
  402: {
    description: "Payment required: sign the quote and retry the request, byte for byte",
    headers: {
      "Payment-Required": {
        description: "The quote: base64 of a `PaymentRequired` object",
        required: true,
        schema: {
          type: "string" as const,
          contentEncoding: "base64",
          contentMediaType: "application/json",
          contentSchema: { $ref: "#/components/schemas/PaymentRequired" },
        },
      },
    },
    content: { "application/json": { schema: z.union([RefusalSchema, PaymentRequiredV1Schema]) } },
  },
};

/** Description of a call that takes a signature. */
const SIGNATURE_HEADERS_NOTE =
  "Your address can sign this action (`Action-Signature` and `Action-Deadline`). It must if its sign-in did not delegate the action: without a signature the response is then 403, and `details.sign` is the typed data to sign.";

/** Description of a paid call. */
const PAYMENT_HEADERS_NOTE =
  "Without a payment the response is 402 with a quote. Sign it and retry the request, byte for byte, with the payment in `PAYMENT-SIGNATURE` (x402 version 2) or `X-PAYMENT` (version 1).";
