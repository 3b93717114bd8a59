/** Shared by the contract tests: bodies, quotes, hand-made payments, and roles. */
import { randomBytes } from "node:crypto";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { authorizationTypes } from "@x402/evm";
import type { Address, Hex } from "viem";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { Agent, Answer } from "../support/agent.js";
import type { World } from "../support/world.js";

export const HOUR = 3600;
export const DAY = 24 * HOUR;

/** A valid Create body: open tender, price 50, deadlines in one hour and in one, two and three days. */
export async function draftBody(
  world: World,
  overrides: Record<string, unknown> = {},
): Promise<Record<string, unknown>> {
  return {
    idempotencyKey: randomBytes(8).toString("hex"),
    title: "Translate a page",
    taskDescription: "Translate the attached page into Latin.",
    acceptanceCriteria: ["Every sentence is there", "The grammar is right", "Delivered as Markdown"],
    contractType: "fixed",
    awardMethod: "open_tender",
    budgetOrPrice: 50,
    matchDeadline: await world.inSeconds(HOUR),
    withdrawalDeadline: await world.inSeconds(DAY),
    deliveryDeadline: await world.inSeconds(2 * DAY),
    reviewDeadline: await world.inSeconds(3 * DAY),
    ...overrides,
  };
}

export interface Quote {
  payTo: Address;
  amount: string;
  maxAmountRequired: string;
  asset: Address;
  network: string;
  maxTimeoutSeconds: number;
  extra: { name: string; version: string };
}

/** The quote in a 402's header, and the reason of the rejection. */
export function quoteOf(answer: Answer): Quote & { error: string | undefined } {
  const header = answer.headers.get("payment-required");
  if (answer.status !== 402 || header === null)
    throw new Error(`No quote: ${answer.status} ${JSON.stringify(answer.body)}`);
  const decoded = decodePaymentRequiredHeader(header) as unknown as { error?: string; accepts: Quote[] };
  return { ...(decoded.accepts[0] as Quote), error: decoded.error };
}

export interface SignedPayment {
  from: Address;
  to: Address;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
  signature: Hex;
}

/** Signs a transfer authorization for a quote, as a careful client would. Any field can be changed. */
export async function signPayment(
  world: World,
  payer: Agent,
  quote: Quote,
  changes: Partial<Omit<SignedPayment, "signature">> = {},
): Promise<SignedPayment> {
  const message = {
    from: payer.address,
    to: quote.payTo,
    value: BigInt(quote.amount),
    validAfter: 0n,
    validBefore: BigInt((await world.chainNow()) + 10 * 60),
    nonce: `0x${randomBytes(32).toString("hex")}` as Hex,
    ...changes,
  };
  const signature = await payer.account.signTypedData({
    domain: { ...quote.extra, chainId: world.deployment.chainId, verifyingContract: quote.asset },
    types: authorizationTypes,
    primaryType: "TransferWithAuthorization",
    message,
  });
  return { ...message, signature };
}

/** The version 2 request header of a payment. */
export function paymentHeader(quote: Quote, payment: SignedPayment): Record<string, string> {
  const { signature, from, to, value, validAfter, validBefore, nonce } = payment;
  const { payTo, amount, asset, network, maxTimeoutSeconds, extra } = quote;
  return {
    "payment-signature": encodePaymentSignatureHeader({
      x402Version: 2,
      accepted: {
        scheme: "exact",
        payTo,
        amount,
        asset,
        network: network as `${string}:${string}`,
        maxTimeoutSeconds,
        extra,
      },
      payload: {
        signature,
        authorization: {
          from,
          to,
          value: value.toString(),
          validAfter: validAfter.toString(),
          validBefore: validBefore.toString(),
          nonce,
        },
      },
    }),
  };
}

/** Creates a contract with the stock x402 client. Throws if that fails. */
export async function createdBy(
  world: World,
  agent: Agent,
  overrides: Record<string, unknown> = {},
): Promise<ContractView> {
  const answer = await agent.pay<ContractView>("/v1/contracts", await draftBody(world, overrides));
  if (answer.status !== 200) throw new Error(`Not created: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.data;
}

/** A contract that a worker has accepted. */
export async function matchedBetween(
  world: World,
  client: Agent,
  worker: Agent,
  overrides: Record<string, unknown> = {},
): Promise<ContractView> {
  const { id } = await createdBy(world, client, overrides);
  const answer = await worker.pay<ContractView>(`/v1/contracts/${id}/accept`, { accept: true });
  if (answer.status !== 200) throw new Error(`Not matched: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.data;
}

/** Reads a contract until it has the status. Throws after ten seconds. */
export async function untilStatus(agent: Agent, id: string, status: string): Promise<ContractView> {
  const giveUpAt = performance.now() + 60_000;
  for (;;) {
    const { data } = await agent.get<ContractView>(`/v1/contracts/${id}`);
    if (data.status === status) return data;
    if (performance.now() > giveUpAt) throw new Error(`${id} is ${data.status}, not ${status}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
