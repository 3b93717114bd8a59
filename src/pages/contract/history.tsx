/** The history of a contract: its events, votes, checkpoints and complaints. */
import { formatDecimal } from "@working-contracts/protocol/amounts";
import type { EscrowEventName } from "@working-contracts/protocol/events";
import { visibleText } from "@working-contracts/protocol/json";
import { outcomeAt } from "@working-contracts/protocol/outcomes";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import type { Child } from "hono/jsx";
import type { ChainEvent } from "../../features/contracts/ledger.js";
import type { VoteView } from "../../features/votes/view.js";
import {
  AgentLink,
  Amount,
  Json,
  OutcomeBadge,
  plural,
  Region,
  Rows,
  ScrollTable,
  say,
  secondsOf,
  Time,
  Transaction,
} from "../components.js";
import type { ContractPageData } from "./load.js";

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
              {event === null
                ? ", no transaction"
                : say`, ${<Transaction hash={event.transactionHash} block={event.blockNumber} />}`}
            </small>
          </li>
        ))}
      </ol>
    </Region>
  );
}

function entriesOf({ contract, events, settlement }: ContractPageData): Entry[] {
  const entries = events.map((event): Entry => {
    const text = EVENT_WORDS[event.name as EscrowEventName]?.(event.args, contract) ?? event.name;
    return { at: event.timestamp, text, event };
  });
  const { ending, endedAt } = settlement;
  const text = ending === null ? undefined : BY_THE_CLOCK[ending];
  if (text !== undefined && endedAt !== null) entries.push({ at: secondsOf(endedAt), text, event: null });
  return entries.sort((a, b) => a.at - b.at);
}

const amount = (value: unknown) => <Amount value={formatDecimal(BigInt(value as string))} />;
const agent = (value: unknown) => <AgentLink address={value as Address} />;

type Describe = (args: ChainEvent["args"], contract: ContractPageData["contract"]) => Child;

const EVENT_WORDS: Record<EscrowEventName, Describe> = {
  WorkingContractCreated: ({ deposit }, { initiator }) =>
    say`Posted by the ${initiator}, who locked ${amount(deposit)}.`,
  WorkingContractMatched: ({ counterparty, deposit }) =>
    say`Accepted by ${agent(counterparty)}, who locked ${amount(deposit)}.`,
  WorkingContractDeclined: () => "Declined by the agent it was offered to.",
  WorkingContractCancelled: () => "Cancelled by the initiator.",
  WorkingContractWithdrawn: () => "The worker withdrew.",
  WorkingContractDelivered: ({ deliveryHash }) =>
    say`The worker delivered. Hash of the delivery: ${<code class="whole">{String(deliveryHash)}</code>}`,
  WorkingContractApproved: () => "The client approved.",
  WorkingContractDisputed: ({ bond, votingClosesAt }) =>
    say`The client disputed and locked ${amount(bond)}. Voting until ${<Time at={isoTime(Number(votingClosesAt))} />}.`,
  BackupAgentsDrawn: ({ backupAgents }) => `${(backupAgents as string[]).length} Backup Agents were drawn.`,
  VoteSealed: ({ backupAgent, bond }) =>
    say`${agent(backupAgent)} cast a sealed vote and locked ${amount(bond)}.`,
  VoteOpened: ({ backupAgent }) => say`The ballot of ${agent(backupAgent)} was opened.`,
  WorkingContractTallied: ({ outcomes }, { acceptanceCriteria }) =>
    `The votes were tallied: ${acceptanceCriteria
      .map((_, i) => `${i + 1} ${outcomeAt(Number(outcomes), i) ?? "unclear"}`)
      .join(", ")}.`,
  WorkingContractSettled({ payout }) {
    const { client, worker, treasury } = payout as Record<"client" | "worker" | "treasury", string>;
    return say`Settled: ${amount(client)} to the client, ${amount(worker)} to the worker, ${amount(treasury)} to the treasury.`;
  },
  VoteClaimed: ({ backupAgent, amount: paid, reward }) =>
    say`${agent(backupAgent)} was paid ${amount(paid)}${reward === "0" ? "" : ` and ${reward} tokens`}.`,
  RewardDeferred: ({ backupAgent }) =>
    say`The token reward of ${agent(backupAgent)} was deferred by the daily cap.`,
  PayoutDeferred: ({ amount: refused, payee }) =>
    say`The token refused to pay ${amount(refused)} to ${agent(payee)}. The amount stays claimable.`,
  PayoutClaimed: ({ payee, amount: paid }) =>
    say`${agent(payee)} received ${amount(paid)} on a later attempt.`,
  DirectTransferCredited: ({ amount: sent, payer }) =>
    say`A direct transfer of ${amount(sent)} was credited to ${agent(payer)}.`,
  DirectTransferRefunded: ({ amount: sent, payer }) =>
    say`A direct transfer of ${amount(sent)} was refunded to ${agent(payer)}.`,
};

/** The number of ballots until the tally, and every vote after it. Hidden if there was no dispute. */
export function Votes({ data: { contract, votes, events } }: { data: ContractPageData }) {
  const { id, disputeBond, acceptanceCriteria, backupAgents } = contract;
  if (disputeBond === null) return null;
  const opened = events.filter(({ name }) => name === "VoteOpened").length;
  const isTallied = votes.data.some(({ majorityOutcome }) => majorityOutcome !== null);
  return (
    <Region id="votes" title="Votes">
      {!isTallied && (
        <p>
          {contract.status === "disputed"
            ? `${plural(backupAgents.length, "ballot")} so far, ${opened} of them opened. One that is not opened within a day after voting loses its bond.`
            : "No one voted, so every criterion is unclear."}
        </p>
      )}
      {isTallied && (
        <ScrollTable label="Votes by Backup Agent and criterion">
          <Rows
            headed
            columns={["Backup Agent", ...acceptanceCriteria.map((_, i) => `Criterion ${i + 1}`), "#Tokens"]}
            rows={ballotsOf(votes.data).map(([agent, ballot]) => [
              <AgentLink address={agent} />,
              ...ballot.map(({ vote, bondOutcome }) => (
                <>
                  {vote === null ? "never opened" : <OutcomeBadge outcome={vote} />}
                  <small>bond {bondOutcome}</small>
                </>
              )),
              ballot.reduce((sum, { reward }) => sum + (reward ?? 0), 0),
            ])}
          />
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
function ballotsOf(votes: VoteView[]): [Address, VoteView[]][] {
  const byAgent = new Map<Address, VoteView[]>();
  for (const vote of votes) byAgent.set(vote.backupAgent, [...(byAgent.get(vote.backupAgent) ?? []), vote]);
  return [...byAgent];
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
              {resolvedAt !== null && say` since ${<Time at={resolvedAt} />}`}
            </p>
            {resolutionNote !== null && (
              <p class="text" dir="auto">
                {visibleText(resolutionNote)}
              </p>
            )}
            <Json summary="Evidence" value={evidence} />
          </li>
        ))}
      </ol>
    </Region>
  );
}
