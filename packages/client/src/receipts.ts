/** The signed offer and receipt of a payment (x402 extension `offer-receipt`), checked with the service's published key. */
import { compactVerify, decodeProtectedHeader, importJWK } from "jose";
import { readText } from "./http.js";
import type { Expected, OfferReceipt, PaymentProof, QuotedPayment } from "./payment.js";
import type { Session } from "./session.js";

/** The part of a `did:web` document that is read. */
interface DidDocument {
  verificationMethod: { id: string; publicKeyJwk: object }[];
}

/** A response's header `PAYMENT-RESPONSE`. */
interface Settled {
  transaction: string;
  extensions?: OfferReceipt;
}

type Facts = Record<string, unknown>;

const TIMEOUT_MS = 3_000;
/** Bytes: a key in it is kept with each payment. */
const MAX_DOCUMENT = 100_000;
/** With a symmetric one, everyone who can check a signature could make it. */
const EDDSA = { algorithms: ["EdDSA"] };
/** The service's clock can be ahead of the next block. */
const TOLERANCE_SECONDS = 60;

/** Whether the service signed for the quote and, after `signedAt` (seconds), for the transaction. Never throws. */
export async function proofOf(
  session: Pick<Session, "http" | "signer" | "network" | "baseUrl">,
  { required, quote }: QuotedPayment,
  { headers, expected, signedAt }: { headers: Headers; expected: Expected; signedAt: number },
): Promise<PaymentProof> {
  const proof: PaymentProof = { offer: null, receipt: null, keys: {}, fault: null };
  const { network, signer } = session;
  try {
    proof.offer = required.extensions?.["offer-receipt"]?.info.offers?.[0]?.signature ?? null;
    // Base64 of ASCII.
    const settled: Settled | null = JSON.parse(atob(headers.get("payment-response") ?? btoa("null")));
    proof.receipt = settled?.extensions?.["offer-receipt"]?.info.receipt?.signature ?? null;
    const [offer, receipt] = (await signedBy(session, proof)) as [Facts, Facts];
    const call = { network: `eip155:${network.chainId}`, resourceUrl: expected.resource };
    const { payTo, amount } = expected;
    const quoted = { ...call, scheme: "exact", asset: quote.asset, payTo, amount: String(amount) };
    requireSame("offer", offer, quoted);
    requireSame("receipt", receipt, { ...call, payer: signer.address, transaction: settled?.transaction });
    if (!(Number(offer.validUntil) >= signedAt)) throw new Error("the offer had ended");
    if (!(Number(receipt.issuedAt) >= signedAt - TOLERANCE_SECONDS))
      throw new Error("the receipt is older than the payment");
  } catch (error) {
    proof.fault = (error as Error).message;
  }
  return proof;
}

/** The facts in the offer and in the receipt. Throws unless the service's own key signed them. Keeps that key in `keys`. */
async function signedBy(
  { http, network, baseUrl }: Pick<Session, "http" | "network" | "baseUrl">,
  proof: PaymentProof,
): Promise<Facts[]> {
  const request = { method: "GET", path: "/.well-known/did.json", repeatable: true } as const;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const text = await readText(await http.open(request, signal), signal, MAX_DOCUMENT);
  const { verificationMethod } = JSON.parse(text) as DidDocument;
  const { baseUrl: url, domain } = network;
  const { host } = new URL(url);
  // These keys are not another's because the service says that it is that one. This machine has several names.
  if (![new URL(baseUrl).host, domain].includes(host) && domain !== "localhost")
    throw new Error(`the service signs as ${host}`);
  const did = `did:web:${encodeURIComponent(host)}#`;
  const kids = [proof.offer, proof.receipt].map((jws) => jws && decodeProtectedHeader(jws).kid);
  for (const { id, publicKeyJwk } of verificationMethod)
    if (id.startsWith(did) && kids.includes(id)) proof.keys[id] = publicKeyJwk;
  return factsOf(proof);
}

/** The facts in a kept offer and receipt. Throws unless the kept keys signed them. Needs no service. */
export function factsOf({ offer, receipt, keys }: PaymentProof): Promise<Facts[]> {
  return Promise.all(
    Object.entries({ offer, receipt }).map(async ([name, jws]) => {
      if (jws === null) throw new Error(`the service signed no ${name}`);
      const { payload } = await compactVerify(
        jws,
        ({ kid = "" }) => {
          const key = keys[kid];
          if (key === undefined) throw new Error(`the service does not publish the key of its ${name}`);
          return importJWK(key, "EdDSA");
        },
        EDDSA,
      );
      return JSON.parse(new TextDecoder().decode(payload)) as Facts;
    }),
  );
}

function requireSame(name: string, signed: Facts, expected: Record<string, string | undefined>): void {
  for (const [field, value] of Object.entries(expected))
    if (String(signed[field]).toLowerCase() !== String(value).toLowerCase())
      throw new Error(`the ${name} says ${field} ${signed[field]}, not ${value}`);
}
