/** POST /v1/agents/me/unstake: 48 hours later the keeper pays the stake back (docs/rules.md 44). */

import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { vote, workingContract as w } from "../../db/onchain.js";
import { AppError } from "../../errors.js";
import type { Answer } from "../../payments/answer.js";
import { requestUnstakeOperation } from "../../relayer/operations.js";
import { performAct } from "../contracts/perform-act.js";
import { isoTime } from "../contracts/view.js";
import { loadStake, type StakeDeps, type StakeRow, viewStake } from "./view.js";

/** Starts the withdrawal of the whole stake. Refuses with 409 where there is none, it has begun, or a vote is open. */
export async function requestUnstake(
  deps: StakeDeps,
  { caller, rawBody }: { caller: Address; rawBody: Uint8Array },
): Promise<Answer> {
  const { db, deployment } = deps;
  const current = await loadStake(db, caller);
  if (current === null) throw new AppError("conflict", { message: "You have nothing staked." });

  // A stake made after this one was paid back began later, and can be withdrawn in its turn.
  const onceKey = `request-unstake:${caller}:${current.since}`;
  return performAct(deps, {
    act: "unstake",
    subject: { onceKey },
    caller,
    rawBody,
    prepare: async (requestHash) => {
      requireBonded(current);
      await requireNoOpenVote(db, caller);
      return () => requestUnstakeOperation({ deployment, agent: caller, onceKey, requestHash });
    },
    respond: async () => ({ data: await viewStake(deps, caller) }),
  });
}

function requireBonded({ releasableAt }: StakeRow): void {
  if (releasableAt === null) return;
  throw new AppError("conflict", {
    message: `Your stake is being withdrawn already; it is paid back from ${isoTime(Number(releasableAt))} on.`,
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
    message: `Your vote on the contract ${open.contractId} is still open. Repeat the call once the contract is resolved.`,
    details: { contractId: open.contractId },
  });
}
