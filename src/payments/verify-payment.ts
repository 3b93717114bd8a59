import type { Address } from "@working-contracts/protocol/types";
import { authorizationTypes } from "@x402/evm";
import {
  BaseError,
  concat,
  domainSeparator,
  encodeFunctionData,
  type Hex,
  hashStruct,
  isErc6492Signature,
  keccak256,
  type PublicClient,
  prepareEncodeFunctionData,
} from "viem";
import { movedClockHint } from "../chain/clients.js";
import { askWallet, callOrRevert, recoverSigner } from "../chain/signatures.js";
import { balanceOf, isUsed, tokenAbi } from "../chain/token.js";
import { AppError } from "../errors.js";
import {
  type EchoedQuote,
  networkName,
  type PaymentAsset,
  type PaymentAuthorization,
  type PaymentQuote,
  type Rejection,
  reject,
} from "./x402.js";

/** `payment` is the one to relay: its signature is in the form that the token accepts. */
type Verification = { ok: true; payment: PaymentAuthorization } | Rejection;

interface VerifyPaymentInput {
  publicClient: PublicClient;
  payment: PaymentAuthorization;
  quote: PaymentQuote;
  /** The authenticated caller: refunds and roles follow the payer, so both must be one address. */
  payer: Address;
  /** The chain's clock in seconds. */
  now: number;
  /** Whether the payee can use a `ReceiveWithAuthorization`: escrows can, the registry cannot. */
  isReceivable: boolean;
}

/** A payer's two ways to authorize a transfer (EIP-3009). Anyone can use the first at the token; the second only the payee itself. */
const KINDS = ["TransferWithAuthorization", "ReceiveWithAuthorization"] as const;
type AuthorizationKind = (typeof KINDS)[number];

/** Life that a signature must have left to be brought on chain; the x402 reference implementation keeps the same margin. */
export const SETTLEMENT_MARGIN_SECONDS = 6;
const HALF_OF_CURVE_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
const ERC1271_MAGIC_VALUE = "0x1626ba7e";

/**
 * Whether the token would accept this payment for exactly this quote now. Throws 503 `unavailable` if the node does not
 * answer: the same call can succeed later. A good payment costs one simulation; reads only explain refusals.
 */
export async function verifyPayment(input: VerifyPaymentInput): Promise<Verification> {
  try {
    return await verify(input);
  } catch (cause) {
    if (!(cause instanceof BaseError)) throw cause;
    const message = "The payment cannot be checked right now. No funds moved; retry the identical request.";
    throw new AppError("unavailable", { message, retryAfterSeconds: 2, cause });
  }
}

async function verify(input: VerifyPaymentInput): Promise<Verification> {
  const { publicClient, payment, quote } = input;
  // First: the escrow of a creation depends on its payer, so any other reason would mislead.
  if (payment.from !== input.payer) {
    return reject(
      "payer_mismatch",
      `The payment is from ${payment.from}, but this call is made by ${input.payer}. Pay from the address that the API key belongs to. No funds moved.`,
    );
  }
  const mismatch = requirementsFault(payment, quote);
  if (mismatch) return mismatch;

  const found = await findSignature(input);
  if (found === null) return signatureFault(payment);

  const { kind, digest, signature } = found;
  const signed: PaymentAuthorization = { ...payment, signature };
  if (payment.value !== quote.amount) return valueFault(payment.value.toString(), quote);
  if (payment.to !== quote.payTo) return recipientFault(payment.to, quote);

  const late = validityFault(signed, input.now);
  if (!late && (await callOrRevert(publicClient, transferCall(signed, quote, kind))) !== null) {
    return { ok: true, payment: signed };
  }
  return explain({ input, payment: signed, digest, late });
}

/** Finds the kind that the payer signed, and its signature in the token's form; null if it is over neither. */
async function findSignature(input: VerifyPaymentInput) {
  const { publicClient, payment, quote, isReceivable } = input;
  const candidates: { kind: AuthorizationKind; digest: Hex }[] = [];
  // Our own client's payments, which only the escrow can use, are valid from 1: their signature is recovered once.
  const receivable = payment.validAfter === 1n ? KINDS.toReversed() : KINDS;
  for (const kind of isReceivable ? receivable : KINDS.slice(0, 1)) {
    const digest = authorizationDigest(payment, quote, kind);
    const signature = signatureOfKey(payment, digest);
    if (signature !== null) return { kind, digest, signature };
    candidates.push({ kind, digest });
  }
  for (const candidate of candidates) {
    const isSigned = await isWalletSignature(publicClient, payment, candidate.digest);
    if (isSigned) return { ...candidate, signature: payment.signature };
  }
  return null;
}

/** Why the token refuses. `authorization_used` comes first: a used authorization later also looks expired or unfunded. */
async function explain(refused: {
  input: VerifyPaymentInput;
  payment: PaymentAuthorization;
  digest: Hex;
  late: Rejection | null;
}): Promise<Rejection> {
  const { input, payment, digest, late } = refused;
  const { publicClient, quote } = input;
  const [used, balance, code, block] = await Promise.all([
    isUsed(publicClient, quote.asset.address, payment),
    balanceOf(publicClient, quote.asset.address, payment.from),
    publicClient.getCode({ address: payment.from }),
    publicClient.getBlock(),
  ]);
  if (used) {
    return reject(
      "authorization_used",
      `The nonce ${payment.nonce} has already been used or cancelled at the token ${quote.asset.address}. Sign a new authorization with a fresh nonce, unless the first one paid for this call.`,
    );
  }
  // The token asks an account that runs code (also a delegated key, EIP-7702), whoever holds its key.
  if (code !== undefined && !(await isWalletSignature(publicClient, payment, digest)))
    return signatureFault(payment);
  if (balance < payment.value) {
    return reject(
      "insufficient_funds",
      `${payment.from} holds ${balance} base units of ${quote.asset.address}, and the call costs ${payment.value}. Fund the address and retry the request.`,
    );
  }
  if (late) return late;
  // The token judges by the head's own timestamp, which lags behind the clock until the next block.
  const atHead = tooEarlyFault(payment, Number(block.timestamp));
  if (atHead) return atHead;
  return reject(
    "invalid_transaction_state",
    `The token ${quote.asset.address} refuses this transfer. It might be paused, or it might have blocked ${payment.from} or ${payment.to}.`,
  );
}

/** The echoed quote against ours, field by field; fields that the client dropped are not missed. */
function requirementsFault(payment: PaymentAuthorization, quote: PaymentQuote): Rejection | null {
  const { scheme, network, version } = payment;
  const echoed: EchoedQuote = payment.accepted ?? {};
  for (const given of [scheme, echoed.scheme]) {
    if (typeof given === "string" && given !== "exact") {
      return reject("invalid_scheme", `Pay with the scheme "exact", not "${excerpt(given)}".`);
    }
  }
  const name = networkName(quote.chainId, version);
  for (const given of [network, echoed.network]) {
    if (typeof given === "string" && given !== name && given !== networkName(quote.chainId, 2)) {
      return reject("invalid_network", `Pay on ${name}, not ${excerpt(given)}.`);
    }
  }
  if (echoed.asset !== undefined && echoed.asset.toLowerCase() !== quote.asset.address) {
    return reject(
      "invalid_payment_requirements",
      `Pay in the token ${quote.asset.address}, not ${excerpt(echoed.asset)}.`,
    );
  }
  if (echoed.payTo !== undefined && echoed.payTo.toLowerCase() !== quote.payTo) {
    return recipientFault(echoed.payTo, quote);
  }
  for (const given of [echoed.amount, echoed.maxAmountRequired]) {
    if (given !== undefined && given !== quote.amount.toString()) return valueFault(given, quote);
  }
  return null;
}

function validityFault(payment: PaymentAuthorization, now: number): Rejection | null {
  if (payment.validBefore < BigInt(now + SETTLEMENT_MARGIN_SECONDS)) {
    const nextStep = movedClockHint(
      now,
      'Sign with a later validBefore, by the time of GET /v1/network (client library: clock "service"; wcontract: --clock service)',
    );
    return reject(
      "invalid_exact_evm_payload_authorization_valid_before",
      `The authorization ends at Unix time ${payment.validBefore}; the chain's time is ${now} and settling takes up to ${SETTLEMENT_MARGIN_SECONDS} seconds. ${nextStep ?? "Sign a new one."}`,
    );
  }
  return tooEarlyFault(payment, now);
}

function tooEarlyFault(payment: PaymentAuthorization, now: number): Rejection | null {
  if (payment.validAfter < BigInt(now)) return null;
  return reject(
    "invalid_exact_evm_payload_authorization_valid_after",
    `The authorization starts after Unix time ${payment.validAfter}; the chain's time is ${now}. Retry the request after that, or sign one that has started.`,
  );
}

function valueFault(given: string, quote: PaymentQuote): Rejection {
  return reject(
    "invalid_exact_evm_payload_authorization_value",
    `The call costs exactly ${quote.amount} base units, not ${excerpt(given)}.`,
  );
}

function recipientFault(given: string, quote: PaymentQuote): Rejection {
  return reject(
    "invalid_exact_evm_payload_recipient_mismatch",
    `Pay to ${quote.payTo}, not ${excerpt(given)}. The escrow's address follows from the body: retry with the same bytes that were quoted.`,
  );
}

function signatureFault(payment: PaymentAuthorization): Rejection {
  const undeployed = isErc6492Signature(payment.signature);
  return reject(
    "invalid_exact_evm_payload_signature",
    undeployed
      ? `Signatures of wallets that are not deployed yet (ERC-6492) are not accepted. Deploy the wallet ${payment.from} first, then sign again.`
      : `${payment.from} did not make this signature over this authorization. Check the token's EIP-712 domain (the quote's extra.name and extra.version) and the chain id.`,
  );
}

/** The payment with its signature in the token's form if the payer's own key signed a transfer; otherwise unchanged. */
export function inTokenForm(
  payment: PaymentAuthorization,
  stablecoin: Pick<PaymentQuote, "asset" | "chainId">,
): PaymentAuthorization {
  const digest = authorizationDigest(payment, stablecoin, "TransferWithAuthorization");
  return { ...payment, signature: signatureOfKey(payment, digest) ?? payment.signature };
}

function authorizationDigest(
  payment: PaymentAuthorization,
  stablecoin: Pick<PaymentQuote, "asset" | "chainId">,
  kind: AuthorizationKind,
): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = payment;
  const message = hashStruct({
    types: { [kind]: authorizationTypes.TransferWithAuthorization },
    primaryType: kind,
    data: { from, to, value, validAfter, validBefore, nonce },
  });
  return keccak256(concat(["0x1901", separatorOf(stablecoin), message]));
}

const separators = new WeakMap<PaymentAsset, Hex>();

/** The domain's hash depends on the token alone, and takes half the time of a digest. */
function separatorOf({ asset, chainId }: Pick<PaymentQuote, "asset" | "chainId">): Hex {
  const { address: verifyingContract, name, version } = asset;
  const separator =
    separators.get(asset) ?? domainSeparator({ domain: { name, version, chainId, verifyingContract } });
  separators.set(asset, separator);
  return separator;
}

/** The signature in the token's form if the payer's own key made it, otherwise null: a Safe's last byte must stay. */
function signatureOfKey(payment: PaymentAuthorization, digest: Hex): Hex | null {
  const { signature, from } = payment;
  if (signature.length !== 2 + 2 * 65) return null;
  const last = Number.parseInt(signature.slice(-2), 16);
  const v = last < 27 ? last + 27 : last;
  // Tokens refuse the second, malleable form of a signature.
  if ((v !== 27 && v !== 28) || BigInt(`0x${signature.slice(66, 130)}`) > HALF_OF_CURVE_ORDER) return null;
  const normalized: Hex = `0x${signature.slice(2, 130)}${v.toString(16)}`;
  return recoverSigner(digest, normalized) === from ? normalized : null;
}

/** ERC-1271: whether the code at the payer's address vouches for the signature, as the token judges the answer. */
async function isWalletSignature(
  client: PublicClient,
  { from, signature }: PaymentAuthorization,
  digest: Hex,
): Promise<boolean> {
  if (isErc6492Signature(signature)) return false;
  const answer = await askWallet(client, { address: from, hash: digest, signature });
  return answer?.startsWith(ERC1271_MAGIC_VALUE) === true;
}

/** Prepared: the selectors are hashed once. */
const receive = prepareEncodeFunctionData({ abi: tokenAbi, functionName: "receiveWithAuthorization" });
const transfer = prepareEncodeFunctionData({ abi: tokenAbi, functionName: "transferWithAuthorization" });

/** As on chain: the payee takes the money itself, and a token can refuse everyone else. */
function transferCall(
  payment: PaymentAuthorization,
  { payTo, asset }: PaymentQuote,
  kind: AuthorizationKind,
) {
  const { from, to, value, validAfter, validBefore, nonce, signature } = payment;
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
  const data =
    kind === "ReceiveWithAuthorization"
      ? encodeFunctionData({ ...receive, args })
      : encodeFunctionData({ ...transfer, args });
  return { account: payTo, to: asset.address, data };
}

/** Client text, short enough to quote in a response header. */
const excerpt = (text: string): string => text.slice(0, 80);
