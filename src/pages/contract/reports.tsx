import type { VoteView } from "../../features/votes/view.js";
import { AgentLink, Head, Json, OutcomeBadge, Region, ScrollTable, Time } from "../components.js";
import { plural } from "../format.js";
import type { ContractPageData } from "./load.js";

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
