/** Loads a contract's page from the features behind the API's routes. */

import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { listCheckpoints } from "../../features/checkpoints/routes.js";
import { listComplaints } from "../../features/complaints/routes.js";
import { getTerms } from "../../features/contracts/get-terms.js";
import { getLedger, getSettlement, readTimeline } from "../../features/contracts/ledger.js";
import { viewContract } from "../../features/contracts/view.js";
import { readProfile } from "../../features/profiles/routes.js";
import { listVotes } from "../../features/votes/view.js";
import { ANONYMOUS } from "../layout.js";

const VOTES = 200;
const CHECKPOINTS = 20;

/** Throws 404 for an unknown contract and 400 for a cursor from another list. */
export async function loadContractPage(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment">,
  id: Address,
  cursors: { votes?: string | undefined; checkpoints?: string | undefined },
) {
  const { db } = deps;
  const contract = await viewContract(deps, id);
  const criteria = contract.acceptanceCriteria.length;
  const nameOf = async (agent: Address | null) => agent && (await readProfile(db, agent)).displayName;
  const [settlement, ledger, events, terms, votes, checkpoints, complaints, clientName, workerName] =
    await Promise.all([
      getSettlement(deps, id),
      getLedger(deps, id),
      readTimeline(db, id),
      getTerms(deps, id),
      // A multiple of the criteria, so a page never splits an agent's ballot.
      listVotes(deps, ANONYMOUS, {
        contractId: id,
        limit: Math.floor(VOTES / criteria) * criteria,
        cursor: cursors.votes,
      }),
      listCheckpoints(db, {
        by: { contractId: id, worker: contract.worker },
        limit: CHECKPOINTS,
        cursor: cursors.checkpoints,
      }),
      listComplaints(db, id),
      nameOf(contract.client),
      nameOf(contract.worker),
    ]);
  return {
    contract,
    settlement,
    ledger,
    events,
    terms,
    votes,
    checkpoints,
    complaints: complaints.data,
    names: { client: clientName, worker: workerName },
    now: deps.clock.now(),
  };
}

export type ContractPageData = Awaited<ReturnType<typeof loadContractPage>>;
