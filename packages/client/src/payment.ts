/** Checks a quote against the caller's own expectation, and signs the payment for it. */

import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { toHex } from "@working-contracts/protocol/hex";
import type { Status } from "@working-contracts/protocol/status";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import type { components } from "./api.js";
import { RefusedToSign, SpendingLimitError } from "./errors.js";
import { textOf } from "./http.js";
import type { Session } from "./session.js";
import type { Addresses, PinnedNetwork } from "./types.js";
import type { Signer } from "./wallets.js";

/** The only payment that may be signed. Every field is known before the quote, or proven from it. */
export interface Expected {
  payTo: string;
  /** Smallest unit of the currency. */
  amount: bigint;
  /** One of the network's two currencies, chosen by the kind of call and never by the service. */
  currency: PlannedPayment["currency"];
  resource: string;
  /** Time in seconds after which the payment is of no use, so the authorization ends then at the latest. */
  deadline?: number;
  /** The escrow that is paid, and whether this payment creates it. */
  escrow?: { id: string; terms: EscrowTerms; isNew?: boolean };
  /** Status of the escrow in which the payment is for this call; in another, the service could use it for another. */
  status?: Status;
}

type Documented = components["schemas"]["PaymentRequired"];
/** A quote of x402 version 2, as the service documents it. Every field is checked before it is used. */
type PaymentRequired = Partial<Omit<Documented, "extensions">> & { extensions?: OfferReceipt };
/** An entry of `accepts` in a 402 response (x402 version 2), with its amount in base units. */
export type Quote = Documented["accepts"][number];

/** The first way to pay that a 402 response offers, and the whole quote. Neither is checked yet. */
export interface QuotedPayment {
  quote: Quote;
  required: PaymentRequired;
}

/** Reads the quote of a 402, and why an earlier payment was rejected. Throws RefusedToSign if it cannot be read. */
export function readQuote(headers: Headers): QuotedPayment & { error: string; message: string } {
  const header = headers.get("payment-required");
  if (header === null) throw new RefusedToSign("quote", "the 402 response has no Payment-Required header");
  let required: PaymentRequired;
  try {
    required = JSON.parse(new TextDecoder().decode(bytesOf(header))) as PaymentRequired;
  } catch {
    throw new RefusedToSign("quote", "the Payment-Required header cannot be read");
  }
  const [quote] = required.accepts ?? [];
  if (quote === undefined) throw new RefusedToSign("quote", "the quote has no payment option");
  const { error = "payment_required", errorMessage } = required;
  // A reason that is no text fails here: later, its error would lose the payment that was signed.
  return { quote, required, error, message: String(errorMessage ?? error) };
}

/** The x402 extension `offer-receipt`: JWS that the key in the service's `did:web` document signed. */
export interface OfferReceipt {
  "offer-receipt"?: { info: { offers?: { signature: string }[]; receipt?: { signature: string } } };
}

/** The offer and the receipt of a payment as the service signed them (compact JWS). */
export interface PaymentProof {
  offer: string | null;
  receipt: string | null;
  /** The published keys that signed them, in JSON Web Key form by their id: the service can vanish, or rotate them. */
  keys: Record<string, object>;
  /** Why they do not prove this payment; null if they do. */
  fault: string | null;
}

/** Throws RefusedToSign at the first difference between the quote and the expected payment. */
export function requireExpected(
  { quote, required }: QuotedPayment,
  expected: Expected,
  network: PinnedNetwork,
): void {
  const pairs: [field: string, quoted: unknown, wanted: unknown][] = [
    ["x402Version", required.x402Version, 2],
    ["scheme", quote.scheme, "exact"],
    ["network", quote.network, `eip155:${network.chainId}`],
    ["asset", lower(quote.asset), assetOf(expected, network)],
    ["payTo", lower(quote.payTo), expected.payTo],
    ["amount", quote.amount, expected.amount.toString()],
    // Only version 1 requires `maxAmountRequired`.
    ["amount", quote.maxAmountRequired ?? quote.amount, expected.amount.toString()],
    ["resource", required.resource?.url, expected.resource],
  ];
  for (const [field, value, wanted] of pairs) {
    if (value !== wanted) throw new RefusedToSign(field, `the quote says ${value}, expected ${wanted}`);
  }
}

/** The trusted address of the token, never the quoted one. */
export function assetOf({ currency }: Expected, { asset, protocolToken }: Addresses): string {
  return currency === "stablecoin" ? asset.address : protocolToken;
}

/** Leaves time for an operation that has to queue: once its signature has expired, the service does not retry it. */
export const VALIDITY_SECONDS = 600;

/** Signs the payment of a checked quote; only the protocol token's name and version come from the quote. */
export async function signPayment(
  { signer, network }: Pick<Session, "signer" | "network">,
  { quote, required }: QuotedPayment,
  { expected, validBefore, nonce }: { expected: Expected; validBefore: number; nonce?: Hex | undefined },
): Promise<string> {
  const { currency, payTo, amount } = expected;
  const { message, signature } = await signAuthorization(signer, network, {
    asset: currency === "stablecoin" ? network.asset : { ...quote.extra, address: network.protocolToken },
    payTo,
    amount,
    validBefore,
    nonce,
  });
  const payload = { signature, authorization: message };
  const signed = { x402Version: 2, resource: required.resource, accepted: quote, payload };
  return btoa(String.fromCharCode(...new TextEncoder().encode(textOf(signed))));
}

/** Signs a payment that only the payee can use (docs/decisions.md, "Payments that only the escrow can use"). */
export async function signAuthorization(
  signer: Signer,
  { chainId, asset: stablecoin }: Pick<PinnedNetwork, "chainId" | "asset">,
  {
    asset: { address, name, version },
    payTo,
    amount,
    validBefore,
    nonce = toHex(crypto.getRandomValues(new Uint8Array(32))),
  }: {
    asset: { address: string; name?: string; version?: string };
    payTo: string;
    amount: bigint;
    /** Seconds. */
    validBefore: number;
    nonce?: Hex | undefined;
  },
) {
  const isReceived = lower(address) === stablecoin.address;
  const primaryType = isReceived ? "ReceiveWithAuthorization" : "TransferWithAuthorization";
  const message = {
    from: signer.address,
    to: payTo as Address,
    value: amount,
    // By a 1 the escrow knows which kind to try first.
    validAfter: isReceived ? 1n : 0n,
    validBefore: BigInt(validBefore),
    nonce,
  };
  const signature = await signer.signTypedData({
    domain: { name, version, chainId, verifyingContract: address as Address },
    types: { [primaryType]: AUTHORIZATION_FIELDS },
    primaryType,
    message,
  });
  return { message, signature };
}

/** EIP-3009. */
const AUTHORIZATION_FIELDS = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
];

/** Decodes base64. Throws a DOMException on other text, such as base64url with `-` or `_`. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

function lower(text: unknown): unknown {
  return typeof text === "string" ? text.toLowerCase() : text;
}

/** Decimal amounts. If `perCall` or `stake` is absent, such payments are refused; without `total` there is no total. */
export interface SpendingLimit {
  /** Maximum payment of one call, in the stablecoin. */
  perCall?: string;
  /** Maximum payment of all calls together, in the stablecoin. */
  total?: string;
  /** Maximum stake of one call, in protocol tokens. */
  stake?: string;
}

/** A payment that is about to be signed. */
export interface PlannedPayment {
  currency: "stablecoin" | "protocol-token";
  /** Address of the token. */
  token: string;
  /** Smallest unit. */
  amount: bigint;
  /** The amount as a decimal. */
  decimal: string;
  /** URL of the request that is paid for; the escrow's address of a payment without the service. */
  resource: string;
  /** The contract's escrow, or the registry of stakes. */
  payTo: string;
  /** The payer has it, or gets it by this payment. */
  role: "Client" | "Worker" | "Backup Agent";
  /** Of the contract that is paid for, among them the protocol's parameters for it: fee, ratios, voting window. */
  terms?: EscrowTerms;
}

/** A step of a payment: its quote is checked, it is about to be signed, it is sent, or it is used. */
export interface PaymentProgress {
  step: "quoted" | "signing" | "sent" | "paid";
  payment: PlannedPayment;
}

type Priced = Pick<PlannedPayment, "currency" | "amount" | "decimal" | "resource">;

/** A signed payment counts regardless of its outcome, because anyone who holds the signature can use it. */
export function createBudget(limit: SpendingLimit | undefined) {
  const perCall = unitsOf(limit?.perCall, "perCall");
  const total = unitsOf(limit?.total, "total");
  const stake = unitsOf(limit?.stake, "stake", TOKEN_DECIMALS);
  let spent = 0n;
  const refusal = ({ resource, decimal }: Priced, reason: string) =>
    new SpendingLimitError(`${resource} costs ${decimal}${reason}`);
  /** Throws SpendingLimitError above the limit of one call. */
  const check = (payment: Priced): void => {
    const isStake = payment.currency === "protocol-token";
    const most = isStake ? stake : perCall;
    const name = isStake ? "stake (wcontract mcp: --max-stake)" : "perCall (wcontract mcp: --max-per-call)";
    if (most === null) throw refusal(payment, `. Set spendingLimit.${name} to allow such payments.`);
    const allowed = formatDecimal(most, isStake ? TOKEN_DECIMALS : undefined);
    if (payment.amount > most) throw refusal(payment, `, more than ${allowed}, the spendingLimit.${name}.`);
  };
  return {
    check,
    /** Counts the payment. Throws SpendingLimitError if it must not be signed. */
    spend(payment: Priced): void {
      check(payment);
      if (payment.currency === "protocol-token") return;
      if (total !== null && spent + payment.amount > total)
        throw refusal(
          payment,
          `. Together with the ${formatDecimal(spent)} already signed, this exceeds spendingLimit.total (${formatDecimal(total)}).`,
        );
      spent += payment.amount;
    },
  };
}

function unitsOf(decimal: string | undefined, name: string, decimals?: number): bigint | null {
  if (decimal === undefined) return null;
  const units = parseDecimal(decimal, decimals);
  if (units === null) throw new RangeError(`spendingLimit.${name}: ${decimal} is not a decimal amount`);
  return units;
}
