/** Results of the tools: schemas from the service's OpenAPI document, and data or an error for the model. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { readText } from "@working-contracts/client/http";
import {
  type Agent,
  type Contract,
  type Endpoint,
  PaymentRejected,
  provenTerms,
  ServiceError,
} from "@working-contracts/client/index";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { visibleJson } from "@working-contracts/protocol/json";
import { isoTime } from "@working-contracts/protocol/time";
import { z } from "zod";
import { refusalOf } from "../errors.js";

export type Fields = Record<string, z.ZodType>;

/** How a tool is called, and what it takes and returns. */
export interface Tool<Input extends Fields> {
  name: string;
  description: string;
  input: Input;
  output: z.ZodType;
}

/** The schema of an operation's `data`, or of its whole body. */
export type OutputSchemas = (endpoint: Endpoint, part?: "data" | "body") => z.ZodType;

export interface Served {
  agent: Agent;
  outputs: OutputSchemas;
}

type JsonSchema = Parameters<typeof z.fromJSONSchema>[0] & object;
type Content = Record<string, { schema: JsonSchema }>;
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, { content?: Content }> }>>;
  components: { schemas: Record<string, JsonSchema> };
}

const TIMEOUT_MS = 30_000;

/** Reads the document once. Throws if the service does not respond with one. */
export async function readOutputSchemas(url: string): Promise<OutputSchemas> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(`${url}/openapi.json`, { redirect: "error", signal });
  if (!response.ok) throw new Error(`${url}/openapi.json responded with ${response.status}`);
  const { paths, components } = JSON.parse(await readText(response, signal)) as Document;
  return (endpoint, part = "data") => {
    const [method = "", path = ""] = endpoint.split(" ");
    const responses = paths[path]?.[method.toLowerCase()]?.responses ?? {};
    const schema = (responses[200] ?? responses[201])?.content?.["application/json"]?.schema;
    if (schema === undefined) throw new Error(`The service does not document ${endpoint}`);
    const whole = structureOf(schema, components.schemas);
    return z.fromJSONSchema((part === "body" ? whole : whole.properties?.data) as JsonSchema);
  };
}

/**
 * The structure alone: no result is refused after it was paid for because of a newer service's values or fields, and the
 * model reads no sentence of the service in the description of a tool.
 */
function structureOf(schema: JsonSchema, components: Record<string, JsonSchema>): JsonSchema {
  const within = (part: unknown) => structureOf(part as JsonSchema, components);
  const { $ref, type, properties, required, items, anyOf, additionalProperties: rest } = schema;
  if ($ref !== undefined) return within(components[$ref.split("/").at(-1) as string]);
  return {
    ...(type !== undefined && { type }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => /^\w+$/.test(name))
          .map(([name, part]) => [name, within(part)]),
      ),
    }),
    ...(required !== undefined && { required }),
    ...(items !== undefined && { items: within(items) }),
    ...(anyOf !== undefined && { anyOf: anyOf.map(within) }),
    ...(typeof rest === "object" && { additionalProperties: within(rest) }),
  } as JsonSchema;
}

/** An address in any letter case (docs/rules.md 5). */
export const ContractIdSchema = z
  .string()
  .regex(/^0[xX][0-9a-fA-F]{40}$/)
  .toLowerCase()
  .describe("Contract id: the address of its escrow");

/** Never rejects: an error becomes a tool error for the model. */
export async function toolResult(perform: () => Promise<object>): Promise<CallToolResult> {
  try {
    const result = await perform();
    return {
      content: [{ type: "text", text: visibleJson(result, 2) }],
      structuredContent: result as Record<string, unknown>,
    };
  } catch (error) {
    return refusal(error as Error);
  }
}

/** Converts an error to a tool error, with extra fields for the model. `from` marks texts that the service wrote. */
export function refusal(error: Error, more: Record<string, string> = {}): CallToolResult {
  const { code, ...rest } = refusalOf(error);
  const isServed = error instanceof ServiceError || error instanceof PaymentRejected;
  const text = { error: code, ...(isServed && { from: "the service" }), ...rest, ...more };
  return { isError: true, content: [{ type: "text", text: visibleJson(text) }] };
}

/** The terms behind a contract's address. Throws RefusedToSign if the service shows others. */
export async function termsOf(agent: Agent, id: string) {
  const served = await agent.terms(id);
  provenTerms(id, served, agent.network);
  return served;
}

/** A contract with its text, price and deadlines from there; the rest is what the service shows. */
export async function contractOf(agent: Agent, id: string): Promise<Contract> {
  const contract = await agent.get(id);
  const { document, escrowTerms: terms } = await termsOf(agent, id);
  const { title, taskDescription, acceptanceCriteria } = document;
  return {
    ...contract,
    id: id.toLowerCase(),
    title,
    taskDescription,
    acceptanceCriteria,
    budgetOrPrice: formatDecimal(BigInt(terms.price)),
    matchDeadline: isoTime(terms.matchDeadline),
    withdrawalDeadline: isoTime(terms.withdrawalDeadline),
    deliveryDeadline: isoTime(terms.deliveryDeadline),
    reviewDeadline: isoTime(terms.reviewDeadline),
  };
}

export function definedOf<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as never;
}
