import { LIMITS } from "@working-contracts/protocol/limits";
import { STATUS_GROUPS, STATUSES, type Status } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { ContractView } from "../../features/contracts/view.js";
import { Region, secondsOf, Time, TimeLeft } from "../components.js";
import type { ContractPageData } from "./load.js";

interface NextStep {
  /** The expected action and who takes it. */
  text: string;
  /** The deadline; null if the contract itself sets none. */
  by: string | null;
  /** The consequence if the deadline passes. */
  otherwise: string | null;
}

/** Returns null once nothing is left to do. */
export function nextStep(contract: ContractView): NextStep | null {
  const byWorker = contract.initiator === "worker";
  switch (contract.status) {
    case "created":
      return {
        text: byWorker ? "A buyer can accept and pay the price" : "A worker can accept and post the stake",
        by: contract.matchDeadline,
        otherwise: byWorker ? "the stake is refunded to the worker" : "the price is refunded to the client",
      };
    case "matched":
      return {
        text: "The worker delivers",
        by: contract.deliveryDeadline,
        otherwise: "the price is refunded to the client and the worker's stake is slashed",
      };
    case "under-review":
      return {
        text: "The client approves or disputes",
        by: contract.reviewDeadline,
        otherwise: "the delivery counts as approved",
      };
    case "disputed":
      return { text: "Backup Agents vote on every criterion", by: null, otherwise: null };
    case "resolved":
      return { text: "The payout is pending", by: null, otherwise: null };
    default:
      return null;
  }
}

interface Deadline {
  name: string;
  at: string;
  /** The action that is possible until then. */
  until: string;
  /** Statuses in which the deadline is running. */
  counts: readonly Status[];
  /** The action that made the deadline irrelevant, if it was taken. */
  done?: string | undefined;
}

/** The deadlines and windows of a contract in chronological order, with the time left for each. */
export function Clock({ data }: { data: ContractPageData }) {
  const { contract, now } = data;
  return (
    <Region id="clock" title="Deadlines">
      <TimeBar contract={contract} now={now} />
      <ol class="clock">
        {deadlinesOf(data).map((deadline) => {
          const isAhead = secondsOf(deadline.at) > now;
          const isRunning = isAhead && deadline.counts.includes(contract.status);
          return (
            <li class={isRunning && deadline.counts !== ALWAYS ? "running" : undefined}>
              <span>
                <strong>{deadline.name}</strong> {deadline.until}
              </span>
              <span class="when">
                {deadline.done ??
                  (isAhead && !isRunning && hasEnded(data) ? (
                    "not needed"
                  ) : (
                    <TimeLeft at={deadline.at} now={now} />
                  ))}
                <small>
                  <Time at={deadline.at} />
                </small>
              </span>
            </li>
          );
        })}
      </ol>
    </Region>
  );
}

const hasEnded = ({ settlement }: ContractPageData): boolean => settlement.endedAt !== null;

/** Every status: for a window that stays open regardless of the contract's outcome. */
const ALWAYS: readonly Status[] = STATUSES;

function deadlinesOf({ contract, settlement, events }: ContractPageData): Deadline[] {
  const happened = (name: string) => events.find((event) => event.name === name);
  const disputed = happened("WorkingContractDisputed");
  const delivered = happened("WorkingContractDelivered") && "delivered";
  const list: Deadline[] = [
    {
      name: "Match",
      at: contract.matchDeadline,
      until: "to be accepted",
      counts: ["created"],
      done: happened("WorkingContractMatched") && "accepted",
    },
    {
      name: "Withdrawal",
      at: contract.withdrawalDeadline,
      until: "for the worker to withdraw",
      counts: ["matched"],
      done: happened("WorkingContractWithdrawn") ? "withdrawn" : delivered && "not needed",
    },
    {
      name: "Delivery",
      at: contract.deliveryDeadline,
      until: "for the worker to deliver",
      counts: ["matched"],
      done: delivered,
    },
    {
      name: "Review",
      at: contract.reviewDeadline,
      until: "for the client to approve or dispute",
      counts: ["under-review"],
      done: happened("WorkingContractApproved") ? "approved" : disputed && "disputed",
    },
  ];
  if (disputed !== undefined) {
    const at = isoTime(Number(disputed.args.votingClosesAt));
    list.push({ name: "Voting", at, until: "for Backup Agents to vote", counts: ["disputed"] });
  }
  if (settlement.heldUntil !== null) {
    const { heldUntil: at } = settlement;
    list.push({ name: "Payout hold", at, until: "before payouts are possible", counts: ["resolved"] });
  }
  if (contract.client !== null && contract.escrowedFunds !== null && contract.workerStake !== null) {
    const at = isoTime(secondsOf(contract.reviewDeadline) + LIMITS.complaintWindow);
    list.push({ name: "Complaints", at, until: "for either party to file a complaint", counts: ALWAYS });
  }
  return list.sort((a, b) => secondsOf(a.at) - secondsOf(b.at));
}

const BAR = 400;

/** A bar from posting to the review deadline, with deadlines as ticks. It is decorative: the list has the same times. */
function TimeBar({ contract, now }: { contract: ContractView; now: number }) {
  const start = secondsOf(contract.createdAt);
  const end = secondsOf(contract.reviewDeadline);
  const x = (at: number) => Math.round(Math.min(Math.max(at - start, 0) / (end - start), 1) * BAR);
  const ticks = [contract.matchDeadline, contract.withdrawalDeadline, contract.deliveryDeadline];
  const isClosed = (STATUS_GROUPS.closed as readonly Status[]).includes(contract.status);
  return (
    <svg class="timebar" viewBox={`-4 0 ${BAR + 8} 16`} aria-hidden="true">
      <rect class="track" x={0} y={6} width={BAR} height={4} rx={2} />
      <rect class={isClosed ? "elapsed closed" : "elapsed"} x={0} y={6} width={x(now)} height={4} rx={2} />
      {ticks.map((at) => (
        <rect class="tick" x={x(secondsOf(at)) - 1} y={2} width={2} height={12} />
      ))}
      {!isClosed && <circle class="hand" cx={x(now)} cy={8} r={4} />}
    </svg>
  );
}
