/** Rebuilds a Contract and its settlement from the chain alone, with the API's field names. */

import { formatDecimal } from "@working-contracts/protocol/amounts";
import { workerStake } from "@working-contracts/protocol/ledger";
import { unpackOutcomes } from "@working-contracts/protocol/outcomes";
import {
  type DueLeg,
  effectiveOutcomes,
  STATUSES,
  settlementOf,
  statusOf,
} from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import { type Address, type Phase, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { addTo, type EscrowEvent, type EscrowOnChain, lower } from "./read-chain.js";

const ENDS = ["Declined", "Cancelled", "Withdrawn", "Approved", "Tallied"];
/** The events that begin a phase. */
const PHASES = ["Created", "Matched", "Delivered", "Disputed", ...ENDS];

/** The API's fields by the chain alone, and facts to compare the service's texts with. */
export type Rebuilt = ReturnType<typeof rebuild>;

/** Throws if the escrow was never opened. */
export function rebuild(escrow: EscrowOnChain) {
  const { terms, events, now } = escrow;
  const named = (name: string): EscrowEvent[] => events.filter((event) => event.name === name);
  const last = events.findLast(({ name }) => PHASES.includes(name));
  const created = named("Created")[0];
  if (!last || !created) throw new Error(`The escrow ${escrow.address} was never opened.`);

  const phase = last.name.toLowerCase() as Exclude<Phase, "none">;
  const settled = named("Settled")[0];
  const decided = events.findLast(({ args }) => typeof args.outcomes === "number");
  const facts = {
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
  const payees = { client, worker, treasury: settled ? lower(settled.args.treasury) : null };
  const { ending, endedAt, heldUntil, legs } = settlementOf(
    { ...facts, payees, settledBy: settled?.transactionHash, ...paymentsOf(events) },
    now,
  );
  return {
    contract,
    settlement: {
      ending,
      endedAt: endedAt === null ? null : isoTime(endedAt),
      heldUntil: heldUntil === null ? null : isoTime(heldUntil),
      settledAt: settled ? isoTime(settled.timestamp) : null,
      transactionHash: settled?.transactionHash ?? null,
      legs: legs.map(({ paid: _, amount, ...leg }) => ({ ...leg, amount: formatDecimal(amount) })),
    },
    /** keccak256 of the unencrypted delivery; null before delivery. */
    deliveryHash: (delivered?.args.deliveryHash as string | undefined) ?? null,
    /** Merkle root over the checkpoints; null before delivery. */
    checkpointsRoot: (delivered?.args.checkpointsRoot as string | undefined) ?? null,
    /** Outcomes of computed criteria, which the Worker states at delivery; null without. */
    statedOutcomes:
      terms.computedCriteria && delivered
        ? unpackOutcomes(Number(delivered.args.outcomes), terms.criteriaCount)
        : null,
    /** The agents that were drawn, in order. */
    drawn: ((named("BackupAgentsDrawn")[0]?.args.backupAgents ?? []) as string[]).map(lower),
    /** Amounts that the token transferred, beside those that the rules require by now. */
    transfers: transfersOf(escrow, legs),
  };
}

function paymentsOf(events: readonly EscrowEvent[]) {
  const ballots = votersOf(events).map((backupAgent) => {
    const first = (event: string) =>
      events.find(({ name, args }) => name === event && lower(args.backupAgent) === backupAgent);
    const votes = first("VoteOpened")?.args.votes;
    const claimedBy = first("VoteClaimed")?.transactionHash;
    return {
      backupAgent,
      votes: votes === undefined ? null : Number(votes),
      claimed: claimedBy !== undefined,
      claimedBy,
    };
  });
  const late = new Map(
    events
      .filter(({ name }) => name === "PayoutClaimed")
      .map(({ args, transactionHash }) => [lower(args.payee), transactionHash]),
  );
  return { ballots, refused: refusedByToken(events), late };
}

function votersOf(events: readonly EscrowEvent[]): Address[] {
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
function transfersOf({ events, paid }: EscrowOnChain, legs: readonly DueLeg[]) {
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
