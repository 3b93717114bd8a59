import { LIMITS } from "@working-contracts/protocol/limits";
import { complaintsCloseAt, STATUSES, type Status } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { PropsWithChildren } from "hono/jsx";
import type { ContractView } from "../../features/contracts/view.js";
import { Region, secondsOf, Time, TimeLeft } from "../components.js";
import type { ContractPageData } from "./load.js";

interface NextStep {
  /** The expected action and who takes it. */
  text: string;
  /** The deadline, if the contract itself sets one, and the consequence if it passes. */
  by?: string;
  otherwise?: string;
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
      return { text: "Backup Agents vote on every criterion, then open their votes" };
    case "resolved":
      return { text: "The payout is pending" };
    default:
      return null;
  }
}

/** Each deadline with the action that is possible until then, and the statuses in which it is running. */
const DEADLINES = {
  match: { name: "Match", until: "to be accepted", counts: ["created"] },
  withdrawal: { name: "Withdrawal", until: "for the worker to withdraw", counts: ["matched"] },
  delivery: { name: "Delivery", until: "for the worker to deliver", counts: ["matched"] },
  review: { name: "Review", until: "for the client to approve or dispute", counts: ["under-review"] },
  voting: { name: "Voting", until: "for Backup Agents to vote", counts: ["disputed"] },
  opening: { name: "Opening", until: "for Backup Agents to open their votes", counts: ["disputed"] },
  hold: { name: "Payout hold", until: "before payouts are possible", counts: STATUSES },
  complaints: { name: "Complaints", until: "for either party to file a complaint", counts: STATUSES },
} as const;

interface Deadline {
  kind: keyof typeof DEADLINES;
  at: string;
  /** The action that made the deadline irrelevant, if it was taken. */
  done?: string | undefined;
}

/** The deadlines and windows of a contract in chronological order, with the time left for each. */
export function Clock({ data }: { data: ContractPageData }) {
  const { contract, now } = data;
  const list = deadlinesOf(data);
  const voting = list.find(({ kind }) => kind === "voting");
  return (
    <Region id="clock" title="Deadlines">
      <ol
        class="clock"
        data-voting={voting && (voting.done || secondsOf(voting.at) <= now ? "over" : "open")}
      >
        {list.map(({ kind, at, done }) => {
          const { name, until, counts } = DEADLINES[kind];
          const isAhead = secondsOf(at) > now;
          const isRunning = isAhead && (counts as readonly Status[]).includes(contract.status);
          const isOver = isAhead && !isRunning && data.settlement.endedAt !== null;
          return (
            <li class={isRunning && !done && kind !== "complaints" ? "running" : undefined}>
              <span>
                <strong>{name}</strong> {until}
              </span>
              <span class="when">
                {done ?? (isOver ? "not needed" : <TimeLeft at={at} now={now} />)}
                <small>
                  <Time at={at} />
                </small>
              </span>
            </li>
          );
        })}
      </ol>
    </Region>
  );
}

function deadlinesOf({ contract, terms, settlement, events }: ContractPageData): Deadline[] {
  const happened = (name: string) => events.find((event) => event.name === name);
  const accepted = happened("WorkingContractMatched") && "accepted";
  const disputed = happened("WorkingContractDisputed");
  const delivered = happened("WorkingContractDelivered") && "delivered";
  const withdrawn = happened("WorkingContractWithdrawn") ? "withdrawn" : delivered && "not needed";
  const reviewed = happened("WorkingContractApproved") ? "approved" : disputed && "disputed";
  const list: Deadline[] = [
    { kind: "match", at: contract.matchDeadline, done: accepted },
    { kind: "withdrawal", at: contract.withdrawalDeadline, done: withdrawn },
    { kind: "delivery", at: contract.deliveryDeadline, done: delivered },
    { kind: "review", at: contract.reviewDeadline, done: reviewed },
  ];
  if (disputed !== undefined) {
    const closesAt = Number(disputed.args.votingClosesAt);
    const { baRecruitCount: seats } = terms.escrowTerms.parameters;
    const isFull = seats > 0 && contract.backupAgents.length === seats;
    const tallied = happened("WorkingContractTallied") && "votes tallied";
    list.push({ kind: "voting", at: isoTime(closesAt), done: isFull ? "all have voted" : undefined });
    list.push({ kind: "opening", at: isoTime(closesAt + LIMITS.voteOpeningWindow), done: tallied });
  }
  const isHolding = settlement.legs.some(({ state }) => state === "held");
  if (settlement.heldUntil !== null && isHolding) list.push({ kind: "hold", at: settlement.heldUntil });
  if (contract.client !== null && contract.escrowedFunds !== null && contract.workerStake !== null) {
    const at = isoTime(complaintsCloseAt(secondsOf(contract.reviewDeadline)));
    list.push({ kind: "complaints", at });
  }
  return list.sort((a, b) => secondsOf(a.at) - secondsOf(b.at));
}

/** A step and the time left for it; `children` follow on the same line. */
export function Step({ step, now, children }: PropsWithChildren<{ step: NextStep | null; now: number }>) {
  if (step === null) return null;
  return (
    <p class="step">
      {step.text}
      {step.by !== undefined && (
        <>
          {": "}
          <TimeLeft at={step.by} now={now} />
        </>
      )}
      {children}
    </p>
  );
}
