/** GET /v1/contracts/{id}/settlement: who gets what, how it ended, and how far each payment is. */

import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { juryDues, LEG_NAMES } from "@working-contracts/protocol/ledger";
import { endedAt, endingOf, STATUSES, settlementLegs, statusOf } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, inArray } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { deferredPayout, escrowEvent, vote } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AddressViewSchema, HexViewSchema } from "../../http/schemas.js";
import {
  AmountViewSchema,
  type ContractRow,
  factsOf,
  loadContract,
  parametersOf,
  TimeViewSchema,
} from "./view.js";

/** A leg is `held` while the payout hold runs, and `queued` if it is due but not on chain, or refused by the token so far. */
export const SettlementSchema = z
  .object({
    contractId: z.string(),
    status: z.enum(STATUSES),
    ending: z
      .enum([
        "approved",
        "review-timeout",
        "dispute",
        "absent",
        "withdrawn",
        "declined",
        "cancelled",
        "unmatched",
      ])
      .nullable(),
    endedAt: TimeViewSchema.nullable(),
    heldUntil: TimeViewSchema.nullable(),
    settledAt: TimeViewSchema.nullable(),
    transactionHash: HexViewSchema.nullable(),
    legs: z.array(
      z.object({
        name: z.enum([...LEG_NAMES, "jury-payout"]),
        to: z.enum(["client", "worker", "treasury", "backup-agent"]),
        address: AddressViewSchema.nullable(),
        amount: AmountViewSchema,
        state: z.enum(["held", "queued", "confirmed"]),
        transactionHash: HexViewSchema.nullable(),
      }),
    ),
  })
  .openapi("Settlement");

export type SettlementView = z.infer<typeof SettlementSchema>;
export type SettlementLeg = SettlementView["legs"][number];
export type LegState = SettlementLeg["state"];

/** The settlement of one contract, empty while it has not ended. Throws 404. */
export async function getSettlement(deps: Pick<Deps, "db" | "clock">, id: Address): Promise<SettlementView> {
  const row = await loadContract(deps.db, id);
  const now = deps.clock.now();
  const facts = factsOf(row);
  const ended = endedAt(facts, now);
  const heldUntil = ended === null || row.chain.payoutHold === 0 ? null : ended + row.chain.payoutHold;
  const payments = await loadPayments(deps.db, id);
  const settledBy = payments.settled?.transactionHash ?? null;

  return {
    contractId: id,
    status: statusOf(facts, now),
    ending: endingOf(facts, now),
    endedAt: ended === null ? null : isoTime(ended),
    heldUntil: heldUntil === null ? null : isoTime(heldUntil),
    settledAt: row.chain.settledAt === null ? null : isoTime(Number(row.chain.settledAt)),
    transactionHash: settledBy,
    legs: ended === null ? [] : legsOf(row, { now, heldUntil, payments }),
  };
}

interface Payments {
  settled: { transactionHash: Hex } | undefined;
  /** Transaction of each voter's first claim. */
  claims: Map<string, Hex>;
  /** Transaction that paid a payee what the token had refused to pay it before. */
  late: Map<string, Hex>;
  /** Payees that the token refused to pay, until a later attempt succeeds. */
  deferred: Set<string>;
  ballots: { backupAgent: Hex; votes: number | null; claimed: boolean }[];
}

/** Bounded: a contract has one settlement, and at most 4,095 ballots. */
async function loadPayments(db: Executor, id: Address): Promise<Payments> {
  const [events, unpaid, ballots] = await Promise.all([
    db
      .select({
        name: escrowEvent.name,
        args: escrowEvent.args,
        transactionHash: escrowEvent.transactionHash,
      })
      .from(escrowEvent)
      .where(
        and(
          eq(escrowEvent.contractId, id),
          inArray(escrowEvent.name, ["WorkingContractSettled", "VoteClaimed", "PayoutClaimed"]),
        ),
      )
      .orderBy(asc(escrowEvent.id)),
    db
      .select({ payee: deferredPayout.payee, amount: deferredPayout.amount })
      .from(deferredPayout)
      .where(eq(deferredPayout.contractId, id)),
    db
      .select({ backupAgent: vote.backupAgent, votes: vote.votes, claimed: vote.claimed })
      .from(vote)
      .where(eq(vote.contractId, id))
      .orderBy(asc(vote.position)),
  ]);
  const claims = new Map<string, Hex>();
  const late = new Map<string, Hex>();
  for (const { name, args, transactionHash } of events) {
    const agent = String(args.backupAgent);
    if (name === "VoteClaimed" && !claims.has(agent)) claims.set(agent, transactionHash);
    if (name === "PayoutClaimed") late.set(String(args.payee), transactionHash);
  }
  return {
    settled: events.find(({ name }) => name === "WorkingContractSettled"),
    claims,
    late,
    deferred: new Set(unpaid.filter(({ amount }) => amount > 0n).map(({ payee }) => payee)),
    ballots,
  };
}

function legsOf(
  row: ContractRow,
  { now, heldUntil, payments }: { now: number; heldUntil: number | null; payments: Payments },
): SettlementLeg[] {
  const { chain } = row;
  const parameters = parametersOf(row);
  const waiting: LegState = heldUntil !== null && now < heldUntil ? "held" : "queued";
  const addresses = { client: chain.client, worker: chain.worker, treasury: chain.treasury };
  /** `paidBy` paid everyone whom the token did not refuse. */
  const progressOf = (isPaid: boolean, paidBy: Hex | undefined, payee = "") => {
    if (!isPaid) return { state: waiting, transactionHash: null };
    if (payments.deferred.has(payee)) return { state: "queued" as const, transactionHash: null };
    return { state: "confirmed" as const, transactionHash: payments.late.get(payee) ?? paidBy ?? null };
  };

  const ballots = payments.ballots.map(({ votes }) => votes);
  const jury = juryDues(ballots, { price: chain.price, criteriaCount: chain.criteriaCount, parameters });
  const legs = settlementLegs(
    { ...factsOf(row), workerInitiated: chain.workerInitiated, juryLeftover: jury.leftover, parameters },
    now,
  );
  const settledBy = payments.settled?.transactionHash;
  const settlement = (legs ?? []).map(
    ({ name, payee, amount }): SettlementLeg => ({
      name,
      to: payee,
      address: addresses[payee],
      amount: formatDecimal(amount),
      ...progressOf(chain.settled, settledBy, addresses[payee] ?? undefined),
    }),
  );
  if (chain.phase !== "tallied") return settlement;

  const votes = payments.ballots.map(
    ({ backupAgent, claimed }, i): SettlementLeg => ({
      name: "jury-payout",
      to: "backup-agent",
      address: backupAgent,
      amount: formatDecimal(jury.dues[i]?.amount ?? 0n),
      ...progressOf(claimed, payments.claims.get(backupAgent), backupAgent),
    }),
  );
  return [...settlement, ...votes.filter(({ amount }) => amount !== "0.0")];
}
