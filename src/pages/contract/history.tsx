/** The history of a contract: its events, votes, checkpoints and complaints. */
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { outcomeAt } from "@working-contracts/protocol/outcomes";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import type { Child } from "hono/jsx";
import type { ChainEvent } from "../../features/contracts/ledger.js";
import type { VoteView } from "../../features/votes/view.js";
import {
  AgentLink,
  Amount,
  Head,
  Json,
  OutcomeBadge,
  plural,
  Region,
  ScrollTable,
  secondsOf,
  Time,
  Transaction,
} from "../components.js";
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

/** The events of the contract, oldest first. */
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

/** The number of ballots while they are sealed, and every vote after the tally. Hidden if there was no dispute. */
export function Votes({ data: { contract, votes } }: { data: ContractPageData }) {
  const { id, disputeBond, acceptanceCriteria, backupAgents } = contract;
  if (disputeBond === null) return null;
  const isTallied = votes.data.some(({ majorityOutcome }) => majorityOutcome !== null);
  return (
    <Region id="votes" title="Votes">
      {!isTallied && (
        <p>
          {contract.status === "disputed"
            ? `${plural(backupAgents.length, "sealed ballot")} so far. All are opened after the voting window closes.`
            : "No one voted, so every criterion is unclear."}
        </p>
      )}
      {isTallied && (
        <ScrollTable label="Votes by Backup Agent and criterion">
          <Head
            columns={["Backup Agent", ...acceptanceCriteria.map((_, i) => `Criterion ${i + 1}`), "#Tokens"]}
          />
          <tbody>
            {ballotsOf(votes.data).map((ballot) => (
              <tr>
                <th scope="row">{ballot[0] && <AgentLink address={ballot[0].backupAgent} />}</th>
                {ballot.map(({ vote, bondOutcome }) => (
                  <td>
                    {vote === null ? "never opened" : <OutcomeBadge outcome={vote} />}
                    <small>bond {bondOutcome}</small>
                  </td>
                ))}
                <td class="number">{ballot.reduce((sum, { reward }) => sum + (reward ?? 0), 0)}</td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Majority</th>
              {acceptanceCriteria.map((_, i) => (
                <td>
                  <OutcomeBadge
                    outcome={votes.data.find((vote) => vote.criterionIndex === i)?.majorityOutcome ?? null}
                  />
                </td>
              ))}
              <td />
            </tr>
          </tfoot>
        </ScrollTable>
      )}
      {votes.nextCursor !== null && (
        <nav class="paging" aria-label="Ballots">
          <a href={`/contracts/${id}?${new URLSearchParams({ votes: votes.nextCursor })}#votes`}>
            Next ballots
          </a>
        </nav>
      )}
    </Region>
  );
}

/** Groups the votes by agent, in the order of the criteria. */
function ballotsOf(votes: VoteView[]): VoteView[][] {
  const byAgent = new Map<string, VoteView[]>();
  for (const vote of votes) {
    byAgent.set(vote.backupAgent, [...(byAgent.get(vote.backupAgent) ?? []), vote]);
  }
  return [...byAgent.values()];
}

/** Progress reports of the worker. */
export function Checkpoints({ data: { contract, checkpoints } }: { data: ContractPageData }) {
  const { data: list, nextCursor } = checkpoints;
  if (list.length === 0) return null;
  return (
    <Region id="checkpoints" title="Checkpoints">
      <p class="meta">Reported by the worker and not verified.</p>
      <ol class="records">
        {list.map((checkpoint) => (
          <li>
            <p>
              {checkpoint.fromSequence} to {checkpoint.toSequence}, <Time at={checkpoint.checkpointedAt} />
            </p>
            <Json
              summary="Data and proofs"
              value={{
                data: checkpoint.data,
                merkleRoot: checkpoint.merkleRoot,
                lastReceiptHash: checkpoint.lastReceiptHash,
                teeMeasurement: checkpoint.teeMeasurement,
                teeSignature: checkpoint.teeSignature,
              }}
            />
          </li>
        ))}
      </ol>
      {nextCursor !== null && (
        <nav class="paging" aria-label="Checkpoints">
          <a
            href={`/contracts/${contract.id}?${new URLSearchParams({ checkpoints: nextCursor })}#checkpoints`}
          >
            Later checkpoints
          </a>
        </nav>
      )}
    </Region>
  );
}

/** Complaints about conduct. They never move money. */
export function Complaints({ data: { complaints } }: { data: ContractPageData }) {
  if (complaints.length === 0) return null;
  return (
    <Region id="complaints" title="Complaints">
      <ol class="records">
        {complaints.map(({ filedByRole, status, filedAt, resolvedAt, resolutionNote, evidence }) => (
          <li>
            <p>
              Filed by the {filedByRole}, <Time at={filedAt} />: <strong>{status}</strong>
              {resolvedAt !== null && (
                <>
                  {" "}
                  since <Time at={resolvedAt} />
                </>
              )}
            </p>
            {resolutionNote !== null && (
              <p class="text" dir="auto">
                {resolutionNote}
              </p>
            )}
            <Json summary="Evidence" value={evidence} />
          </li>
        ))}
      </ol>
    </Region>
  );
}
