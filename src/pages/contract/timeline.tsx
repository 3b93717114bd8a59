import { formatDecimal } from "@working-contracts/protocol/amounts";
import { outcomeAt } from "@working-contracts/protocol/outcomes";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import type { Child } from "hono/jsx";
import type { ChainEvent } from "../../features/contracts/ledger.js";
import { AgentLink, Amount, Region, Time, Transaction } from "../components.js";
import { secondsOf } from "../format.js";
import type { ContractPageData } from "./load.js";

/** Endings caused by a deadline, without a transaction. */
const BY_THE_CLOCK: Record<string, string> = {
  unmatched: "The match deadline passed and no one had accepted.",
  absent: "The delivery deadline passed without a delivery.",
  "review-timeout": "The review deadline passed: the delivery counts as approved.",
};

interface Entry {
  /** Seconds since 1970. */
  at: number;
  text: Child;
  event: ChainEvent | null;
}

/** All events of the contract, oldest first. */
export function Timeline({ data }: { data: ContractPageData }) {
  return (
    <Region id="timeline" title="Timeline">
      <ol class="timeline">
        {entriesOf(data).map(({ at, text, event }) => (
          <li>
            <p>{text}</p>
            <small>
              <Time at={isoTime(at)} />
              {event === null ? (
                ", no transaction"
              ) : (
                <>
                  , <Transaction hash={event.transactionHash} block={event.blockNumber} />
                </>
              )}
            </small>
          </li>
        ))}
      </ol>
    </Region>
  );
}

function entriesOf({ contract, events, settlement }: ContractPageData): Entry[] {
  const entries = events.flatMap((event): Entry[] => {
    const text = describe(event, contract);
    return text === null ? [] : [{ at: event.timestamp, text, event }];
  });
  const { ending, endedAt } = settlement;
  const text = ending === null ? undefined : BY_THE_CLOCK[ending];
  if (text !== undefined && endedAt !== null) entries.push({ at: secondsOf(endedAt), text, event: null });
  return entries.sort((a, b) => a.at - b.at);
}

/** A sentence with components in it. */
const say = (words: TemplateStringsArray, ...parts: Child[]): Child => (
  <>{words.flatMap((word, i) => [word, parts[i] ?? ""])}</>
);

/** Describes an event in words, or returns null to omit it. */
function describe(
  { name, args }: ChainEvent,
  { initiator, acceptanceCriteria }: ContractPageData["contract"],
): Child | null {
  const amount = (value: unknown) => <Amount value={formatDecimal(BigInt(value as string))} />;
  const agent = (value: unknown) => <AgentLink address={value as Address} />;
  switch (name) {
    case "WorkingContractCreated":
      return say`Posted by the ${initiator}, who locked ${amount(args.deposit)}.`;
    case "WorkingContractMatched":
      return say`Accepted by ${agent(args.counterparty)}, who locked ${amount(args.deposit)}.`;
    case "WorkingContractDeclined":
      return "Declined by the agent it was offered to.";
    case "WorkingContractCancelled":
      return "Cancelled by the initiator.";
    case "WorkingContractWithdrawn":
      return "The worker withdrew.";
    case "WorkingContractDelivered":
      return say`The worker delivered. Hash of the delivery: ${<code class="whole">{String(args.deliveryHash)}</code>}`;
    case "WorkingContractApproved":
      return "The client approved.";
    case "WorkingContractDisputed":
      return say`The client disputed and locked ${amount(args.bond)}. Voting until ${<Time at={isoTime(Number(args.votingClosesAt))} />}.`;
    case "BackupAgentsDrawn":
      return `${(args.backupAgents as string[]).length} Backup Agents were drawn.`;
    case "VoteSealed":
      return say`${agent(args.backupAgent)} cast a sealed vote and locked ${amount(args.bond)}.`;
    case "VoteOpened":
      return say`The ballot of ${agent(args.backupAgent)} was opened.`;
    case "WorkingContractTallied":
      return `The votes were tallied: ${acceptanceCriteria
        .map((_, i) => `${i + 1} ${outcomeAt(Number(args.outcomes), i) ?? "unclear"}`)
        .join(", ")}.`;
    case "WorkingContractSettled": {
      const payout = args.payout as Record<"client" | "worker" | "treasury", string>;
      return say`Settled: ${amount(payout.client)} to the client, ${amount(payout.worker)} to the worker, ${amount(payout.treasury)} to the treasury.`;
    }
    case "VoteClaimed": {
      const reward = String(args.reward);
      return say`${agent(args.backupAgent)} was paid ${amount(args.amount)}${reward === "0" ? "" : ` and ${reward} tokens`}.`;
    }
    case "RewardDeferred":
      return say`The token reward of ${agent(args.backupAgent)} was deferred by the daily cap.`;
    case "PayoutDeferred":
      return say`The token refused to pay ${amount(args.amount)} to ${agent(args.payee)}. The amount stays claimable.`;
    case "PayoutClaimed":
      return say`${agent(args.payee)} received ${amount(args.amount)} on a later attempt.`;
    case "DirectTransferCredited":
      return say`A direct transfer of ${amount(args.amount)} was credited to ${agent(args.payer)}.`;
    case "DirectTransferRefunded":
      return say`A direct transfer of ${amount(args.amount)} was refunded to ${agent(args.payer)}.`;
    default:
      return name;
  }
}
