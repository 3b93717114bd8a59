/** Events of the indexer: their type, the agents they concern, and the data that is public. */
import { formatDecimal } from "@working-contracts/protocol/amounts";
import type { EventType } from "@working-contracts/protocol/events";
import { unpackOutcomes } from "@working-contracts/protocol/outcomes";
import { STATUSES } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import { type Address, type Hex, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, lte } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { escrowEvent, workingContract } from "../db/onchain.js";
import { terms } from "../db/schema.js";
import { isOneOf } from "../db/statements.js";
import { timeoutOf } from "./deadlines.js";
import { agentsOf, type EventDraft } from "./log.js";

type ChainRow = Awaited<ReturnType<typeof readChainEvents>>[number];

type Known = ChainRow & { escrow: NonNullable<ChainRow["escrow"]>; terms: NonNullable<ChainRow["terms"]> };

/** The indexer's next events after the given id, in chain order: of all escrows, or of one up to an id. */
export function readChainEvents(
  db: Executor,
  { after, limit, of }: { after: string; limit: number; of?: { escrow: Address; upTo: string } },
) {
  return db
    .select({
      event: escrowEvent,
      escrow: workingContract,
      terms: { title: terms.title, awardMethod: terms.awardMethod },
    })
    .from(escrowEvent)
    .leftJoin(workingContract, eq(workingContract.id, escrowEvent.contractId))
    .leftJoin(terms, eq(terms.id, escrowEvent.contractId))
    .where(
      and(
        gt(escrowEvent.id, after),
        of && eq(escrowEvent.contractId, of.escrow),
        of && lte(escrowEvent.id, of.upTo),
      ),
    )
    .orderBy(asc(escrowEvent.id))
    .limit(limit);
}

/** The log events of a batch, in order. Skips escrows whose terms this service does not hold. */
export async function draftsOf(db: Executor, rows: readonly ChainRow[]): Promise<EventDraft[]> {
  const known = rows.filter((row): row is Known => row.escrow !== null && row.terms !== null);
  const refused = await refusedPayouts(db, known);
  return known.flatMap((row) => toDrafts(row, refused));
}

function toDrafts(row: Known, refused: ReadonlySet<string>): EventDraft[] {
  const { event, escrow } = row;
  const mapped = eventMappers[event.name]?.(row);
  if (mapped === undefined) return [];
  const place = {
    chainEventId: event.id,
    blockNumber: event.blockNumber,
    blockHash: event.blockHash,
    transactionHash: event.transactionHash,
    logIndex: event.logIndex,
  };
  const draft = ({ type, data, others = [] }: MappedEvent, part = ""): EventDraft => ({
    type,
    contractId: escrow.id,
    agents: agentsOf(escrow.client, escrow.worker, ...others),
    data,
    occurredAt: new Date(Number(event.timestamp) * 1000),
    source: `log:${event.blockHash}:${event.logIndex}${part}`,
    chain: place,
  });
  // If the token refused a payout, the same transaction has a PayoutDeferred event for that payee.
  if (event.name === "VoteClaimed") {
    const payee = String(event.args.backupAgent);
    if (!refused.has(refusalKey(event.transactionHash, escrow.id, payee))) return [draft(mapped)];
    const isRewarded = Number(event.args.reward) > 0;
    return isRewarded ? [draft({ ...mapped, data: { ...mapped.data, amount: formatDecimal(0n) } })] : [];
  }
  if (event.name !== "WorkingContractSettled") return [draft(mapped)];

  const payouts = payoutsOf(row).filter(
    ({ payee, amount }) => amount > 0n && !refused.has(refusalKey(event.transactionHash, escrow.id, payee)),
  );
  const timeout = timeoutOf(escrow);
  return [
    ...(timeout === null ? [] : [timeout]),
    draft(mapped),
    ...payouts.map(({ role, payee, amount }) =>
      draft({ type: "payout.paid", data: { payee, role, amount: formatDecimal(amount) } }, `:${role}`),
    ),
  ];
}

interface MappedEvent {
  type: EventType;
  data: Record<string, unknown>;
  /** Agents besides client and worker. */
  others?: string[];
}

const money = (amount: unknown): string => formatDecimal(BigInt(String(amount)));
const outcomesOf = ({ event, escrow }: Known) =>
  unpackOutcomes(Number(event.args.outcomes), escrow.criteriaCount);

const transferOf =
  (type: EventType, party: "payee" | "payer", facts = {}) =>
  ({ event: { args } }: Known): MappedEvent => ({
    type,
    data: { [party]: args[party], ...facts, amount: money(args.amount) },
    others: [String(args[party])],
  });

/** By name of the escrow's event. Vote events say who voted, never what. */
const eventMappers: Record<string, (row: Known) => MappedEvent> = {
  WorkingContractCreated: ({ escrow, terms }) => ({
    type: "contract.created",
    data: {
      initiator: escrow.workerInitiated ? "worker" : "client",
      title: terms.title,
      awardMethod: terms.awardMethod,
      budgetOrPrice: formatDecimal(escrow.price),
      matchDeadline: isoTime(Number(escrow.matchDeadline)),
      deliveryDeadline: isoTime(Number(escrow.deliveryDeadline)),
    },
    others: escrow.namedCounterparty === null ? [] : [escrow.namedCounterparty],
  }),
  WorkingContractMatched: ({ escrow, event }) => {
    const { counterparty } = event.args;
    return {
      type: "contract.accepted",
      data: escrow.workerInitiated
        ? { client: counterparty, worker: escrow.initiator }
        : { client: escrow.initiator, worker: counterparty },
      others: [String(counterparty)],
    };
  },
  WorkingContractDeclined: ({ escrow }) => ({
    type: "contract.declined",
    data: {},
    others: escrow.namedCounterparty === null ? [] : [escrow.namedCounterparty],
  }),
  WorkingContractCancelled: () => ({ type: "contract.cancelled", data: {} }),
  WorkingContractWithdrawn: () => ({ type: "contract.withdrawn", data: {} }),
  WorkingContractDelivered: (row) => ({
    type: "contract.delivered",
    data: { deliveryHash: row.event.args.deliveryHash, criteriaMet: outcomesOf(row) },
  }),
  WorkingContractApproved: (row) => ({ type: "contract.approved", data: { criteriaMet: outcomesOf(row) } }),
  WorkingContractDisputed: ({ event }) => ({
    type: "contract.disputed",
    data: { disputeBond: money(event.args.bond), votingClosesAt: isoTime(Number(event.args.votingClosesAt)) },
  }),
  BackupAgentsDrawn: ({ event }) => {
    const backupAgents = event.args.backupAgents as string[];
    return { type: "contract.drawn", data: { backupAgents }, others: backupAgents };
  },
  VoteSealed: ({ event }) => ({
    type: "vote.sealed",
    data: {
      backupAgent: event.args.backupAgent,
      commitment: event.args.commitment,
      bond: money(event.args.bond),
    },
    others: [String(event.args.backupAgent)],
  }),
  VoteOpened: ({ event }) => ({
    type: "vote.opened",
    data: { backupAgent: event.args.backupAgent },
    others: [String(event.args.backupAgent)],
  }),
  WorkingContractTallied: (row) => ({ type: "contract.tallied", data: { criteriaMet: outcomesOf(row) } }),
  WorkingContractSettled: (row) => {
    const payouts = payoutsOf(row);
    const { treasury } = row.event.args.payout as Record<string, string>;
    return {
      type: "contract.settled",
      data: {
        status: STATUSES[Number(row.event.args.status) - 1],
        payouts: {
          ...Object.fromEntries(payouts.map(({ role, amount }) => [role, formatDecimal(amount)])),
          treasury: money(treasury),
        },
      },
    };
  },
  VoteClaimed: ({ event }) => ({
    type: "payout.paid",
    data: {
      payee: event.args.backupAgent,
      role: "backup-agent",
      amount: money(event.args.amount),
      reward: Number(event.args.reward),
    },
    others: [String(event.args.backupAgent)],
  }),
  RewardDeferred: ({ event }) => ({
    type: "reward.deferred",
    data: { payee: event.args.backupAgent, reward: Number(event.args.reward) },
    others: [String(event.args.backupAgent)],
  }),
  PayoutDeferred: transferOf("payout.deferred", "payee"),
  PayoutClaimed: transferOf("payout.paid", "payee", { role: "deferred" }),
  DirectTransferCredited: transferOf("direct-transfer.credited", "payer"),
  DirectTransferRefunded: transferOf("direct-transfer.refunded", "payer"),
};

function payoutsOf({ event }: Known): { role: "client" | "worker"; payee: Address; amount: bigint }[] {
  const { client, worker } = event.args as Record<"client" | "worker", Address>;
  const payout = event.args.payout as Record<"client" | "worker", string>;
  const payees = [
    { role: "client" as const, payee: client, amount: BigInt(payout.client) },
    { role: "worker" as const, payee: worker, amount: BigInt(payout.worker) },
  ];
  return payees.filter(({ payee }) => payee !== ZERO_ADDRESS);
}

/** Events that report payouts, including payouts that the token refused. */
const PAYING: ReadonlySet<string> = new Set(["WorkingContractSettled", "VoteClaimed"]);

const refusalKey = (transaction: Hex, escrow: string, payee: string): string =>
  `${transaction}:${escrow}:${payee}`;

/** Payees that the token refused in the batch's settlements and claims. Reads a few events per contract at most. */
async function refusedPayouts(db: Executor, rows: readonly Known[]): Promise<Set<string>> {
  const paying = rows.filter(({ event }) => PAYING.has(event.name));
  if (paying.length === 0) return new Set();
  const ids = [...new Set(paying.map(({ escrow }) => escrow.id))];
  const deferred = await db
    .select({
      transaction: escrowEvent.transactionHash,
      escrow: escrowEvent.contractId,
      args: escrowEvent.args,
    })
    .from(escrowEvent)
    .where(and(isOneOf(escrowEvent.contractId, ids), eq(escrowEvent.name, "PayoutDeferred")));
  return new Set(
    deferred.map(({ transaction, escrow, args }) => refusalKey(transaction, escrow, String(args.payee))),
  );
}
