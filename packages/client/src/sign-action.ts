/** Actions that the agent signs itself, so that the service only carries them (docs/trust.md). */
import { type AgentAction, actionBits, actionTypedData } from "@working-contracts/protocol/signatures";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign, ServiceError } from "./errors.js";
import {
  call,
  type Endpoint,
  type InputArguments,
  type ResponseOf,
  requestOf,
  type Session,
} from "./session.js";

/** Leaves time for an action that has to queue. */
const VALIDITY_SECONDS = 600;

interface ActionToSign {
  action: AgentAction;
  /** The escrow, or for an unstake the registry. */
  contract: string;
  /** The action's calldata; a function if it takes requests to know, which an unsigned call does not need. */
  calldata: Hex | (() => Promise<Hex>);
}

/** Calls an operation with the agent's signature for this action, unless it left the action to the operator. */
export async function callSigned<E extends Endpoint>(
  session: Session,
  endpoint: E,
  { action, contract, calldata }: ActionToSign,
  ...[input]: InputArguments<E>
): Promise<ResponseOf<E>> {
  const now = await session.signingTime();
  if (isLeftToOperator(session, action, now))
    return call(session, endpoint, ...([input] as InputArguments<E>));

  const own = typeof calldata === "string" ? calldata : await calldata();
  const request = requestOf(session, endpoint, input as Parameters<typeof requestOf>[2]);
  const deadline = now + VALIDITY_SECONDS;
  const sign = async (nonce: bigint): Promise<ResponseOf<E>> => {
    const agent = session.signer.address.toLowerCase() as Address;
    const signature = await session.signer.signTypedData(
      actionTypedData({
        chainId: session.network.chainId,
        contract: contract.toLowerCase() as Address,
        agent,
        call: own,
        nonce,
        deadline,
      }),
    );
    const signed = { "action-deadline": String(deadline), "action-signature": signature };
    const { json } = await session.http.send({ ...request, headers: { ...request.headers, ...signed } });
    return json as ResponseOf<E>;
  };

  try {
    // The nonce is zero until the agent cancels signatures.
    return await sign(0n);
  } catch (error) {
    const asked = askedOf(error);
    if (asked === null) throw error;
    if (asked.call !== own)
      throw new RefusedToSign("action", `the service asks to sign ${asked.call} in the place of ${own}`);
    if (asked.nonce === 0n) throw error;
    await requireNonce(session, contract, asked.nonce);
    return sign(asked.nonce);
  }
}

/** With a node: a signature for a later nonce would survive the next `cancelSignatures`. */
async function requireNonce({ node, signer }: Session, contract: string, asked: bigint): Promise<void> {
  if (node === undefined) return;
  const { signatureNonceAt } = await import("./chain-check.js");
  const nonce = await signatureNonceAt(node, contract, signer.address);
  if (asked !== nonce)
    throw new RefusedToSign("nonce", `the service asks for the nonce ${asked}, the chain has ${nonce}`);
}

function isLeftToOperator({ permission }: Session, action: AgentAction, now: number): boolean {
  const { actions, until } = permission;
  return (actions & actionBits([action])) !== 0 && (until === 0 || now + VALIDITY_SECONDS < until);
}

/** The action that the service asks to sign; null if the error is another one. */
function askedOf(error: unknown): { call: Hex; nonce: bigint } | null {
  if (!(error instanceof ServiceError)) return null;
  const message = (error.details as { sign?: { message?: { call?: unknown; nonce?: unknown } } } | undefined)
    ?.sign?.message;
  if (message === undefined) return null;
  const { call, nonce } = message;
  if (typeof call === "string" && /^0x([0-9a-f]{2})+$/.test(call) && /^\d{1,20}$/.test(String(nonce)))
    return { call: call as Hex, nonce: BigInt(String(nonce)) };
  throw new RefusedToSign("action", "the service names no action to sign");
}
