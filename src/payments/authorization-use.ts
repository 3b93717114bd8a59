/** Where on chain an EIP-3009 authorization was used, by whomever. */
import {
  BaseError,
  type Hex,
  HttpRequestError,
  numberToHex,
  parseAbi,
  parseAbiItem,
  RpcRequestError,
  TimeoutError,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  toEventSelector,
} from "viem";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import type { PaymentAuthorization } from "./decode.js";

export type UseDeps = Pick<Deps, "publicClient" | "deployment">;

const stateAbi = parseAbi([
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
]);
const authorizationUsed = toEventSelector(
  parseAbiItem("event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)"),
);
const authorizationCanceled = toEventSelector(
  parseAbiItem("event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)"),
);

/** Many nodes answer for some thousand blocks at once, some for ten: a refusal halves the window. */
const WIDEST_WINDOW = 9_000n;
/** Two days of two-second blocks: no client keeps a signed payment for longer. */
const SEARCHED_BLOCKS = 90_000n;
const MAX_REQUESTS = 200;
/** What nodes answer to a range that is too wide, beside JSON-RPC errors. */
const TOO_MUCH_ASKED: ReadonlySet<number | undefined> = new Set([400, 413, 422]);

/** Whether the token takes this authorization no more: it was used, or cancelled. */
export function isUsed(
  { publicClient, deployment }: UseDeps,
  payment: PaymentAuthorization,
): Promise<boolean> {
  return publicClient.readContract({
    address: deployment.asset.address,
    abi: stateAbi,
    functionName: "authorizationState",
    args: [payment.from, payment.nonce],
  });
}

/**
 * The transaction that used this authorization, which the token takes no more; null where it was cancelled, or used
 * longer ago than is searched. Throws 503 `unavailable` where the node shows neither: the one that was asked now may be
 * behind the one that knows of it, and a payment is never called untaken for that.
 */
export async function findUse(
  deps: UseDeps,
  payment: PaymentAuthorization,
): Promise<TransactionReceipt | null> {
  const { publicClient, deployment } = deps;
  let toBlock = await publicClient.getBlockNumber({ cacheTime: 0 });
  const first = later(BigInt(deployment.startBlock), toBlock - SEARCHED_BLOCKS);
  let window = WIDEST_WINDOW;
  for (let requests = 0; toBlock >= first; requests++) {
    if (requests === MAX_REQUESTS) throw cannotBeSearched();
    const fromBlock = later(first, toBlock - window + 1n);
    const end = await findInRange(deps, payment, { fromBlock, toBlock }).catch((error) => {
      if (window === 1n || !isTooWide(error)) throw error;
      return "too wide" as const;
    });
    if (end === "too wide") {
      window /= 2n;
      continue;
    }
    if (end !== null) return end.isUse ? receiptOf(deps, end.hash) : null;
    const { timestamp } = await publicClient.getBlock({ blockNumber: fromBlock });
    if (timestamp <= payment.validAfter) throw cannotBeSearched();
    if (fromBlock === first && timestamp >= payment.validBefore) return null;
    toBlock = fromBlock - 1n;
  }
  throw cannotBeSearched();
}

async function findInRange(
  { publicClient, deployment }: UseDeps,
  { from, nonce }: PaymentAuthorization,
  { fromBlock, toBlock }: { fromBlock: bigint; toBlock: bigint },
): Promise<{ hash: Hex; isUse: boolean } | null> {
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
    // A range that is refused once is refused again.
    { retryCount: 0 },
  );
  if (log?.transactionHash == null) return null;
  return { hash: log.transactionHash, isUse: log.topics[0] === authorizationUsed };
}

async function receiptOf({ publicClient }: UseDeps, hash: Hex): Promise<TransactionReceipt> {
  try {
    return await publicClient.getTransactionReceipt({ hash });
  } catch (error) {
    throw error instanceof TransactionReceiptNotFoundError ? cannotBeSearched() : error;
  }
}

/** A node that cannot be reached at all will not answer a smaller question either. */
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

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function cannotBeSearched(): AppError {
  return new AppError("unavailable", {
    message:
      "The token takes your payment no more, and the chain cannot be searched right now for where it was used or cancelled. Repeat the identical call; where you cancelled it yourself, sign a new one.",
    retryable: true,
    retryAfterSeconds: 30,
  });
}
