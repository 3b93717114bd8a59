/** The result of every tool: JSON text, or the service's error as a tool error that the model can act on. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { refusalOf } from "../errors.js";

export const ContractIdSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .describe("Contract id: the address of its escrow");

export async function toolResult(perform: () => Promise<unknown>): Promise<CallToolResult> {
  try {
    return { content: [{ type: "text", text: JSON.stringify(await perform(), null, 2) }] };
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
