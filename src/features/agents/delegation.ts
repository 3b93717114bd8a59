/** How an agent allows an action without a payment: by a signature for it, or by its delegation to our Relay. */
import { delegationAbi, escrowAbi } from "@working-contracts/protocol/abi";
import {
  type AgentAction,
  actionBits,
  actionTypedData,
  MAX_SIGNATURE_VALIDITY,
  type Permission,
  type SignedAction,
} from "@working-contracts/protocol/signatures";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { desc, sql } from "drizzle-orm";
import { hashTypedData } from "viem";
import { meaningOf } from "../../chain/errors.js";
import { verifyActionSignature } from "../../chain/signatures.js";
import { type Executor, lock, type Transaction } from "../../db/client.js";
import { challenge, ENDED, operation } from "../../db/schema.js";
import { prepareRows } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { AppError, invalidField, unavailable } from "../../errors.js";
import type { ActionHeaders } from "../../http/endpoint.js";
import { settlementPending } from "../../payments/relayed-call.js";
import { SETTLEMENT_MARGIN_SECONDS } from "../../payments/verify-payment.js";
import type { GasPolicy } from "../../relayer/gas-accounts.js";
import { admitDelegation, admitSigned } from "../../relayer/limits.js";
import { carrySigned, delegateOperation, type NewOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";

/** Seconds that a deadline proposed by the service is ahead. */
const PROPOSED_VALIDITY = 600;

/** The operation as its caller allowed it: signed, or delegated on chain. Throws 403 with what to sign, 401, 400 or 429. */
export async function authorize(
  deps: Deps,
  operation: NewOperation & { caller: Address },
  { action, headers }: { action: AgentAction; headers: ActionHeaders },
): Promise<NewOperation> {
  const { caller: agent, target: contract, data: call } = operation;
  const signed = await readSignature(deps, { agent, contract, call, headers });
  if (signed !== null) {
    const gasPolicy = await admitSigned(deps, agent);
    return { ...carrySigned(operation, signed), gasPolicy };
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
  const earliest = now + SETTLEMENT_MARGIN_SECONDS;
  if (deadline === undefined || deadline < earliest || deadline > now + MAX_SIGNATURE_VALIDITY) {
    const message = `must be the signed deadline in Unix seconds: at least ${SETTLEMENT_MARGIN_SECONDS} seconds ahead, and at most a day`;
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
      "This action needs your own signature, because no delegation of yours covers it: you never signed in, your sign-in did not include this action, the delegation has expired, or you revoked it.",
    hint: HINT,
    details: { sign: typedJson(await signedAction(deps, unsigned)) },
  });
}

async function signedAction(
  { publicClient, deployment, clock }: Deps,
  { agent, contract, call, headers }: Unsigned,
): Promise<SignedAction> {
  const escrow = { address: contract, abi: escrowAbi } as const;
  const nonce = await publicClient.readContract({ ...escrow, functionName: "signatureNonce", args: [agent] });
  const deadline = headers["action-deadline"] ?? clock.now() + PROPOSED_VALIDITY;
  return { chainId: deployment.chainId, contract, agent, call, nonce, deadline };
}

function typedJson(action: SignedAction) {
  const typed = actionTypedData(action);
  return { ...typed, message: { ...typed.message, nonce: String(action.nonce) } };
}

/**
 * Whether the Relay may carry out `action` for `agent` without its signature. If so, returns once the delegation is on
 * chain. The newest sign-in that issued a key after the chain's delegation and revocation decides, registered or not; one
 * that allows the same as the chain is not registered. `gasPolicy`: that of the call that needs it, and of the delegation.
 */
export async function ensureDelegation(
  deps: Deps,
  agent: Address,
  action: AgentAction,
  gasPolicy?: GasPolicy,
): Promise<boolean> {
  const grant = await readGrant(deps, agent);
  const now = deps.clock.now();
  const mayRegister = (proof: Proof | null): proof is Proof =>
    proof !== null && permits({ ...proof, revokedAt: 0 }, action, now);
  const isGranted = permits(grant, action, now);
  let limits = gasPolicy;
  if (isGranted || gasPolicy === undefined) {
    const newest = await newestProof(deps.db, agent, since(grant));
    if (isGranted && (newest === null || mayRegister(newest))) return true;
    if (!mayRegister(newest)) return false;
    const { onceKey } = registration(deps, newest);
    limits ??= await admitDelegation(deps, { agent, onceKey });
  }

  const operation = await deps.db.transaction(async (tx) => {
    const proof = await lockNewestProof(tx, agent, since(grant));
    if (!mayRegister(proof)) return null;
    return (await enqueue(tx, { ...registration(deps, proof), gasPolicy: limits })).operation;
  });
  if (operation === null) return false;
  const done = await deps.outbox.waitFor(operation.id, { timeoutMs: deps.config.settlementWaitMs });
  if (done === null) throw settlementPending();
  if (done.state !== "rejected") return true;
  const { reason } = done;
  if (meaningOf(reason ?? "") !== null) return false;
  throw unavailable("Your delegation could not be registered on chain right now; retry the request.", 2, {
    reason,
  });
}

/** Whether {@link ensureDelegation} has something to rely on: a delegation on chain, or a sign-in to register. */
export async function isDelegable(deps: Deps, agent: Address, action: AgentAction): Promise<boolean> {
  const now = deps.clock.now();
  const grant = await readGrant(deps, agent);
  const proof = await newestProof(deps.db, agent, since(grant));
  return permits(proof === null ? grant : { ...proof, revokedAt: 0 }, action, now);
}

function permits({ issuedAt, revokedAt, actions, until }: DelegationGrant, action: AgentAction, now: number) {
  return issuedAt > revokedAt && (actions & actionBits([action])) !== 0 && (until === 0 || now < until);
}

type Proof = typeof challenge.$inferSelect;

const ofNewest = sql`where address = ${sql.placeholder("agent")} and purpose = 'issue' and signature is not null
  and issued_at > ${sql.placeholder("since")} order by issued_at desc, redeemed_at desc limit 1`;
const proofs = prepareRows("delegation_proof", challenge, ofNewest);
const lockedProofs = prepareRows("delegation_proof_locked", challenge, sql`${ofNewest} for update`);

/** The chain does not replace its delegation by one of this time or before. */
const since = ({ issuedAt, revokedAt }: DelegationGrant): number => Math.max(issuedAt, revokedAt);

/** The newest sign-in of `agent` after `since` whose signature is kept. */
async function newestProof(db: Executor, agent: Address, since: number): Promise<Proof | null> {
  const [proof] = await proofs(db, { agent, since });
  return proof ?? null;
}

/**
 * As {@link newestProof}. Revocations and sign-ins delete older signatures before they look for delegations: before this,
 * or after the transaction, whose operation they find.
 */
async function lockNewestProof(tx: Transaction, agent: Address, since: number): Promise<Proof | null> {
  const [proof] = await lockedProofs(tx, { agent, since });
  if (proof !== undefined) return proof;
  // Deleted while we waited, maybe in favour of a newer one, which only another statement sees.
  const [newer] = await lockedProofs(tx, { agent, since });
  return newer ?? null;
}

function registration({ deployment }: Pick<Deps, "deployment">, proof: Proof): NewOperation {
  const { address, actions, until, issuedAt, expiresAt } = proof;
  const [agent, nonce, signature] = [address as Address, proof.nonce as Hex, proof.signature as Hex];
  return delegateOperation({ deployment, agent, actions, until, nonce, issuedAt, expiresAt, signature });
}

/** Seconds on the chain's clock; 0 for never. */
export interface DelegationGrant extends Permission {
  issuedAt: number;
  revokedAt: number;
}

/** Time that a sign-in waits for a pending revocation. */
const REVOCATION_WAIT_MS = 5_000;

/** The newest grant and revocation of `agent` at the chain's head. */
export async function readGrant(
  { publicClient, deployment }: Pick<Deps, "publicClient" | "deployment">,
  agent: Address,
): Promise<DelegationGrant> {
  const [issuedAt, revokedAt, until, actions] = await publicClient.readContract({
    address: deployment.delegation,
    abi: delegationAbi,
    functionName: "grants",
    args: [agent, deployment.relay],
  });
  return { issuedAt, revokedAt, until, actions };
}

/** The newest delegation or revocation of `agent` in the outbox that was not rejected, pending or not. */
export async function newestDelegationOperation(
  db: Executor,
  agent: Address,
): Promise<{ id: bigint; kind: string; isPending: boolean; data: string } | null> {
  const [row] = await db
    .select({ id: operation.id, kind: operation.kind, state: operation.state, data: operation.data })
    .from(operation)
    // Literals, as in the partial index, so that the planner can match it.
    .where(sql`${operation.caller} = ${agent}
      and ${operation.kind} in ('delegate', 'revoke-delegation') and ${operation.state} <> 'rejected'`)
    .orderBy(desc(operation.id))
    .limit(1);
  return row === undefined ? null : { ...row, isPending: !ENDED.includes(row.state) };
}

/** Id of the pending revocation of `agent`; null if there is none. */
export async function pendingRevocation(db: Executor, agent: Address): Promise<bigint | null> {
  const newest = await newestDelegationOperation(db, agent);
  return newest?.kind === "revoke-delegation" && newest.isPending ? newest.id : null;
}

/** Waits a few seconds for a pending revocation, which would outdate anything signed before it. Callers check again. */
export async function awaitRevocation(
  { db, outbox, config }: Pick<Deps, "db" | "outbox" | "config">,
  agent: Address,
): Promise<void> {
  const id = await pendingRevocation(db, agent);
  const timeoutMs = Math.min(REVOCATION_WAIT_MS, config.settlementWaitMs);
  if (id !== null) await outbox.waitFor(id, { timeoutMs });
}

/** Serializes issuing and revoking for one address until the transaction ends. */
export async function lockAddress(tx: Transaction, address: Address): Promise<void> {
  await lock(tx, `api-keys:${address}`);
}
