/** GET /v1/contracts/{id}/ledger compares a contract's movements with its balance; /settlement shows each payment. */
import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { LEG_NAMES } from "@working-contracts/protocol/ledger";
import { ENDINGS, STATUSES, settlementOf, statusOf } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, asc, desc, eq, inArray, notInArray, or } from "drizzle-orm";
import { erc20Abi } from "viem";
import type { Executor } from "../../db/client.js";
import {
  deferredPayout,
  escrowEvent,
  type IndexReader,
  indexedBlock,
  requireIndex,
  vote,
} from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AddressViewSchema, HexViewSchema } from "../../http/schemas.js";
import { AmountViewSchema, factsOf, loadContract, parametersOf, TimeViewSchema } from "./view.js";

export const LedgerSchema = z
  .object({
    contractId: z.string(),
    entries: z.array(
      z.object({
        direction: z.enum(["in", "out"]),
        name: z.enum([
          "price",
          "worker-stake",
          "dispute-bond",
          "jury-bond",
          "payout",
          "jury-payout",
          "late-payout",
        ]),
        party: AddressViewSchema.nullable(),
        amount: AmountViewSchema,
        at: TimeViewSchema,
        blockNumber: z.number(),
        transactionHash: HexViewSchema,
      }),
    ),
    in: AmountViewSchema,
    out: AmountViewSchema,
    held: AmountViewSchema.openapi({ description: "`in` minus `out`: the amount that the escrow owes" }),
    asOfBlock: z.number().nullable().openapi({ description: "Null while the index catches up" }),
    balance: AmountViewSchema.nullable().openapi({
      description: "The escrow's token balance at that block; null if the node does not respond",
    }),
    unbooked: AmountViewSchema.nullable().openapi({
      description: "Balance beyond `held`, from direct transfers",
    }),
  })
  .openapi("Ledger");

export type LedgerView = z.infer<typeof LedgerSchema>;
export type LedgerEntry = LedgerView["entries"][number];

/** An entry in base units. */
type Booking = Omit<LedgerEntry, "amount"> & { amount: bigint };

/** The books of one contract as of the newest indexed block. Throws 404. */
export async function getLedger(
  deps: IndexReader & Pick<Deps, "publicClient" | "deployment">,
  id: Address,
): Promise<LedgerView> {
  const { chain } = await loadContract(deps, id);
  // First the block, then the events up to it, so both sides describe the same block.
  const asOfBlock = await indexedBlock(deps.db);
  const events = (await readTimeline(deps.db, id)).filter(
    ({ blockNumber }) => asOfBlock === null || blockNumber <= Number(asOfBlock),
  );
  const bookings = events.flatMap((event) => bookingsOf(event, chain));
  for (const event of events) deductDeferred(bookings, event);

  const entries = bookings.filter(({ amount }) => amount > 0n);
  const sum = (direction: "in" | "out") =>
    entries.reduce((total, entry) => (entry.direction === direction ? total + entry.amount : total), 0n);
  const held = sum("in") - sum("out");
  const balance = asOfBlock === null ? null : await balanceAt(deps, id, asOfBlock);
  await requireIndex(deps);
  return {
    contractId: id,
    entries: entries.map((entry) => ({ ...entry, amount: formatDecimal(entry.amount) })),
    in: formatDecimal(sum("in")),
    out: formatDecimal(sum("out")),
    held: formatDecimal(held),
    asOfBlock: asOfBlock === null ? null : Number(asOfBlock),
    balance: balance === null ? null : formatDecimal(balance),
    unbooked: balance === null ? null : formatDecimal(balance > held ? balance - held : 0n),
  };
}

interface Parties {
  workerInitiated: boolean;
  initiator: Address;
  client: Address | null;
}

function bookingsOf(event: ChainEvent, { workerInitiated, initiator, client }: Parties): Booking[] {
  const { args, timestamp, blockNumber, transactionHash } = event;
  const entry = (
    direction: LedgerEntry["direction"],
    name: LedgerEntry["name"],
    party: unknown,
    amount: unknown,
  ): Booking => ({
    direction,
    name,
    party: (party as Address | null) ?? null,
    amount: BigInt(amount as string),
    at: isoTime(timestamp),
    blockNumber,
    transactionHash,
  });
  switch (event.name) {
    case "WorkingContractCreated":
      return [entry("in", workerInitiated ? "worker-stake" : "price", initiator, args.deposit)];
    case "WorkingContractMatched":
      return [entry("in", workerInitiated ? "price" : "worker-stake", args.counterparty, args.deposit)];
    case "WorkingContractDisputed":
      return [entry("in", "dispute-bond", client, args.bond)];
    case "VoteSealed":
      return [entry("in", "jury-bond", args.backupAgent, args.bond)];
    case "WorkingContractSettled": {
      const payout = args.payout as Record<"client" | "worker" | "treasury", string>;
      return (["client", "worker", "treasury"] as const).map((payee) =>
        entry("out", "payout", args[payee], payout[payee]),
      );
    }
    case "VoteClaimed":
      return [entry("out", "jury-payout", args.backupAgent, args.amount)];
    case "PayoutClaimed":
      return [entry("out", "late-payout", args.payee, args.amount)];
    default:
      return [];
  }
}

/** A payout that the token refused is still in the escrow until a later `PayoutClaimed`. */
function deductDeferred(bookings: Booking[], { name, args, transactionHash }: ChainEvent): void {
  if (name !== "PayoutDeferred") return;
  const amount = BigInt(args.amount as string);
  const refused = bookings.find(
    (entry) =>
      entry.direction === "out" &&
      entry.transactionHash === transactionHash &&
      entry.party === args.payee &&
      entry.amount >= amount,
  );
  if (refused !== undefined) refused.amount -= amount;
}

async function balanceAt(
  { publicClient, deployment }: Pick<Deps, "publicClient" | "deployment">,
  escrow: Address,
  blockNumber: bigint,
): Promise<bigint | null> {
  try {
    return await publicClient.readContract({
      address: deployment.asset.address,
      abi: erc20Abi,
      functionName: "balanceOf",
      args: [escrow],
      blockNumber,
    });
  } catch {
    return null;
  }
}

export interface ChainEvent {
  id: string;
  name: string;
  /** Event arguments; integers as decimal strings, hex in lower case. */
  args: Record<string, unknown>;
  /** Seconds since 1970. */
  timestamp: number;
  blockNumber: number;
  transactionHash: Hex;
}

/** Anyone can make any number of them. */
const DIRECT_TRANSFERS = ["DirectTransferCredited", "DirectTransferRefunded"];
const MAX_DIRECT_TRANSFERS = 1_000;

/**
 * The events of an escrow, oldest first: about three for each of at most 4,095 voters, a dozen more, and the newest
 * {@link MAX_DIRECT_TRANSFERS} of direct transfers, which the ledger does not book.
 */
export async function readTimeline(db: Executor, id: Address): Promise<ChainEvent[]> {
  const isOwn = eq(escrowEvent.contractId, id);
  const newestTransfers = db
    .select({ id: escrowEvent.id })
    .from(escrowEvent)
    .where(and(isOwn, inArray(escrowEvent.name, DIRECT_TRANSFERS)))
    .orderBy(desc(escrowEvent.id))
    .limit(MAX_DIRECT_TRANSFERS);
  const rows = await db
    .select()
    .from(escrowEvent)
    .where(
      and(
        isOwn,
        or(notInArray(escrowEvent.name, DIRECT_TRANSFERS), inArray(escrowEvent.id, newestTransfers)),
      ),
    )
    .orderBy(asc(escrowEvent.id));
  return rows.map((row) => ({
    ...row,
    timestamp: Number(row.timestamp),
    blockNumber: Number(row.blockNumber),
  }));
}

export const SettlementSchema = z
  .object({
    contractId: z.string(),
    status: z.enum(STATUSES),
    ending: z.enum(ENDINGS).nullable(),
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

/** The settlement of one contract, empty while it has not ended. Throws 404. */
export async function getSettlement(deps: IndexReader, id: Address): Promise<SettlementView> {
  const row = await loadContract(deps, id);
  const now = deps.clock.now();
  const { client, worker, treasury, workerInitiated, settledAt } = row.chain;
  const payments = await loadPayments(deps.db, id);
  await requireIndex(deps);
  const facts = {
    ...factsOf(row),
    workerInitiated,
    parameters: parametersOf(row),
    payees: { client, worker, treasury },
    ...payments,
  };
  const { ending, endedAt, heldUntil, legs } = settlementOf(facts, now);
  return {
    contractId: id,
    status: statusOf(facts, now),
    ending,
    endedAt: endedAt === null ? null : isoTime(endedAt),
    heldUntil: heldUntil === null ? null : isoTime(heldUntil),
    settledAt: settledAt === null ? null : isoTime(settledAt),
    // Null, too, if it has settled since the contract was read.
    transactionHash: settledAt === null ? null : (payments.settledBy ?? null),
    legs: legs.map(({ paid: _, ...leg }) => ({ ...leg, amount: formatDecimal(leg.amount) })),
  };
}

/** The votes and payments so far. Bounded: a contract has one settlement, and at most 4,095 ballots. */
async function loadPayments(db: Executor, id: Address) {
  const [events, unpaid, ballots] = await Promise.all([
    db
      .select()
      .from(escrowEvent)
      .where(
        and(
          eq(escrowEvent.contractId, id),
          inArray(escrowEvent.name, ["WorkingContractSettled", "VoteClaimed", "PayoutClaimed"]),
        ),
      )
      .orderBy(asc(escrowEvent.id)),
    db.select().from(deferredPayout).where(eq(deferredPayout.contractId, id)),
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
    settledBy: events.find(({ name }) => name === "WorkingContractSettled")?.transactionHash,
    ballots: ballots.map((ballot) => ({ ...ballot, claimedBy: claims.get(ballot.backupAgent) })),
    refused: new Set(unpaid.filter(({ amount }) => amount > 0n).map(({ payee }) => payee)),
    late,
  };
}
