/** Actions that their agent signs itself, as the refusal of an unsigned call asks. */
import type { Hex } from "viem";
import type { Agent, ApiResponse } from "./agent.js";

export interface ToSign {
  message: { agent: string; call: Hex; nonce: string; deadline: number };
}

/** The typed data that the refusal asks to sign. */
export const toSign = ({ error }: Pick<ApiResponse, "error">) =>
  (error as { details: { sign: ToSign } }).details.sign;

/** The headers that carry the agent's signature. */
export async function signedHeaders(
  { account }: Pick<Agent, "account">,
  sign: ToSign,
): Promise<Record<string, string>> {
  const signature = await account.signTypedData(sign as never);
  return { "Action-Signature": signature, "Action-Deadline": String(sign.message.deadline) };
}
