/** Events of the indexer: their type, the agents they concern, and the data that is public. */
import { formatDecimal } from "@working-contracts/protocol/amounts";
import type { EscrowEventName, EventType } from "@working-contracts/protocol/events";
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
  { after, limit, only }: { after: string; limit: number; only?: { escrow: Address; upTo: string } },
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
        only && eq(escrowEvent.contractId, only.escrow),
        only && lte(escrowEvent.id, only.upTo),
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
  const mapped = eventMappers[event.name as EscrowEventName]?.(row);
  if (mapped === undefined) return [];
  const { id: chainEventId, blockNumber, blockHash, transactionHash, logIndex } = event;
  const draft = ({ type, data }: MappedEvent, part = ""): EventDraft => ({
    type,
    contractId: escrow.id,
    agents: agentsOf(escrow.client, escrow.worker, escrow.namedCounterparty, ...agentsNamedIn(event.args)),
    data,
    occurredAt: new Date(Number(event.timestamp) * 1000),
    source: `log:${blockHash}:${logIndex}${part}`,
    chainEventId,
    blockNumber,
    blockHash,
    transactionHash,
    logIndex,
  });
  // If the token refused a payout, the same transaction has a PayoutDeferred event for that payee.
  if (event.name === "VoteClaimed") {
    const payee = String(event.args.backupAgent);
    const isRefused = refused.has(refusalKey(transactionHash, escrow.id, payee));
    const amount = isRefused ? 0n : BigInt(String(event.args.amount));
    if (amount === 0n && Number(event.args.reward) === 0) return [];
    return [draft({ ...mapped, data: { ...mapped.data, amount: formatDecimal(amount) } })];
  }
  if (event.name !== "WorkingContractSettled") return [draft(mapped)];

  const payouts = payoutsOf(row).filter(
    ({ payee, amount }) => amount > 0n && !refused.has(refusalKey(transactionHash, escrow.id, payee)),
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
}

/** Agents in the arguments of an escrow's event. */
function agentsNamedIn(args: Record<string, unknown>): string[] {
  const { counterparty, payer, payee, backupAgent, backupAgents } = args;
  return [counterparty, payer, payee, backupAgent, backupAgents]
    .flat()
    .filter((one) => one != null)
    .map(String);
}

const money = (amount: unknown): string => formatDecimal(BigInt(String(amount)));
const outcomesOf = ({ event, escrow }: Known) =>
  unpackOutcomes(Number(event.args.outcomes), escrow.criteriaCount);

const transferOf =
  (type: EventType, party: "payee" | "payer", facts = {}) =>
  ({ event: { args } }: Known): MappedEvent => ({
    type,
    data: { [party]: args[party], ...facts, amount: money(args.amount) },
  });

/** By name of the escrow's event. Vote events say who voted, never what. */
const eventMappers: Record<EscrowEventName, (row: Known) => MappedEvent> = {
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
  }),
  WorkingContractMatched: ({ escrow, event }) => {
    const { counterparty } = event.args;
    return {
      type: "contract.accepted",
      data: escrow.workerInitiated
        ? { client: counterparty, worker: escrow.initiator }
        : { client: escrow.initiator, worker: counterparty },
    };
  },
  WorkingContractDeclined: () => ({ type: "contract.declined", data: {} }),
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
  BackupAgentsDrawn: ({ event }) => ({
    type: "contract.drawn",
    data: { backupAgents: event.args.backupAgents },
  }),
  VoteSealed: ({ event }) => ({
    type: "vote.sealed",
    data: {
      backupAgent: event.args.backupAgent,
      commitment: event.args.commitment,
      bond: money(event.args.bond),
    },
  }),
  VoteOpened: ({ event }) => ({ type: "vote.opened", data: { backupAgent: event.args.backupAgent } }),
  WorkingContractTallied: (row) => ({ type: "contract.tallied", data: { criteriaMet: outcomesOf(row) } }),
  WorkingContractSettled: (row) => {
    const paid = payoutsOf(row).map(({ role, amount }) => [role, formatDecimal(amount)]);
    const { treasury } = row.event.args.payout as Record<string, string>;
    const payouts = { ...Object.fromEntries(paid), treasury: money(treasury) };
    return {
      type: "contract.settled",
      data: { status: STATUSES[Number(row.event.args.status) - 1], payouts },
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
  }),
  RewardDeferred: ({ event }) => ({
    type: "reward.deferred",
    data: { payee: event.args.backupAgent, reward: Number(event.args.reward) },
  }),
  PayoutDeferred: transferOf("payout.deferred", "payee"),
  PayoutClaimed: transferOf("payout.paid", "payee", { role: "deferred" }),
  DirectTransferCredited: transferOf("direct-transfer.credited", "payer"),
  DirectTransferRefunded: transferOf("direct-transfer.refunded", "payer"),
};

function payoutsOf({ event }: Known): { role: "client" | "worker"; payee: Address; amount: bigint }[] {
  const payees = event.args as Record<"client" | "worker", Address>;
  const amounts = event.args.payout as Record<"client" | "worker", string>;
  return (["client", "worker"] as const)
    .map((role) => ({ role, payee: payees[role], amount: BigInt(amounts[role]) }))
    .filter(({ payee }) => payee !== ZERO_ADDRESS);
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
    .select()
    .from(escrowEvent)
    .where(and(isOneOf(escrowEvent.contractId, ids), eq(escrowEvent.name, "PayoutDeferred")));
  return new Set(
    deferred.map(({ transactionHash, contractId, args }) =>
      refusalKey(transactionHash, contractId, String(args.payee)),
    ),
  );
}
