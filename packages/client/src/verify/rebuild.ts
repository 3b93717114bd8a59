/** Rebuilds a Contract and its settlement from the chain alone, with the API's field names. */

import { formatDecimal } from "@working-contracts/protocol/amounts";
import { juryDues, workerStake } from "@working-contracts/protocol/ledger";
import { unpackOutcomes } from "@working-contracts/protocol/outcomes";
import {
  effectiveOutcomes,
  endedAt,
  endingOf,
  STATUSES,
  type StatusFacts,
  settlementLegs,
  statusOf,
} from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import { type Phase, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import type { Hex } from "viem";
import { addTo, type EscrowEvent, type EscrowOnChain, lower } from "./read-chain.js";

export interface Rebuilt {
  contract: Record<string, unknown>;
  settlement: Record<string, unknown> & {
    legs: (Omit<RebuiltLeg, "amount" | "paid"> & { amount: string })[];
  };
  /** keccak256 of the unencrypted delivery; null before delivery. */
  deliveryHash: string | null;
  /** Merkle root over the checkpoints; null before delivery. */
  checkpointsRoot: string | null;
  /** Outcomes of computed criteria, which the Worker states at delivery; null without. */
  statedOutcomes: string[] | null;
  /** The agents that were drawn, in order. */
  drawn: string[];
  /** Amounts that the token transferred, beside those that the rules require by now. */
  transfers: { payee: string; moved: string; due: string }[];
}

const ENDS = ["Declined", "Cancelled", "Withdrawn", "Approved", "Tallied"];
/** The events that begin a phase. */
const PHASES = ["Created", "Matched", "Delivered", "Disputed", ...ENDS];

/** Throws if the escrow was never opened. */
export function rebuild(escrow: EscrowOnChain): Rebuilt {
  const { terms, events, now } = escrow;
  const named = (name: string): EscrowEvent[] => events.filter((event) => event.name === name);
  const last = events.findLast(({ name }) => PHASES.includes(name));
  const created = named("Created")[0];
  if (!last || !created) throw new Error(`The escrow ${escrow.address} was never opened.`);

  const phase = last.name.toLowerCase() as Exclude<Phase, "none">;
  const settled = named("Settled")[0];
  const decided = events.findLast(({ args }) => typeof args.outcomes === "number");
  const facts: StatusFacts & { endedAt: number | null } = {
    ...terms,
    phase,
    settled: settled !== undefined,
    outcomes: Number(decided?.args.outcomes ?? 0),
    endedAt: ENDS.includes(last.name) ? last.timestamp : null,
  };
  const matched = named("Matched")[0];
  const invited = terms.counterparty === ZERO_ADDRESS ? null : terms.counterparty;
  const counterparty = matched ? lower(matched.args.counterparty) : invited;
  const client = terms.workerInitiated ? (matched ? counterparty : null) : terms.initiator;
  const worker = terms.workerInitiated ? terms.initiator : counterparty;
  const disputed = named("Disputed")[0];
  const delivered = named("Delivered")[0];
  const status = statusOf(facts, now);

  const contract = {
    id: escrow.address,
    status,
    statusOnChain: STATUSES[escrow.status - 1],
    createdAt: isoTime(created.timestamp),
    initiator: terms.workerInitiated ? "worker" : "client",
    client,
    worker,
    criteriaMet: unpackOutcomes(effectiveOutcomes(facts, now), terms.criteriaCount),
    budgetOrPrice: formatDecimal(terms.price),
    matchDeadline: isoTime(terms.matchDeadline),
    withdrawalDeadline: isoTime(terms.withdrawalDeadline),
    deliveryDeadline: isoTime(terms.deliveryDeadline),
    reviewDeadline: isoTime(terms.reviewDeadline),
    backupAgents: votersOf(events),
    escrowedFunds: !terms.workerInitiated || matched ? formatDecimal(terms.price) : null,
    workerStake:
      terms.workerInitiated || matched ? formatDecimal(workerStake(terms.price, terms.parameters)) : null,
    disputeBond: disputed ? formatDecimal(disputed.args.bond as bigint) : null,
  };
  const ended = endedAt(facts, now);
  const { payoutHold } = terms.parameters;
  const heldUntil = ended === null || payoutHold === 0 ? null : ended + payoutHold;
  const legs = legsOf(escrow, facts, {
    addresses: { client, worker, treasury: settled ? lower(settled.args.treasury) : null },
    waiting: heldUntil !== null && now < heldUntil ? "held" : "queued",
    settledBy: settled?.transactionHash ?? null,
  });
  return {
    contract,
    settlement: {
      ending: endingOf(facts, now),
      endedAt: ended === null ? null : isoTime(ended),
      heldUntil: heldUntil === null ? null : isoTime(heldUntil),
      settledAt: settled ? isoTime(settled.timestamp) : null,
      transactionHash: settled?.transactionHash ?? null,
      legs: legs.map(({ paid: _, amount, ...leg }) => ({ ...leg, amount: formatDecimal(amount) })),
    },
    deliveryHash: (delivered?.args.deliveryHash as string | undefined) ?? null,
    checkpointsRoot: (delivered?.args.checkpointsRoot as string | undefined) ?? null,
    statedOutcomes:
      terms.computedCriteria && delivered
        ? unpackOutcomes(Number(delivered.args.outcomes), terms.criteriaCount)
        : null,
    drawn: ((named("BackupAgentsDrawn")[0]?.args.backupAgents ?? []) as string[]).map(lower),
    transfers: transfersOf(escrow, legs),
  };
}

interface RebuiltLeg {
  name: string;
  to: string;
  address: string | null;
  amount: bigint;
  state: "held" | "queued" | "confirmed";
  transactionHash: Hex | null;
  /** Whether the escrow counted it as paid, even if the token refused the transfer. */
  paid: boolean;
}

function legsOf(
  { terms, events, now }: EscrowOnChain,
  facts: StatusFacts,
  payment: {
    addresses: { client: string | null; worker: string | null; treasury: string | null };
    waiting: "held" | "queued";
    settledBy: Hex | null;
  },
): RebuiltLeg[] {
  const { addresses, waiting, settledBy } = payment;
  const byVoter = (name: string): Map<string, EscrowEvent> =>
    new Map(
      events
        .filter((event) => event.name === name)
        .map((event) => [lower(event.args.backupAgent), event] as const)
        .reverse(),
    );
  const opened = byVoter("VoteOpened");
  const claimed = byVoter("VoteClaimed");
  const voters = votersOf(events);
  const unpaid = refusedByToken(events);
  const late = new Map(
    events
      .filter(({ name }) => name === "PayoutClaimed")
      .map(({ args, transactionHash }) => [lower(args.payee), transactionHash]),
  );
  const leg = (
    { name, to, address, amount }: Pick<RebuiltLeg, "name" | "to" | "address" | "amount">,
    paidBy: Hex | null,
  ): RebuiltLeg => {
    const arrived = paidBy !== null && !(address !== null && unpaid.has(address));
    const state = arrived ? "confirmed" : paidBy === null ? waiting : "queued";
    const transactionHash = arrived ? (late.get(address ?? "") ?? paidBy) : null;
    return { name, to, address, amount, state, transactionHash, paid: paidBy !== null };
  };

  const { parameters, price, criteriaCount, workerInitiated } = terms;
  const ballots = voters.map((voter) => {
    const votes = opened.get(voter)?.args.votes;
    return votes === undefined ? null : Number(votes);
  });
  const jury = juryDues(ballots, { price, criteriaCount, parameters });
  const settlement = (
    settlementLegs({ ...facts, workerInitiated, juryLeftover: jury.leftover, parameters }, now) ?? []
  ).map(({ name, payee, amount }) => leg({ name, to: payee, address: addresses[payee], amount }, settledBy));
  if (facts.phase !== "tallied") return settlement;
  const payouts = voters.map((voter, i) =>
    leg(
      { name: "jury-payout", to: "backup-agent", address: voter, amount: jury.dues[i]?.amount ?? 0n },
      claimed.get(voter)?.transactionHash ?? null,
    ),
  );
  return [...settlement, ...payouts.filter(({ amount }) => amount > 0n)];
}

function votersOf(events: readonly EscrowEvent[]): string[] {
  return events.filter(({ name }) => name === "VoteSealed").map(({ args }) => lower(args.backupAgent));
}

/** Payees to whom the token refused a transfer and no later attempt has succeeded. */
function refusedByToken(events: readonly EscrowEvent[]): Set<string> {
  const owed = new Map<string, bigint>();
  for (const { name, args } of events) {
    if (name !== "PayoutDeferred" && name !== "PayoutClaimed") continue;
    const payee = lower(args.payee);
    const amount = args.amount as bigint;
    addTo(owed, payee, name === "PayoutDeferred" ? amount : -amount);
  }
  return new Set([...owed].filter(([, amount]) => amount > 0n).map(([payee]) => payee));
}

/** Compares payouts that the rules require by now, and refunds of direct transfers, with the token's transfers. */
function transfersOf({ events, paid }: EscrowOnChain, legs: readonly RebuiltLeg[]): Rebuilt["transfers"] {
  const due = new Map<string, bigint>();
  for (const { address, amount, paid: isPaid } of legs)
    if (isPaid && address !== null) addTo(due, address, amount);
  for (const { name, args } of events) {
    if (name === "DirectTransferRefunded") addTo(due, lower(args.payer), args.amount as bigint);
    if (name === "PayoutDeferred") addTo(due, lower(args.payee), -(args.amount as bigint));
    if (name === "PayoutClaimed") addTo(due, lower(args.payee), args.amount as bigint);
  }
  return [...new Set([...due.keys(), ...paid.keys()])].map((payee) => ({
    payee,
    moved: String(paid.get(payee) ?? 0n),
    due: String(due.get(payee) ?? 0n),
  }));
}
