/** Sends a deployment's transactions, and resends one that the node lost or left in its queue. */
import {
  type Address,
  BaseError,
  type Chain,
  type Hash,
  type Hex,
  keccak256,
  type LocalAccount,
  type PublicClient,
  RpcRequestError,
  type TransactionReceipt,
  type Transport,
  type WalletClient,
} from "viem";

/** Milliseconds until a transaction without a receipt is sent again. */
const RESEND_AFTER_MS = 30_000;
const ATTEMPTS = 6;

export interface Sender {
  walletClient: WalletClient<Transport, Chain, LocalAccount>;
  publicClient: PublicClient<Transport, Chain>;
  /** Milliseconds. */
  resendAfterMs?: number | undefined;
}

interface Request {
  to?: Address;
  data: Hex;
  nonce: number;
  gas: bigint;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

export interface SentTransaction {
  request: Request;
  /** They share a nonce, so at most one is included. */
  hashes: Hash[];
}

/** Sends a transaction at the current fee. Throws if gas estimation fails or the node rejects it. */
export async function send(
  { walletClient }: Sender,
  call: Pick<Request, "to" | "data" | "nonce">,
): Promise<SentTransaction> {
  const prepared = await walletClient.prepareTransactionRequest({ ...call, type: "eip1559" });
  const { gas, maxFeePerGas, maxPriorityFeePerGas } = prepared;
  const request = { ...call, gas, maxFeePerGas, maxPriorityFeePerGas };
  const { hash, failure } = await broadcast(walletClient, request);
  if (failure instanceof BaseError && failure.walk((cause) => cause instanceof RpcRequestError) !== null)
    throw failure;
  return { request, hashes: [hash] };
}

/** Never throws: if the response was lost, the transaction can still be pending, and its hash identifies it. */
async function broadcast(
  { account, chain, sendRawTransaction }: Sender["walletClient"],
  request: Request,
): Promise<{ hash: Hash; failure: unknown }> {
  const serializedTransaction = await account.signTransaction({
    ...request,
    chainId: chain.id,
    type: "eip1559",
  });
  const failure = await sendRawTransaction({ serializedTransaction }).then(
    () => null,
    (error: unknown) => error,
  );
  return { hash: keccak256(serializedTransaction), failure };
}

/**
 * Waits for a transaction's receipt and resends it with both fees raised by 25% while there is none. Throws if the
 * transaction reverted, or if none of six attempts was included in time.
 */
export async function included(
  sender: Sender,
  { request, hashes }: SentTransaction,
): Promise<TransactionReceipt> {
  const { walletClient, publicClient, resendAfterMs: timeout = RESEND_AFTER_MS } = sender;
  let dearer = request;
  let refusal: unknown;
  for (let attempt = 1; ; attempt++) {
    try {
      const receipt = await Promise.any(
        hashes.map((hash) => publicClient.waitForTransactionReceipt({ hash, timeout })),
      );
      if (receipt.status === "success") return receipt;
    } catch (error) {
      if (attempt === ATTEMPTS)
        throw new Error(`Transaction ${hashes[0]} was not included after ${ATTEMPTS} attempts.`, {
          cause: refusal ?? error,
        });
      dearer = raised(dearer);
      // The node also rejects it if an earlier attempt was just included. The receipts decide.
      const { hash, failure } = await broadcast(walletClient, dearer);
      hashes.push(hash);
      refusal = failure ?? refusal;
      continue;
    }
    throw new Error(`Transaction ${hashes[0]} reverted.`);
  }
}

function raised(request: Request): Request {
  const quarterMore = (fee: bigint) => (fee * 5n + 3n) / 4n;
  return {
    ...request,
    maxFeePerGas: quarterMore(request.maxFeePerGas),
    maxPriorityFeePerGas: quarterMore(request.maxPriorityFeePerGas),
  };
}
