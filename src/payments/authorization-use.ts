/** Whether an EIP-3009 authorization was used, and by which transaction, whoever sent it. */
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import {
  BaseError,
  encodeEventTopics,
  type Hex,
  HttpRequestError,
  type Log,
  numberToHex,
  RpcRequestError,
  TimeoutError,
} from "viem";
import { isUsed, tokenAbi } from "../chain/token.js";
import type { Deps } from "../deps.js";
import { AppError, unavailable } from "../errors.js";
import type { PaymentAuthorization } from "./x402.js";

export type UseDeps = Pick<Deps, "publicClient" | "deployment">;

/** A transaction, and what the token and the payee logged in it. */
export interface LoggedTransaction {
  transactionHash: Hex;
  blockNumber: bigint;
  blockHash: Hex;
  logs: Log[];
}

const [authorizationUsed] = encodeEventTopics({ abi: tokenAbi, eventName: "AuthorizationUsed" });
const [authorizationCanceled] = encodeEventTopics({ abi: tokenAbi, eventName: "AuthorizationCanceled" });

/** Many nodes answer for some thousand blocks at once, some for ten: a refusal halves the window. */
const WIDEST_WINDOW = 9_000n;
/** Two days of two-second blocks: no quote lets a signature be valid for longer. */
const SEARCHED_BLOCKS = 90_000n;
const MAX_REQUESTS = 200;
/** A payer whose search found no use after more than one window waits this long for the next. */
const PAUSE_MS = 30_000;
/** Payers are free, so their long searches are bounded in all: as many can begin in that time. */
const MAX_LONG_SEARCHES = 300;
/** When the pause of each payer ends, by the node that is asked. */
const pauses = new WeakMap<object, Map<Address, number>>();
/** HTTP statuses with which nodes refuse a range that is too wide; others answer with a JSON-RPC error. */
const TOO_MUCH_ASKED: ReadonlySet<number | undefined> = new Set([400, 413, 422]);

/** Throws 409 `conflict` while anyone could still use a payment that was published and not used. */
export async function requireUnusable(
  deps: UseDeps & Pick<Deps, "clock">,
  published: { payer: Address; token: Address; nonce: Hex; notAfter: number | null },
): Promise<void> {
  const { payer, token, nonce, notAfter } = published;
  if (await isUsed(deps.publicClient, token, { from: payer, nonce })) return;
  const end =
    notAfter === null ? "" : ` Otherwise this action is not quoted again until ${isoTime(notAfter)}.`;
  throw new AppError("conflict", {
    message: `Your earlier payment for this action (nonce ${nonce}) was published in a transaction that did not use it, so anyone can still use it. Retry the request with that payment, or cancel it at the token, before you sign another.${end}`,
    details: { nonce },
    ...(notAfter !== null && { retryAfterSeconds: Math.max(1, notAfter + 1 - deps.clock.now()) }),
  });
}

/**
 * The transaction that used this authorization; null if it was cancelled, or used before the blocks that are searched:
 * the newest `searched` ones or, if it had expired before these, as many before its expiry. Call it only if
 * {@link isUsed}. Throws 503 `unavailable` if the node shows neither, because it can be behind the node that reported
 * the use, and if the payer's long search has to wait (see "Long searches wait" in docs/decisions.md).
 */
export async function findUse(
  deps: UseDeps,
  payment: PaymentAuthorization,
  { searched = SEARCHED_BLOCKS }: { searched?: bigint } = {},
): Promise<LoggedTransaction | null> {
  const { publicClient, deployment } = deps;
  const start = BigInt(deployment.startBlock);
  const timeOf = async (blockNumber: bigint) => (await publicClient.getBlock({ blockNumber })).timestamp;
  let toBlock = await publicClient.getBlockNumber({ cacheTime: 0 });
  let first = later(start, toBlock - searched);
  const isLongAgo = first > start && (await timeOf(first)) >= payment.validBefore;
  if (isLongAgo) {
    beginLongSearch(deps, payment);
    if ((await timeOf(start)) >= payment.validBefore) return null;
    let after = first;
    // The last block in which it was valid is between the two.
    for (toBlock = start; after - toBlock > 1n; ) {
      const middle = (toBlock + after) / 2n;
      if ((await timeOf(middle)) < payment.validBefore) toBlock = middle;
      else after = middle;
    }
    first = later(start, toBlock - searched);
  }
  let window = WIDEST_WINDOW;
  for (let requests = 0; toBlock >= first; requests++) {
    if (requests === MAX_REQUESTS) throw cannotBeSearched();
    if (requests === 1 && !isLongAgo) beginLongSearch(deps, payment);
    const fromBlock = later(first, toBlock - window + 1n);
    const end = await findInRange(deps, payment, { fromBlock, toBlock }).catch((error) => {
      if (window === 1n || !isTooWide(error)) throw error;
      return "too wide" as const;
    });
    if (end === "too wide") {
      window /= 2n;
      continue;
    }
    if (end?.isUse) pauses.get(publicClient)?.delete(payment.from);
    if (end !== null) return end.isUse ? logsOf(deps, end, payment.to) : null;
    const timestamp = await timeOf(fromBlock);
    // A node that knows a block so much later knows all of these.
    if (isLongAgo && (timestamp <= payment.validAfter || fromBlock === first)) return null;
    if (timestamp <= payment.validAfter) throw cannotBeSearched();
    if (fromBlock === first && timestamp >= payment.validBefore) return null;
    toBlock = fromBlock - 1n;
  }
  throw cannotBeSearched();
}

function beginLongSearch({ publicClient }: UseDeps, { from }: PaymentAuthorization): void {
  const ends = pauses.get(publicClient) ?? new Map<Address, number>();
  pauses.set(publicClient, ends);
  const now = performance.now();
  for (const [oldest, end] of ends) {
    if (end > now) break;
    ends.delete(oldest);
  }
  if (ends.has(from) || ends.size >= MAX_LONG_SEARCHES) throw cannotBeSearched();
  ends.set(from, now + PAUSE_MS);
}

async function findInRange(
  { publicClient, deployment }: UseDeps,
  { from, nonce }: PaymentAuthorization,
  { fromBlock, toBlock }: { fromBlock: bigint; toBlock: bigint },
): Promise<(Omit<LoggedTransaction, "logs"> & { isUse: boolean }) | null> {
  const [log] = await publicClient.request(
    {
      method: "eth_getLogs",
      params: [
        {
          address: deployment.asset.address,
          topics: [[authorizationUsed, authorizationCanceled], `0x${from.slice(2).padStart(64, "0")}`, nonce],
          fromBlock: numberToHex(fromBlock),
          toBlock: numberToHex(toBlock),
        },
      ],
    },
    // A refused range is refused again.
    { retryCount: 0 },
  );
  if (log?.transactionHash == null || log.blockHash == null || log.blockNumber == null) return null;
  const { transactionHash, blockHash } = log;
  const blockNumber = BigInt(log.blockNumber);
  return { transactionHash, blockHash, blockNumber, isUse: log.topics[0] === authorizationUsed };
}

/**
 * A transaction with its logs of the token and of `payee`. Not by its receipt: a stranger can fill a transaction with
 * megabytes of other logs. Throws 503 `unavailable` if the node does not have its block.
 */
async function logsOf(
  { publicClient, deployment }: UseDeps,
  { transactionHash, blockHash, blockNumber }: Omit<LoggedTransaction, "logs">,
  payee: Address,
): Promise<LoggedTransaction> {
  const ofBlock = await publicClient.getLogs({ blockHash, address: [deployment.asset.address, payee] });
  const logs = ofBlock.filter((log) => log.transactionHash === transactionHash);
  if (logs.length === 0) throw cannotBeSearched();
  return { transactionHash, blockHash, blockNumber, logs };
}

/** An unreachable node does not answer a narrower range either, so other errors are not retried. */
function isTooWide(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false;
  const cause = error.walk(
    (inner) =>
      inner instanceof RpcRequestError ||
      inner instanceof TimeoutError ||
      (inner instanceof HttpRequestError && TOO_MUCH_ASKED.has(inner.status)),
  );
  return cause !== null;
}

const later = (a: bigint, b: bigint): bigint => (a > b ? a : b);

const cannotBeSearched = (): AppError =>
  unavailable(
    "This authorization has already been used or cancelled, and the transaction cannot be found on chain right now. Retry the identical request. If you cancelled the authorization yourself, sign a new one.",
    30,
  );
