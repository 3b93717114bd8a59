/** Terms at their own address, as the service serves them. */
import { concatHex } from "@working-contracts/protocol/hex";
import {
  canonicalTerms,
  DEFAULT_PARAMETERS,
  escrowAddress,
  packTerms,
  termsDocument,
  termsHash,
} from "@working-contracts/protocol/terms";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import { NETWORK } from "./fake-service.js";

const DOCUMENT = termsDocument({
  title: "Summarise a paper",
  taskDescription: "One page.",
  acceptanceCriteria: ["One page"],
  awardMethod: "open_tender",
  initiator: "client",
  salt: `0x${"12".repeat(32)}`,
});

/** And the code of their escrow, which ends with them. */
export function servedTerms(changes: Partial<EscrowTerms> = {}, document = DOCUMENT) {
  const terms: EscrowTerms = {
    initiator: `0x${"aa".repeat(20)}`,
    price: 50_000_000n,
    counterparty: `0x${"00".repeat(20)}`,
    criteriaCount: 1,
    workerInitiated: false,
    computedCriteria: false,
    matchDeadline: 1_800_000_000,
    withdrawalDeadline: 1_800_000_100,
    deliveryDeadline: 1_800_000_200,
    reviewDeadline: 1_800_000_300,
    termsHash: termsHash(document),
    parameters: DEFAULT_PARAMETERS,
    ...changes,
  };
  const id = escrowAddress({
    ...(NETWORK as { factory: `0x${string}`; implementation: `0x${string}` }),
    terms,
  });
  const escrowTerms = { ...terms, price: String(terms.price) };
  const code = concatHex([`0x${"00".repeat(45)}`, packTerms(terms)]);
  return { id, code, terms: { document, canonicalDocument: canonicalTerms(document), escrowTerms } as never };
}
