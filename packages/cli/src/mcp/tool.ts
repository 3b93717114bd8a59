/** How every tool answers: JSON text, or the service's own refusal as a tool error that the model can act on. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { refusalOf } from "../refusal.js";

export const ContractIdSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .describe("Contract id: the address of its escrow");

export async function answer(perform: () => Promise<unknown>): Promise<CallToolResult> {
  try {
    return { content: [{ type: "text", text: JSON.stringify(await perform(), null, 2) }] };
  } catch (error) {
    return refusal(error as Error);
  }
}

/** An error as the model sees it; with more that it should know. */
export function refusal(error: Error, more: Record<string, string> = {}): CallToolResult {
  const { code, ...rest } = refusalOf(error);
  const text = { error: code, ...rest, ...more };
  return { isError: true, content: [{ type: "text", text: JSON.stringify(text) }] };
}
