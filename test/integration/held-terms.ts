import type { Address } from "@working-contracts/protocol/types";
import { keccak256, stringToHex } from "viem";
import type { Database } from "../../src/db/client.js";
import { terms } from "../../src/db/schema.js";

/** Makes this service hold the escrow's terms. Its loops ignore other escrows. */
export async function holdTerms(
  db: Database,
  { escrow, title, caller }: { escrow: Address; title: string; caller: Address },
): Promise<void> {
  await db.insert(terms).values({
    id: escrow.toLowerCase(),
    caller: caller.toLowerCase(),
    bodyHash: keccak256(stringToHex(title)),
    document: "{}",
    termsHash: keccak256(stringToHex(title)),
    title,
    taskDescription: "",
    acceptanceCriteria: [],
    awardMethod: "open_tender",
    initiator: "client",
    escrowTerms: {},
  });
}
