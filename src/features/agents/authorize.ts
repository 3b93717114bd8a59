/** How an agent allowed an action without a payment: by its own signature for it, or by its delegation. */
import { escrowAbi } from "@working-contracts/protocol/abi";
import type { AgentAction } from "@working-contracts/protocol/challenge-text";
import {
  actionTypedData,
  MAX_SIGNATURE_VALIDITY,
  type SignedAction,
} from "@working-contracts/protocol/signed-action";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { hashTypedData } from "viem";
import type { Deps } from "../../deps.js";
import { AppError, invalidField } from "../../errors.js";
import type { ActionHeaders } from "../../http/operation.js";
import { limitsOfSigned } from "../../payments/relaying-limits.js";
import { carrySigned, type NewOperation } from "../../relayer/operations.js";
import { ensureDelegation } from "./delegation.js";
import { verifyActionSignature } from "./verify-signature.js";

/** Seconds that a deadline proposed by the service is ahead. */
const PROPOSED_VALIDITY = 600;

/**
 * The operation as its caller allowed it: carried by the caller's signature, or as it is once the caller's delegation is
 * on chain. Throws 403 with the typed data to sign if there is neither, 401 if the signature is wrong, 400 if its
 * deadline is, and 429 if the caller's operations keep failing on chain, or its wallet could burn gas that it does not have.
 */
export async function authorize(
  deps: Deps,
  operation: NewOperation & { caller: Address },
  { action, headers }: { action: AgentAction; headers: ActionHeaders },
): Promise<NewOperation> {
  const { caller: agent, target: contract, data: call } = operation;
  const signed = await readSignature(deps, { agent, contract, call, headers });
  if (signed !== null) {
    const gasLimits = await limitsOfSigned(deps, agent);
    return { ...carrySigned(operation, signed), gasLimits };
  }
  if (await ensureDelegation(deps, agent, action)) return operation;
  throw await signatureMissing(deps, { agent, contract, call, headers });
}

interface ActionSignature {
  deadline: number;
  nonce: bigint;
  signature: Hex;
}

interface Unsigned {
  agent: Address;
  contract: Address;
  call: Hex;
  headers: ActionHeaders;
}

/** The caller's signature, checked as the escrow checks it; null if the call carries none. */
export async function readSignature(deps: Deps, unsigned: Unsigned): Promise<ActionSignature | null> {
  const { agent, headers } = unsigned;
  const { "action-signature": signature, "action-deadline": deadline } = headers;
  if (signature === undefined) {
    if (deadline === undefined) return null;
    throw await signatureMissing(deps, unsigned);
  }
  const now = deps.clock.now();
  if (deadline === undefined || deadline <= now || deadline > now + MAX_SIGNATURE_VALIDITY) {
    const message = "must be the signed deadline in Unix seconds: in the future, and at most a day ahead";
    const sentence = `Action-Deadline: ${message}. The chain's time is ${isoTime(now)}.`;
    throw invalidField("action-deadline", message, sentence);
  }
  const toSign = await signedAction(deps, unsigned);
  const hash = hashTypedData(actionTypedData(toSign));
  const verdict = await verifyActionSignature(deps.publicClient, { address: agent, hash, signature });
  if (verdict.ok) return { deadline, nonce: toSign.nonce, signature: verdict.signature };
  throw new AppError("invalid_signature", {
    message: "Action-Signature is not this address's signature for this action.",
    hint: HINT,
    details: { sign: typedJson(toSign) },
  });
}

const HINT =
  "Sign `details.sign` (EIP-712, eth_signTypedData_v4) and repeat the request with the signature in Action-Signature and `details.sign.message.deadline` in Action-Deadline.";

/** 403 that says what to sign. */
export async function signatureMissing(deps: Deps, unsigned: Unsigned): Promise<AppError> {
  return new AppError("forbidden", {
    message:
      "This action needs your own signature: your address leaves it to no operator, because you signed in so, never signed in, or revoked.",
    hint: HINT,
    details: { sign: typedJson(await signedAction(deps, unsigned)) },
  });
}

async function signedAction(
  { publicClient, deployment, clock }: Deps,
  { agent, contract, call, headers }: Unsigned,
): Promise<SignedAction> {
  const nonce = await publicClient.readContract({
    address: contract,
    abi: escrowAbi,
    functionName: "signatureNonce",
    args: [agent],
  });
  const deadline = headers["action-deadline"] ?? clock.now() + PROPOSED_VALIDITY;
  return { chainId: deployment.chainId, contract, agent, call, nonce, deadline };
}

function typedJson(action: SignedAction) {
  const typed = actionTypedData(action);
  return { ...typed, message: { ...typed.message, nonce: String(action.nonce) } };
}
