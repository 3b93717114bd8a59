/** Checks the signed offer and receipt of a payment (x402 extension `offer-receipt`) with the service's published key. */
import { compactVerify, importJWK, type JWK } from "jose";
import type { Expected, PaymentProof } from "./payment.js";
import type { Session } from "./session.js";

/** The part of a `did:web` document that is read. */
interface DidDocument {
  verificationMethod: { id: string; publicKeyJwk: JWK }[];
}

const TIMEOUT_MS = 10_000;

/** Why a proof does not show that the service quoted this payment and received it; null if it does. Never throws. */
export async function faultOf(
  { http, signer, network }: Pick<Session, "http" | "signer" | "network">,
  { offer, receipt }: Omit<PaymentProof, "fault">,
  { asset, payTo, amount, resource }: Expected & { asset: string },
): Promise<string | null> {
  try {
    const request = { method: "GET", path: "/.well-known/did.json", repeatable: true } as const;
    const response = await http.open(request, AbortSignal.timeout(TIMEOUT_MS));
    const { verificationMethod } = (await response.json()) as DidDocument;
    const requireSigned = async (name: string, jws: string | null, facts: Record<string, string>) => {
      if (jws === null) throw new Error(`the service signed no ${name}`);
      const { payload } = await compactVerify(jws, async ({ kid }) => {
        const method = verificationMethod.find(({ id }) => id === kid);
        if (method === undefined) throw new Error(`the service does not publish the key of its ${name}`);
        return importJWK(method.publicKeyJwk, "EdDSA");
      });
      const signed = JSON.parse(new TextDecoder().decode(payload)) as Record<string, unknown>;
      for (const [field, value] of Object.entries(facts))
        if (String(signed[field]).toLowerCase() !== value.toLowerCase())
          throw new Error(`the ${name} says ${field} ${signed[field]}, not ${value}`);
    };
    const call = { network: `eip155:${network.chainId}`, resourceUrl: resource };
    await requireSigned("offer", offer, { ...call, scheme: "exact", asset, payTo, amount: String(amount) });
    await requireSigned("receipt", receipt, { ...call, payer: signer.address });
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
