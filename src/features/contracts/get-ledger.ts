/** GET /v1/contracts/{id}/ledger: every unit that an escrow took in and paid out, compared with its token balance. */

import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { asc, eq } from "drizzle-orm";
import { erc20Abi } from "viem";
import type { Executor } from "../../db/client.js";
import { escrowEvent, indexedBlock } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AddressViewSchema, HexViewSchema } from "../../http/schemas.js";
import { AmountViewSchema, loadContract, TimeViewSchema } from "./view.js";

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
  deps: Pick<Deps, "db" | "publicClient" | "deployment">,
  id: Address,
): Promise<LedgerView> {
  const { chain } = await loadContract(deps.db, id);
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

/** Every event of an escrow, oldest first: at most about three for each of 4,095 voters, and a dozen more. */
export async function readTimeline(db: Executor, id: Address): Promise<ChainEvent[]> {
  const rows = await db
    .select()
    .from(escrowEvent)
    .where(eq(escrowEvent.contractId, id))
    .orderBy(asc(escrowEvent.id));
  return rows.map(({ id: eventId, name, args, timestamp, blockNumber, transactionHash }) => ({
    id: eventId,
    name,
    args,
    timestamp: Number(timestamp),
    blockNumber: Number(blockNumber),
    transactionHash,
  }));
}
