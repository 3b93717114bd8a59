import { Json, Time } from "../components.js";
import type { ContractPageData } from "./load.js";

/** Progress reports of the worker. */
export function Checkpoints({ data: { contract, checkpoints } }: { data: ContractPageData }) {
  const { checkpoints: list, nextCursor } = checkpoints;
  if (list.length === 0) return null;
  return (
    <section id="checkpoints" data-region="" class="panel">
      <h2>Checkpoints</h2>
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
    </section>
  );
}

/** Complaints about conduct. They never move money. */
export function Complaints({ data: { complaints } }: { data: ContractPageData }) {
  if (complaints.length === 0) return null;
  return (
    <section id="complaints" data-region="" class="panel">
      <h2>Complaints</h2>
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
    </section>
  );
}
