import { LIMITS } from "../../protocol/limits.js";
import { STATUS_GROUPS, type Status } from "../../protocol/status.js";
import type { ContractView } from "../../services/contracts/view.js";
import { isoTime } from "../../services/contracts/view.js";
import { Time, TimeLeft } from "../components.js";
import { secondsOf } from "../format.js";
import type { ContractPageData } from "./load.js";

interface Deadline {
  name: string;
  at: string;
  /** What may be done until then. */
  until: string;
  /** Statuses in which it is this deadline that counts. */
  counts: readonly Status[];
}

/** The deadlines and windows of a contract in the order of time, with what is left of each. */
export function Clock({ data }: { data: ContractPageData }) {
  const { contract, now } = data;
  const deadlines = deadlinesOf(data);
  return (
    <section id="clock" data-region="" class="panel">
      <h2>Deadlines</h2>
      <TimeBar contract={contract} now={now} />
      <ol class="clock">
        {deadlines.map(({ name, at, until, counts }) => {
          const isRunning = counts.includes(contract.status) && secondsOf(at) > now;
          return (
            <li class={isRunning ? "running" : undefined}>
              <span class="what">
                <strong>{name}</strong> {until}
              </span>
              <span class="when">
                <TimeLeft at={at} now={now} />
                <small>
                  <Time at={at} />
                </small>
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function deadlinesOf({ contract, settlement, events }: ContractPageData): Deadline[] {
  const list: Deadline[] = [
    { name: "Match", at: contract.matchDeadline, until: "to be accepted", counts: ["created"] },
    {
      name: "Withdrawal",
      at: contract.withdrawalDeadline,
      until: "for the worker to step back",
      counts: ["matched"],
    },
    {
      name: "Delivery",
      at: contract.deliveryDeadline,
      until: "for the worker to deliver",
      counts: ["matched"],
    },
    {
      name: "Review",
      at: contract.reviewDeadline,
      until: "for the client to approve or dispute",
      counts: ["under-review"],
    },
  ];
  const disputed = events.find(({ name }) => name === "WorkingContractDisputed");
  if (disputed !== undefined) {
    const at = isoTime(Number(disputed.args.votingClosesAt));
    list.push({ name: "Voting", at, until: "for Backup Agents to vote", counts: ["disputed"] });
  }
  if (settlement.heldUntil !== null) {
    const { heldUntil: at } = settlement;
    list.push({ name: "Payout hold", at, until: "before anybody may pay out", counts: ["resolved"] });
  }
  if (contract.client !== null && contract.worker !== null && contract.workerStake !== null) {
    const at = isoTime(secondsOf(contract.reviewDeadline) + LIMITS.complaintWindow);
    list.push({ name: "Complaints", at, until: "for either party to file one", counts: [] });
  }
  return list.sort((a, b) => secondsOf(a.at) - secondsOf(b.at));
}

const BAR = 400;

/** From posting to the review deadline: the deadlines as ticks, the elapsed part filled. Words follow in the list. */
function TimeBar({ contract, now }: { contract: ContractView; now: number }) {
  const start = secondsOf(contract.createdAt);
  const end = secondsOf(contract.reviewDeadline);
  const x = (at: number) =>
    Math.round((Math.min(Math.max(at - start, 0) / (end - start), 1) * BAR * 10) / 10);
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
