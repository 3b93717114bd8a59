/** Shared by the contract tests: bodies, quotes, hand-made payments, and roles. */
import type { Hex } from "viem";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { Agent, Answer } from "../support/agent.js";
import { created, draft, matched, untilStatus as statusReached } from "../support/contracts.js";
import {
  type Authorization,
  authorize,
  quoteOf as firstQuote,
  paymentRequired,
  type Quote,
  version2,
} from "../support/payment.js";
import type { World } from "../support/world.js";

export const draftBody = draft;
export const createdBy = created<ContractView>;
export const untilStatus = statusReached<ContractView>;

/** The quote in a 402's header, and the reason of the rejection. */
export function quoteOf(answer: Answer): Quote & { error: string | undefined } {
  return { ...firstQuote(answer), error: paymentRequired(answer).error };
}

export type SignedPayment = Authorization & { signature: Hex };

/** Signs a transfer authorization for a quote, as a careful client would. Any field can be changed. */
export async function signPayment(
  world: World,
  payer: Agent,
  quote: Quote,
  changes: Partial<Authorization> = {},
): Promise<SignedPayment> {
  const validBefore = BigInt((await world.chainNow()) + 10 * 60);
  const { chainId } = world.deployment;
  return authorize(payer, quote, { chainId, changes: { validBefore, ...changes } });
}

/** The version 2 request header of a payment. */
export function paymentHeader(
  { error: _, ...quote }: Quote & { error?: string | undefined },
  payment: SignedPayment,
): Record<string, string> {
  return version2(quote, payment);
}

/** A contract that a worker has accepted. */
export function matchedBetween(
  world: World,
  client: Agent,
  worker: Agent,
  overrides: Record<string, unknown> = {},
): Promise<ContractView> {
  return matched<ContractView>(world, { client, worker }, overrides);
}
