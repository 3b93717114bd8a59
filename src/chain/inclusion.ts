/** Sends the transactions of a deployment, again where the node has lost one or leaves it in its queue. */
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

/** How long a transaction may take before it is sent again, in milliseconds. */
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
  /** Of one nonce: at most one of them is included. */
  hashes: Hash[];
}

/** Sends a transaction at the chain's present fee. Throws where it cannot be carried out, or the node refuses it. */
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

/** Does not throw: a transaction whose answer was lost can be on its way, and is known by its hash. */
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
 * The receipt of a transaction, which is sent again with a quarter more of both fees as long as there is none. Throws
 * where it reverted, or where none of six attempts is included in time.
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
        throw new Error(`Transaction ${hashes[0]} is not included.`, { cause: refusal ?? error });
      dearer = raised(dearer);
      // Refused also where one of the others was included in between; their receipts decide.
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
