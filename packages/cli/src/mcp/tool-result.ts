/** The result of every tool: structured, and as JSON text; or the service's error, so that the model can act on it. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { refusalOf } from "../errors.js";

export const ContractIdSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .describe("Contract id: the address of its escrow");

export async function toolResult(perform: () => Promise<object>): Promise<CallToolResult> {
  try {
    const result = await perform();
    return {
      content: [{ type: "text", text: JSON.stringify(result, null, 2) }],
      structuredContent: result as Record<string, unknown>,
    };
  } catch (error) {
    return refusal(error as Error);
  }
}

/** Converts an error to a tool error, with extra fields for the model. */
export function refusal(error: Error, more: Record<string, string> = {}): CallToolResult {
  const { code, ...rest } = refusalOf(error);
  const text = { error: code, ...rest, ...more };
  return { isError: true, content: [{ type: "text", text: JSON.stringify(text) }] };
}

/** The fields that were given. */
export function given<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as never;
}
