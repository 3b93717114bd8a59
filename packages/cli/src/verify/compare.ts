/** Compares the chain with the API, field by field. */

import type { Contract, Settlement, Terms } from "@working-contracts/client/index";
import canonicalize from "canonicalize";
import { keccak256, stringToHex } from "viem";
import type { EscrowOnChain } from "./read-chain.js";
import type { Rebuilt } from "./rebuild.js";

export interface Comparison {
  field: string;
  chain: unknown;
  api: unknown;
  equal: boolean;
}

export interface ApiAnswers {
  contract: Contract;
  terms: Terms;
  settlement: Settlement;
  /** Decrypted reference; null if there is none or the caller may not read it. */
  delivery: string | null;
  supplementaryMaterials: string | null;
}

/** Fields of the Contract that have the same name in the hashed terms document. */
const TEXT_FIELDS = [
  "title",
  "taskDescription",
  "acceptanceCriteria",
  "awardMethod",
  "initiator",
  "contractType",
  "verificationMode",
] as const;
const MATERIALS = "supplementaryMaterialsHash";
const UNPROVEN = "(the text behind termsHash is unknown)";

/** Returns one row for each fact that both the chain and the API state. */
export function compare(id: string, escrow: EscrowOnChain, rebuilt: Rebuilt, api: ApiAnswers): Comparison[] {
  const { contract, terms, settlement, delivery } = api;
  const rows: Comparison[] = [];
  const row = (field: string, chain: unknown, served: unknown): void => {
    rows.push({ field, chain, api: served, equal: canonicalize(chain) === canonicalize(served) });
  };

  const { statusOnChain, ...fields } = rebuilt.contract;
  row("address of the terms", fields.id, id);
  row("status reported by the escrow", statusOnChain, fields.status);
  for (const [field, value] of Object.entries(fields)) row(field, value, contract[field as keyof Contract]);
  row("acceptanceCriteria, count", escrow.terms.criteriaCount, contract.acceptanceCriteria.length);

  const served = terms.escrowTerms as Record<string, unknown>;
  for (const [field, value] of Object.entries(escrow.terms)) {
    row(`terms.${field}`, typeof value === "bigint" ? String(value) : value, served[field]);
  }
  const textHash = keccak256(stringToHex(terms.canonicalDocument));
  row("text of the terms, hash", escrow.terms.termsHash, textHash);
  const isProven = textHash === escrow.terms.termsHash;
  const document = JSON.parse(terms.canonicalDocument) as Record<string, unknown>;
  const proven = (name: string): unknown => (isProven ? document[name] : UNPROVEN);
  for (const field of TEXT_FIELDS) row(`${field} in the terms`, proven(field), contract[field]);
  const hashOf = (plain: string): string => keccak256(stringToHex(plain));
  const hasMaterials = isProven ? document[MATERIALS] !== null : UNPROVEN;
  row("has supplementaryMaterials", hasMaterials, contract.supplementaryMaterials !== null);
  if (api.supplementaryMaterials !== null) {
    row("supplementaryMaterials, hash", proven(MATERIALS), hashOf(api.supplementaryMaterials));
  }
  row("has delivery", rebuilt.deliveryHash !== null, contract.delivery !== null);
  if (delivery !== null) row("delivery, hash", rebuilt.deliveryHash, hashOf(delivery));

  const { legs, ...ends } = rebuilt.settlement;
  for (const [field, value] of Object.entries(ends)) {
    row(`settlement.${field}`, value, settlement[field as keyof Settlement]);
  }
  row("settlement.legs, count", legs.length, settlement.legs.length);
  for (const [i, leg] of legs.entries()) row(`settlement.${leg.name} to ${leg.to}`, leg, settlement.legs[i]);
  for (const { payee, moved, due } of rebuilt.transfers) row(`transferred to ${payee}`, moved, due);
  return rows;
}
