/** POST /v1/agents/me/unstake: 48 hours later the keeper pays the stake back (docs/rules.md 44). */

import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { vote, workingContract as w } from "../../db/onchain.js";
import { AppError } from "../../errors.js";
import type { StoredResponse } from "../../payments/operation-outcome.js";
import { requestUnstakeOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { ensureDelegation } from "../agents/delegation.js";
import { performAction } from "../contracts/perform-action.js";
import { isoTime } from "../contracts/view.js";
import { loadStake, type StakeDeps, type StakeRow, viewStake } from "./view.js";

/** Starts the withdrawal of the whole stake. Refuses with 409 if there is none, if the withdrawal has begun, or if a vote is open. */
export async function requestUnstake(
  deps: StakeDeps,
  { caller, rawBody }: { caller: Address; rawBody: Uint8Array },
): Promise<StoredResponse> {
  const { db, deployment } = deps;
  const current = await loadStake(db, caller);
  if (current === null) throw new AppError("conflict", { message: "You have nothing staked." });

  // A stake made after this one was paid back has a later `since`, and so its own once-key.
  const onceKey = `request-unstake:${caller}:${current.since}`;
  return performAction(deps, {
    action: "unstake",
    subject: { onceKey },
    caller,
    rawBody,
    store: async (requestHash) => {
      requireBonded(current);
      await requireNoOpenVote(db, caller);
      await ensureDelegation(deps, caller);
      return enqueue(db, requestUnstakeOperation({ deployment, agent: caller, onceKey, requestHash }));
    },
    respond: async () => ({ data: await viewStake(deps, caller) }),
  });
}

function requireBonded({ releasableAt }: StakeRow): void {
  if (releasableAt === null) return;
  throw new AppError("conflict", {
    message: `Your stake is already being withdrawn. It will be paid back after ${isoTime(Number(releasableAt))}.`,
  });
}

async function requireNoOpenVote(db: Executor, agent: Address): Promise<void> {
  const [open] = await db
    .select({ contractId: vote.contractId })
    .from(vote)
    .innerJoin(w, eq(w.id, vote.contractId))
    .where(and(eq(vote.backupAgent, agent), eq(w.phase, "disputed")))
    .orderBy(desc(vote.sealedAt))
    .limit(1);
  if (open === undefined) return;
  throw new AppError("conflict", {
    message: `Your vote on the contract ${open.contractId} is still open. Retry the request once the contract is resolved.`,
    details: { contractId: open.contractId },
  });
}
