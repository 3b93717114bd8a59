/** POST /v1/agents/me/stake: protocol tokens in the registry make a Backup Agent eligible (docs/rules.md 44). */

import { formatDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, inArray } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { operation } from "../../db/schema.js";
import { AppError } from "../../errors.js";
import type { StoredResponse } from "../../payments/operation-outcome.js";
import type { PaidAction } from "../../payments/paid-action.js";
import { performPaidCall } from "../../payments/paid-call.js";
import type { HeaderReader, PaymentAsset } from "../../payments/x402.js";
import { isoTime } from "../contracts/view.js";
import { loadStake, type StakeDeps, TOKEN_UNIT, viewStake } from "./view.js";

/** The EIP-712 domain of contracts/ProtocolToken.sol. */
const TOKEN_DOMAIN = { name: "Working Contract Token", version: "1" } as const;

export interface StakeCall {
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  /** Base units; null means the current eligibility stake. */
  amount: bigint | null;
}

/** Quotes in protocol tokens, or adds to the caller's stake. Refuses with 409 while the stake is being withdrawn. */
export async function addStake(deps: StakeDeps, call: StakeCall): Promise<StoredResponse> {
  const { caller, rawBody, headers } = call;
  const asset: PaymentAsset = { address: deps.deployment.protocolToken, ...TOKEN_DOMAIN };
  return performPaidCall(deps, {
    action: "stake",
    caller,
    rawBody,
    headers,
    asset,
    check: () => checkStake(deps, call),
    respond: async () => ({ data: await viewStake(deps, caller) }),
  });
}

async function checkStake(deps: StakeDeps, { caller, amount: given }: StakeCall): Promise<PaidAction> {
  const { db, deployment, config, readParameters } = deps;
  const current = await loadStake(db, caller);
  if (current !== null && current.releasableAt !== null) {
    throw new AppError("conflict", {
      message: `Your stake is being withdrawn. It will be paid back after ${isoTime(Number(current.releasableAt))}; stake again after that.`,
    });
  }
  const amount = given ?? BigInt((await readParameters()).baEligibilityStake) * TOKEN_UNIT;
  if (amount === 0n) {
    throw new AppError("conflict", {
      message:
        "The eligibility stake is currently 0, so there is nothing to add. To stake anyway, send an amount.",
    });
  }
  const newest = await newestStake(db, caller);
  return {
    kind: "stake",
    payTo: deployment.registry,
    amount,
    resourceUrl: `${config.baseUrl}/v1/agents/me/stake`,
    description: `Backup Agent stake of ${formatDecimal(amount, TOKEN_DECIMALS)} protocol tokens`,
    onceKey: `stake:${caller}:${newest}`,
    alreadyDone: new AppError("conflict", {
      message:
        "A concurrent request added to your stake; this payment was not taken. Read your stake before you add more.",
    }),
  };
}

/** The caller's newest applied stake. The next one's once-key contains it, so only one of several at once is taken. */
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
