/** POST /v1/contracts/{id}/votes: the bond seals a ballot that the service opens when the window has closed. */
import { randomBytes } from "node:crypto";
import { voteDeposit } from "@working-contracts/protocol/ledger";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { voteCommitment } from "@working-contracts/protocol/vote-commitment";
import { and, eq } from "drizzle-orm";
import { vote } from "../../db/onchain.js";
import { sealedVote } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { Answer, Success } from "../../payments/answer.js";
import type { PaidAct } from "../../payments/paid-act.js";
import { performPayment } from "../../payments/perform-payment.js";
import type { HeaderReader } from "../../payments/quote.js";
import { voteOperation } from "../../relayer/operations.js";
import { ensureDelegation } from "../agents/ensure-delegation.js";
import { loadContractForAct } from "../contracts/load-for-act.js";
import { parametersOf } from "../contracts/view.js";
import { type BallotEntry, packBallot } from "./ballot.js";
import { loadVoter, requireVoter, votingClosesAt } from "./eligibility.js";
import { criterion, selectVotes, toVote } from "./view.js";

export interface VoteCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  votes: readonly BallotEntry[];
}

/**
 * Quotes the bond for all criteria, or seals the caller's ballot; `Vote-Salt` lets the voter open it without the
 * service. Refuses with 404, 400 (entries that do not fit the criteria), 403 (not eligible) and 409.
 */
export async function submitVotes(deps: Deps, call: VoteCall): Promise<Answer> {
  const { id, caller, rawBody, headers } = call;
  return performPayment(deps, {
    act: `vote ${id}`,
    caller,
    rawBody,
    headers,
    prepare: () => prepareVote(deps, call),
    respond: () => presentBallot(deps, id, caller),
  });
}

async function prepareVote(deps: Deps, { id, caller, votes }: VoteCall): Promise<PaidAct> {
  const row = await loadContractForAct(deps.db, id);
  const { price, criteriaCount } = row.chain;
  const packed = packBallot(votes, criteriaCount);
  requireVoter(row, caller, { voter: await loadVoter(deps.db, id, caller), now: deps.clock.now() });

  const salt: Hex = `0x${randomBytes(32).toString("hex")}`;
  const ballot = { chainId: deps.deployment.chainId, escrow: id, voter: caller, votes: packed, salt };
  const commitment = voteCommitment(ballot);
  return {
    kind: "vote",
    escrow: id,
    amount: voteDeposit(price, criteriaCount, parametersOf(row)),
    resourceUrl: `${deps.config.baseUrl}/v1/contracts/${id}/votes`,
    description: `Backup Agent Bond for ${criteriaCount} criteria of the contract "${row.terms.title}"`,
    strayMoney: "credited-by-transfer",
    lastSecond: votingClosesAt(row) - 1,
    // The bond's authorization does not sign the votes: the Relay needs the voter's delegation to hand them in. And a
    // commitment on chain whose votes are lost costs the voter its bond.
    beforeSending: async () => {
      await ensureDelegation(deps, caller);
      await deps.db
        .insert(sealedVote)
        .values({ contractId: id, backupAgent: caller, commitment, votes: packed, salt });
    },
    operation: ({ authorization, stray, requestHash, notAfter }) =>
      voteOperation({
        deployment: deps.deployment,
        escrow: id,
        caller,
        commitment,
        authorization,
        stray,
        requestHash,
        notAfter,
      }),
    alreadyDone: () =>
      new AppError("conflict", { message: "You have voted on this contract already, with another payment." }),
  };
}

/** The caller's ballot as it stands on chain: of several tries at once, the one whose commitment was taken. */
async function presentBallot({ db }: Deps, id: Address, caller: Address): Promise<Success> {
  const isCallers = and(eq(vote.contractId, id), eq(vote.backupAgent, caller));
  const rows = await selectVotes(db, caller, isCallers).orderBy(criterion);
  const [sealed] = await db
    .select({ salt: sealedVote.salt })
    .from(sealedVote)
    .innerJoin(
      vote,
      and(eq(vote.contractId, sealedVote.contractId), eq(vote.commitment, sealedVote.commitment)),
    )
    .where(and(isCallers, eq(sealedVote.backupAgent, caller)));
  return { data: rows.map(toVote), headers: sealed === undefined ? {} : { "Vote-Salt": sealed.salt } };
}
