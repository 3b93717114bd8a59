/** The x402 payment of both versions, built by hand from the quote alone. */
import { randomBytes } from "node:crypto";
import { authorizationTypes } from "@x402/evm";
import type { Address, Hex, LocalAccount, TypedDataDomain } from "viem";
import type { PaymentQuote } from "../../src/payments/x402.js";
import type { Agent, ApiResponse } from "./agent.js";

export interface Quote {
  scheme: string;
  network: string;
  payTo: Address;
  asset: Address;
  /** Version 2 only. */
  amount: string;
  maxAmountRequired: string;
  maxTimeoutSeconds: number;
  resource: string;
  description: string;
  extra: { name: string; version: string };
}

export interface Authorization {
  from: Address;
  to: Address;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
}

/** The decoded `Payment-Required` header of a 402. */
export function paymentRequired(response: ApiResponse): {
  x402Version: number;
  error?: string;
  accepts: Quote[];
} {
  const header = response.headers.get("payment-required");
  if (response.status !== 402 || header === null) {
    throw new Error(`No quote: ${response.status} ${JSON.stringify(response.body)}`);
  }
  return JSON.parse(Buffer.from(header, "base64").toString("utf8"));
}

/** The quote of a 402, with the reason of the rejection if it refuses a payment. */
export function quoteOf(response: ApiResponse): Quote & { error?: string | undefined } {
  const { accepts, error } = paymentRequired(response);
  return { ...(accepts[0] as Quote), error };
}

export type SignedPayment = Authorization & { signature: Hex };

/** A stablecoin and its chain, as deployments and quotes name them. */
export type Stablecoin = Pick<PaymentQuote, "asset" | "chainId">;

/** The EIP-712 domain of a stablecoin. */
export const domainOf = ({ asset, chainId }: Stablecoin): TypedDataDomain => ({
  name: asset.name,
  version: asset.version,
  chainId,
  verifyingContract: asset.address,
});

/** Signs a transfer authorization (EIP-3009). By default it is valid for ten minutes by this process's clock. */
export async function signAuthorization(
  payer: Pick<LocalAccount, "address" | "signTypedData">,
  domain: TypedDataDomain,
  fields: Pick<Authorization, "to" | "value"> & Partial<Authorization>,
): Promise<SignedPayment> {
  const message = {
    from: payer.address.toLowerCase() as Address,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1000) + 600),
    nonce: `0x${randomBytes(32).toString("hex")}` as Hex,
    ...fields,
  };
  const primaryType = "TransferWithAuthorization";
  const signature = await payer.signTypedData({ domain, types: authorizationTypes, primaryType, message });
  return { ...message, signature };
}

/** Signs a transfer authorization for a quote, with any field changed. */
export function authorize(
  payer: Agent,
  quote: Quote,
  { chainId, changes = {} }: { chainId: number; changes?: Partial<Authorization> },
): Promise<SignedPayment> {
  const domain = { ...quote.extra, chainId, verifyingContract: quote.asset };
  const quoted = { from: payer.address, to: quote.payTo, value: BigInt(quote.maxAmountRequired) };
  return signAuthorization(payer.account, domain, { ...quoted, ...changes });
}

/** The payload of an x402 payment. */
export function payloadOf({ signature, ...authorization }: SignedPayment) {
  const { value, validAfter, validBefore, ...rest } = authorization;
  return {
    signature,
    authorization: {
      ...rest,
      value: String(value),
      validAfter: String(validAfter),
      validBefore: String(validBefore),
    },
  };
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** The request header of a version 2 payment. */
export function version2(
  { error: _, ...quote }: Quote & { error?: string | undefined },
  signed: SignedPayment,
): Record<string, string> {
  const payment = { x402Version: 2, accepted: quote, payload: payloadOf(signed) };
  return { "payment-signature": base64(payment) };
}

/** A call that is quoted and signed but not paid; `send` pays it, each time with the same payment. */
export async function signedCall<T = unknown>(
  payer: Agent,
  path: string,
  body: unknown,
  options: { chainId: number; changes?: Partial<Authorization> },
) {
  const quote = quoteOf(await payer.post(path, body));
  const payment = await authorize(payer, quote, options);
  const headers = version2(quote, payment);
  return { quote, payment, headers, send: () => payer.post<T>(path, body, headers) };
}

/** The request header of a version 1 payment. */
export function version1(quote: Quote, signed: SignedPayment): Record<string, string> {
  const { scheme, network } = quote;
  return { "x-payment": base64({ x402Version: 1, scheme, network, payload: payloadOf(signed) }) };
}
