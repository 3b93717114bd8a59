/** The envelope of every response: `{ data }`, or `{ error: { code, message, details?, hint?, retryable? } }`. */
import { z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { AppError, ERROR_STATUS, type ErrorCode } from "../errors.js";

export const ErrorSchema = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]),
      message: z.string(),
      details: z.unknown().optional(),
      hint: z.string().optional(),
      retryable: z.boolean().optional(),
    }),
  })
  .openapi("Error");

/** Schema of a successful body around `schema`. */
export const dataOf = <T extends z.ZodType>(schema: T) => z.object({ data: schema });

/** OpenAPI response of a successful call. */
export const dataResponse = <T extends z.ZodType>(description: string, schema: T) => ({
  description,
  content: { "application/json": { schema: dataOf(schema) } },
});

type ErrorResponse = {
  description: string;
  content: {
    "application/json": {
      schema: typeof ErrorSchema;
      /** References to the document's components, by code. */
      examples: Record<string, { $ref: string }>;
    };
  };
};

/** OpenAPI responses for the codes that an operation can respond with, one per HTTP status, one example per code. */
export function errorResponses<C extends ErrorCode>(
  ...codes: C[]
): { [S in (typeof ERROR_STATUS)[C]]: ErrorResponse } {
  const responses: Record<number, ErrorResponse> = {};
  for (const code of codes) {
    const earlier = responses[ERROR_STATUS[code]];
    const examples = {
      ...earlier?.content["application/json"].examples,
      [code]: { $ref: `#/components/examples/${code}` },
    };
    responses[ERROR_STATUS[code]] = {
      description: Object.keys(examples)
        .map((name) => `\`${name}\``)
        .join(", "),
      content: { "application/json": { schema: ErrorSchema, examples } },
    };
  }
  return responses as { [S in (typeof ERROR_STATUS)[C]]: ErrorResponse };
}

/** OpenAPI request part of an operation with a JSON body. `required` makes an empty body count as `{}`. */
export const jsonBody = <T extends z.ZodType>(schema: T) => ({
  required: true as const,
  content: { "application/json": { schema } },
});

/** The response for an error thrown on purpose. */
export function errorResponse(c: Context, error: AppError): Response {
  const { message, details, hint, retryable, retryAfterSeconds, headers } = error.options;
  c.set("errorCode", error.code);
  for (const [name, value] of Object.entries(headers ?? {})) c.header(name, value);
  if (retryAfterSeconds !== undefined) c.header("Retry-After", String(retryAfterSeconds));
  const body = { code: error.code, message, details, hint, retryable };
  return c.json({ error: body }, error.status);
}

/** `invalid_request` for a failed schema: every issue in `details`, the first one in the message. */
export function invalidInput(issues: readonly { path: PropertyKey[]; message: string }[]): AppError {
  const details = issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issue.message }));
  const [first] = details;
  const message =
    first === undefined
      ? "The request is invalid."
      : `${first.path === "" ? "request" : first.path}: ${first.message}`;
  return new AppError("invalid_request", { message, details });
}
