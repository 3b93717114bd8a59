/** POST /v1/agents/me/stake: protocol tokens in the registry make a Backup Agent eligible (docs/rules.md 44). */

import { formatDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, inArray } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { operation } from "../../db/schema.js";
import { AppError } from "../../errors.js";
import type { Answer } from "../../payments/answer.js";
import type { PaidAct } from "../../payments/paid-act.js";
import { performPayment } from "../../payments/perform-payment.js";
import type { HeaderReader, PaymentAsset } from "../../payments/quote.js";
import { stakeOperation } from "../../relayer/operations.js";
import { isoTime } from "../contracts/view.js";
import { loadStake, type StakeDeps, TOKEN_UNIT, viewStake } from "./view.js";

/** The EIP-712 domain of contracts/ProtocolToken.sol. */
const TOKEN_DOMAIN = { name: "Working Contract Token", version: "1" } as const;

export interface StakeCall {
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  /** Base units; the eligibility stake of the moment where null. */
  amount: bigint | null;
}

/** Quotes in protocol tokens, or adds to the caller's stake. Refuses with 409 while the stake is being withdrawn. */
export async function addStake(deps: StakeDeps, call: StakeCall): Promise<Answer> {
  const { caller, rawBody, headers } = call;
  const asset: PaymentAsset = { address: deps.deployment.protocolToken, ...TOKEN_DOMAIN };
  return performPayment(deps, {
    act: "stake",
    caller,
    rawBody,
    headers,
    asset,
    prepare: () => prepareStake(deps, call),
    respond: async () => ({ data: await viewStake(deps, caller) }),
  });
}

async function prepareStake(deps: StakeDeps, { caller, amount: given }: StakeCall): Promise<PaidAct> {
  const { db, deployment, config, readParameters } = deps;
  const current = await loadStake(db, caller);
  if (current !== null && current.releasableAt !== null) {
    throw new AppError("conflict", {
      message: `Your stake is being withdrawn. It is paid back from ${isoTime(Number(current.releasableAt))} on; stake again after that.`,
    });
  }
  const amount = given ?? BigInt((await readParameters()).baEligibilityStake) * TOKEN_UNIT;
  if (amount === 0n) {
    throw new AppError("conflict", {
      message:
        "The eligibility stake is 0 now, so there is nothing to add; name an amount to stake all the same.",
    });
  }
  const newest = await newestStake(db, caller);
  return {
    kind: "stake",
    escrow: deployment.registry,
    amount,
    resourceUrl: `${config.baseUrl}/v1/agents/me/stake`,
    description: `Backup Agent stake of ${formatDecimal(amount, TOKEN_DECIMALS)} protocol tokens`,
    strayMoney: "impossible",
    operation: ({ authorization, requestHash, notAfter }) =>
      stakeOperation({
        deployment,
        agent: caller,
        amount,
        authorization,
        requestHash,
        notAfter,
        onceKey: `stake:${caller}:${newest}`,
      }),
    alreadyDone: () =>
      new AppError("conflict", {
        message:
          "Another stake of yours was added at this moment; this payment was not taken. Read GET /v1/agents/me/stake before you add more.",
      }),
  };
}

/** The caller's newest stake that was added. It names the next one, so that of several at once only one is taken. */
async function newestStake(db: Executor, caller: Address): Promise<bigint> {
  const [row] = await db
    .select({ id: operation.id })
    .from(operation)
    .where(
      and(
        eq(operation.caller, caller),
        eq(operation.kind, "stake"),
        inArray(operation.state, ["mined", "final"]),
      ),
    )
    .orderBy(desc(operation.id))
    .limit(1);
  return row?.id ?? 0n;
}
