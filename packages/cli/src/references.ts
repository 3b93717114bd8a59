import { type Agent, type ReferenceField, ServiceError } from "@working-contracts/client/index";

/** Decrypts a reference. Returns null if the contract has none or the caller is not entitled to its key. */
export async function plainIfAllowed(
  agent: Agent,
  id: string,
  field: ReferenceField,
): Promise<string | null> {
  try {
    return await agent.reveal(id, field);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "forbidden") return null;
    throw error;
  }
}
