/** Everything that a contract's page shows, from the services behind the API's routes. */

import type { Address } from "../../protocol/types.js";
import { listCheckpoints } from "../../services/checkpoints/list-checkpoints.js";
import { listComplaints } from "../../services/complaints/list-complaints.js";
import { getLedger } from "../../services/contracts/get-ledger.js";
import { getSettlement } from "../../services/contracts/get-settlement.js";
import { getTerms } from "../../services/contracts/get-terms.js";
import { readTimeline } from "../../services/contracts/read-timeline.js";
import { viewContract } from "../../services/contracts/view.js";
import type { Deps } from "../../services/deps.js";
import { readProfile } from "../../services/profiles/read-profile.js";
import { listVotes } from "../../services/votes/list-votes.js";
import { NOBODY } from "../nobody.js";

const VOTES = 200;
const CHECKPOINTS = 20;

/** Places in the page's own lists. */
export interface ContractPageQuery {
  votes?: string | undefined;
  checkpoints?: string | undefined;
}

/** Throws 404, and 400 for a cursor of another list. */
export async function loadContractPage(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment">,
  id: Address,
  cursors: ContractPageQuery,
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
      // Whole ballots: a page never ends amid an agent's votes.
      listVotes(deps, NOBODY, {
        contractId: id,
        limit: Math.floor(VOTES / criteria) * criteria,
        cursor: cursors.votes,
      }),
      listCheckpoints(db, { contractId: id, limit: CHECKPOINTS, cursor: cursors.checkpoints }),
      listComplaints(db, { contractId: id }),
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
    complaints: complaints.complaints,
    names: { client: clientName, worker: workerName },
    now: deps.clock.now(),
  };
}

export type ContractPageData = Awaited<ReturnType<typeof loadContractPage>>;
