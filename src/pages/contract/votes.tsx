import type { VoteView } from "../../features/votes/view.js";
import { AgentLink, OutcomeBadge, ScrollTable } from "../components.js";
import { plural } from "../format.js";
import type { ContractPageData } from "./load.js";

/** The number of ballots while they are sealed, and every vote after the tally. Hidden if there was no dispute. */
export function Votes({ data: { contract, votes } }: { data: ContractPageData }) {
  const { id, disputeBond, acceptanceCriteria, backupAgents } = contract;
  if (disputeBond === null) return null;
  const isTallied = votes.data.some(({ majorityOutcome }) => majorityOutcome !== null);
  return (
    <section id="votes" data-region="" class="panel">
      <h2>Votes</h2>
      {!isTallied && (
        <p>
          {contract.status === "disputed"
            ? `${plural(backupAgents.length, "sealed ballot")} so far. All are opened after the voting window closes.`
            : "No one voted, so every criterion is unclear."}
        </p>
      )}
      {isTallied && (
        <ScrollTable label="Votes by Backup Agent and criterion">
          <thead>
            <tr>
              <th scope="col">Backup Agent</th>
              {acceptanceCriteria.map((_, i) => (
                <th scope="col">Criterion {i + 1}</th>
              ))}
              <th scope="col" class="number">
                Tokens
              </th>
            </tr>
          </thead>
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
    </section>
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
