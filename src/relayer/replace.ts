/** Replaces a transaction that waits too long by one with higher fees. */
import { eq, sql } from "drizzle-orm";
import { parseTransaction } from "viem";
import { batch } from "../db/schema.js";
import { fenced, type Head, raiseAlarm, type SignerContext } from "./context.js";
import { broadcast, signAttempt } from "./send.js";
import { estimateFees, replacementFees } from "./transaction.js";

/**
 * Signs and sends a replacement (same nonce, same calls, higher fees) if the batch has waited too many blocks. Returns
 * whether it did: not without the signer's key, beyond the cap on fees, or if the signer cannot pay for it, each with an
 * alarm.
 */
export async function replaceIfStuck(
  context: SignerContext,
  one: typeof batch.$inferSelect,
  head: Head,
): Promise<boolean> {
  const { publicClient, account, options, memory, metrics, logger, signer } = context;
  const last = one.attempts.at(-1);
  if (last === undefined) return false;
  if (account === null) {
    raiseAlarm(context, "signer_missing", { batch: one.id.toString(), hash: last.hash });
    return false;
  }
  const since = memory.waitingSince.get(one.id);
  // Counted from when this loop first saw it waiting, so that the same bytes get a chance after a reorg.
  if (since === undefined || since > head.number) memory.waitingSince.set(one.id, head.number);
  if (since === undefined || head.number - since < BigInt(options.replaceAfterBlocks)) return false;

  const fees = replacementFees({
    previous: {
      maxFeePerGas: BigInt(last.maxFeePerGas),
      maxPriorityFeePerGas: BigInt(last.maxPriorityFeePerGas),
    },
    market: await estimateFees(publicClient, head, options),
    caps: options,
  });
  const alarm: typeof raiseAlarm = (...alarmed) => {
    if (memory.broadcastAt.get(one.id) !== head.number) raiseAlarm(...alarmed);
  };
  if (fees === null) {
    alarm(context, "fee_cap_reached", { batch: one.id.toString(), hash: last.hash });
    return false;
  }
  const { to, data, nonce, gas = 0n } = parseTransaction(last.raw);
  const balance = await publicClient.getBalance({ address: signer });
  if (balance < gas * fees.maxFeePerGas) {
    const needed = (gas * fees.maxFeePerGas).toString();
    alarm(context, "signer_without_gas", { batch: one.id.toString(), balance: balance.toString(), needed });
    return false;
  }
  const attempt = await signAttempt(context, {
    chainId: context.deployment.chainId,
    type: "eip1559",
    to: to ?? context.deployment.relay,
    data: data ?? "0x",
    nonce: nonce ?? one.accountNonce,
    gas,
    ...fees,
    head,
  });
  const attempts = [...one.attempts, attempt];
  await fenced(context, async (tx) => {
    await tx.update(batch).set({ attempts, updatedAt: sql`now()` }).where(eq(batch.id, one.id));
  });
  one.attempts = attempts;
  metrics?.batches("replaced");
  metrics?.signed({ signer, operations: one.operationIds.length, maxFeePerGas: fees.maxFeePerGas });
  logger.warn(
    {
      signer,
      batch: one.id.toString(),
      hash: attempt.hash,
      replaces: last.hash,
      operations: one.operationIds.map(String),
    },
    "batch replaced",
  );
  memory.broadcastAt.set(one.id, head.number);
  memory.waitingSince.set(one.id, head.number);
  await broadcast(context, attempt);
  return true;
}
