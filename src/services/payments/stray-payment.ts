/**
 * Money that reached an escrow outside of the service's own calls: somebody sent the caller's authorization to the
 * token directly (docs/decisions.md 12). It is credited where the call can still be carried out, else sent back.
 */
import { eq } from "drizzle-orm";
import { type Log, parseAbi, parseAbiItem, parseEventLogs } from "viem";
import { escrowAbi } from "../../chain/abi.js";
import { workingContract } from "../../db/onchain.js";
import { terms } from "../../db/schema.js";
import type { PaymentAuthorization } from "../../payments/decode.js";
import { workerStake } from "../../protocol/ledger.js";
import type { Address, Hex } from "../../protocol/types.js";
import { createOperation, returnSurplusOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { parseStoredTerms } from "../contracts/stored-terms.js";
import type { Deps } from "../deps.js";

const tokenAbi = parseAbi([
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function balanceOf(address account) view returns (uint256)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
const authorizationUsed = parseAbiItem(
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
);

/** Public nodes answer for some thousand blocks at once; two days of 2-second blocks are looked through. */
const LOG_WINDOW = 9_000n;
const LOG_WINDOWS = 10;

/** Events of an escrow that say what became of a deposit in the same transaction. */
const CONSUMING_EVENTS = new Set([
  "WorkingContractCreated",
  "WorkingContractMatched",
  "WorkingContractDisputed",
  "VoteSealed",
  "SurplusCredited",
  "SurplusReturned",
]);

/**
 * Whether this very authorization moved its value to the escrow in a transaction in which the escrow itself took no
 * deposit. False for a cancelled authorization, and for one that the escrow consumed.
 */
export async function isStrayPayment(deps: Deps, payment: PaymentAuthorization): Promise<boolean> {
  const { publicClient, deployment } = deps;
  const log = await findUse(deps, payment);
  if (log === null || log.transactionHash === null) return false;

  const receipt = await publicClient.getTransactionReceipt({ hash: log.transactionHash });
  const moved = parseEventLogs({ abi: tokenAbi, eventName: "Transfer", logs: receipt.logs }).some(
    ({ address, args }) =>
      address.toLowerCase() === deployment.asset.address &&
      args.from.toLowerCase() === payment.from &&
      args.to.toLowerCase() === payment.to &&
      args.value === payment.value,
  );
  const consumed = parseEventLogs({ abi: escrowAbi, logs: receipt.logs }).some(
    ({ address, eventName }) => address.toLowerCase() === payment.to && CONSUMING_EVENTS.has(eventName),
  );
  return moved && !consumed;
}

export interface Opening {
  transactionHash: Hex;
  blockNumber: bigint;
  blockHash: Hex;
}

/** The transaction in which somebody else opened the escrow with this very authorization; null where nobody did. */
export async function findOpening(deps: Deps, payment: PaymentAuthorization): Promise<Opening | null> {
  const log = await findUse(deps, payment);
  if (log === null || log.transactionHash === null) return null;
  const { logs, blockNumber, blockHash, transactionHash } = await deps.publicClient.getTransactionReceipt({
    hash: log.transactionHash,
  });
  const opened = parseEventLogs({ abi: escrowAbi, eventName: "WorkingContractCreated", logs }).some(
    ({ address }) => address.toLowerCase() === payment.to,
  );
  return opened ? { transactionHash, blockNumber, blockHash } : null;
}

/** Whether the escrow address holds at least `amount`: before it is opened, all money there is its initiator's. */
export async function holds(deps: Deps, escrow: Address, amount: bigint): Promise<boolean> {
  const balance = await deps.publicClient.readContract({
    address: deps.deployment.asset.address,
    abi: tokenAbi,
    functionName: "balanceOf",
    args: [escrow],
  });
  return balance >= amount;
}

/**
 * For a paid call that is refused: where its money is at the escrow already, stores the operation that brings it back
 * (the return of a stray payment; or the opening of an escrow past its match deadline, which refunds) and says so.
 */
export async function rescueStrayPayment(
  deps: Deps,
  payment: PaymentAuthorization,
  hash: string,
): Promise<boolean> {
  const { db, deployment } = deps;
  const escrow = payment.to;
  const [row] = await db
    .select({ escrowTerms: terms.escrowTerms, phase: workingContract.phase })
    .from(terms)
    .leftJoin(workingContract, eq(workingContract.id, terms.id))
    .where(eq(terms.id, escrow));
  if (row === undefined || !(await isUsed(deps, payment))) return false;

  const authorization = { ...payment, signature: withTokenV(payment.signature) };
  if (row.phase === null || row.phase === "none") {
    const onChain = parseStoredTerms(row.escrowTerms);
    const deposit = onChain.workerInitiated ? workerStake(onChain.price, onChain.parameters) : onChain.price;
    if (onChain.initiator !== payment.from || !(await holds(deps, escrow, deposit))) return false;
    await enqueue(
      db,
      createOperation({
        deployment,
        escrow,
        caller: payment.from,
        terms: onChain,
        authorization,
        requestHash: hash,
      }),
    );
    return true;
  }
  if (!(await isStrayPayment(deps, payment))) return false;
  await enqueue(
    db,
    returnSurplusOperation({
      escrow,
      payer: payment.from,
      amount: payment.value,
      authorization,
      requestHash: hash,
    }),
  );
  return true;
}

/** Wallets that sign with v 0 or 1 are understood by the token only with 27 or 28. */
export function withTokenV(signature: Hex): Hex {
  if (signature.length !== 132) return signature;
  const v = Number.parseInt(signature.slice(-2), 16);
  return v < 27 ? `${signature.slice(0, -2) as Hex}${(v + 27).toString(16)}` : signature;
}

async function isUsed(
  { publicClient, deployment }: Deps,
  { from, nonce }: PaymentAuthorization,
): Promise<boolean> {
  return publicClient.readContract({
    address: deployment.asset.address,
    abi: tokenAbi,
    functionName: "authorizationState",
    args: [from, nonce],
  });
}

async function findUse(
  { publicClient, deployment }: Deps,
  { from, nonce }: PaymentAuthorization,
): Promise<Log | null> {
  let toBlock = await publicClient.getBlockNumber({ cacheTime: 0 });
  const first = BigInt(deployment.startBlock);
  for (let window = 0; window < LOG_WINDOWS && toBlock >= first; window++) {
    const fromBlock = toBlock - LOG_WINDOW > first ? toBlock - LOG_WINDOW : first;
    const [log] = await publicClient.getLogs({
      address: deployment.asset.address,
      event: authorizationUsed,
      args: { authorizer: from, nonce },
      fromBlock,
      toBlock,
    });
    if (log !== undefined) return log;
    toBlock = fromBlock - 1n;
  }
  return null;
}
