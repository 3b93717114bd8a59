/** Recomputes the terms that a contract's address commits to. Every payment depends on this check. */
import { parseDecimal } from "@working-contracts/protocol/amounts";
import { depositsOf, disputeBond, voteDeposit } from "@working-contracts/protocol/ledger";
import type { Status } from "@working-contracts/protocol/status";
import {
  canonicalTerms,
  creationSalt,
  escrowAddress,
  outOfBounds,
  type Parameters,
  type TermsDocument,
  termsDocument,
  termsHash,
} from "@working-contracts/protocol/terms";
import { type Address, type EscrowTerms, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import type { components } from "./api.js";
import { RefusedToSign } from "./errors.js";
import type { PinnedNetwork, Terms } from "./types.js";

/** The request that posts a contract. Its bytes decide the contract's address (docs/rules.md 19). */
export type Posted = components["schemas"]["CreateContract"];

/** The terms behind `id`. Throws RefusedToSign if the address commits to others, or parameters are out of bounds. */
export function provenTerms(id: string, served: Terms, network: PinnedNetwork): EscrowTerms {
  const { escrowTerms } = served;
  const terms: EscrowTerms = { ...(escrowTerms as unknown as EscrowTerms), price: BigInt(escrowTerms.price) };
  const document = served.document as TermsDocument;
  if (canonicalTerms(document) !== served.canonicalDocument || termsHash(document) !== terms.termsHash)
    throw new RefusedToSign("terms", "the document does not match its canonical text, or the escrow's terms");
  // The escrow acts by its terms, the reader by the document.
  if (
    terms.workerInitiated !== (document.initiator === "worker") ||
    terms.computedCriteria !== (document.application === "usageticket") ||
    terms.criteriaCount !== document.acceptanceCriteria.length
  )
    throw new RefusedToSign(
      "terms",
      "the document's initiator, number of criteria or application differs from the escrow's",
    );
  requireAddress(id, terms, network);
  return terms;
}

/** The terms of a contract to post. Throws RefusedToSign for parameters out of bounds, or if they do not lead to `payTo`. */
export function ownTerms(
  payTo: string,
  creation: { posted: Posted; body: string; caller: Address; served: Terms; network: PinnedNetwork },
): EscrowTerms {
  const { posted, body, caller, served, network } = creation;
  const isListing = posted.initiator === "worker";
  const document = termsDocument({
    title: posted.title.trim(),
    taskDescription: posted.taskDescription,
    acceptanceCriteria: posted.acceptanceCriteria.map((criterion) => criterion.trim()),
    awardMethod: posted.awardMethod,
    initiator: isListing ? "worker" : "client",
    application: posted.application ?? null,
    applicationTerms: posted.applicationTerms ?? null,
    supplementaryMaterials: posted.supplementaryMaterials ?? null,
    salt: creationSalt(caller, new TextEncoder().encode(body)),
  });
  const terms: EscrowTerms = {
    initiator: caller,
    price: priceOf(posted),
    counterparty: ((isListing ? posted.client : posted.worker)?.toLowerCase() ?? ZERO_ADDRESS) as Address,
    criteriaCount: posted.acceptanceCriteria.length,
    workerInitiated: isListing,
    computedCriteria: posted.application === "usageticket",
    matchDeadline: secondsOf(posted.matchDeadline),
    withdrawalDeadline: secondsOf(posted.withdrawalDeadline),
    deliveryDeadline: secondsOf(posted.deliveryDeadline),
    reviewDeadline: secondsOf(posted.reviewDeadline),
    termsHash: termsHash(document),
    parameters: served.escrowTerms.parameters as Parameters,
  };
  requireAddress(payTo, terms, network);
  return terms;
}

/** A payment to a contract's escrow: in which status, and until when in seconds. */
export interface Due {
  status?: Status;
  amount: bigint;
  deadline?: number;
}

export const dueToCreate = (terms: EscrowTerms): Due => ({
  amount: depositsOf(terms).initiator,
  deadline: terms.matchDeadline,
});

export const dueToAccept = (terms: EscrowTerms): Due => ({
  status: "created",
  amount: depositsOf(terms).acceptor,
  deadline: terms.matchDeadline,
});

export const dueToDispute = ({ price, parameters, reviewDeadline }: EscrowTerms): Due => ({
  status: "under-review",
  amount: disputeBond(price, parameters),
  deadline: reviewDeadline,
});

/** Throws RangeError unless there is an outcome for each criterion: another commitment could never be opened. */
export const dueToVote =
  (words: readonly unknown[]) =>
  ({ price, criteriaCount, parameters }: EscrowTerms): Due => {
    if (words.length !== criteriaCount)
      throw new RangeError(`${words.length} outcomes for ${criteriaCount} criteria`);
    return { status: "disputed", amount: voteDeposit(price, criteriaCount, parameters) };
  };

/** Code can be genuine, and what a factory stores forged: the bounds that its code sets hold for its parameters, too. */
export function requireBounds({ parameters }: EscrowTerms): void {
  const wrong = outOfBounds(parameters);
  if (wrong !== undefined)
    throw new RefusedToSign(wrong, `${parameters[wrong]} is beyond what a factory's code accepts`);
}

function requireAddress(id: string, terms: EscrowTerms, network: PinnedNetwork): void {
  requireBounds(terms);
  const { factory, implementation } = network as { factory: Address; implementation: Address };
  const address = escrowAddress({ factory, implementation, terms });
  if (address === id.toLowerCase()) return;
  throw new RefusedToSign(
    "payTo",
    `these terms lead to the escrow ${address}, but the quote asks to pay ${id}`,
  );
}

function priceOf({ budgetOrPrice }: Posted): bigint {
  const price = parseDecimal(String(budgetOrPrice));
  if (price === null)
    throw new RangeError(`budgetOrPrice: ${budgetOrPrice} is not a decimal with at most 6 decimals`);
  return price;
}

function secondsOf(time: string): number {
  return Math.floor(Date.parse(time) / 1000);
}
