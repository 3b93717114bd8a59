/** Loads an agent's page from the services behind the API's routes. */

import type { Address } from "@working-contracts/protocol/types";
import { AppError } from "../../errors.js";
import { listContracts } from "../../features/contracts/list-contracts.js";
import type { ContractView } from "../../features/contracts/view.js";
import { readProfile } from "../../features/profiles/profile.js";
import { readRecord } from "../../features/records/read-record.js";
import { readWorkload, type WorkloadView } from "../../features/records/read-workload.js";
import { type StakeDeps, viewStake } from "../../features/stakes/view.js";
import { listVotes } from "../../features/votes/list-votes.js";
import { NOBODY } from "../nobody.js";

/** Entries per list. A link leads to the rest. */
const CONTRACTS = 10;
const VOTES = 50;

export interface AgentPageData {
  profile: Awaited<ReturnType<typeof readProfile>>;
  record: Awaited<ReturnType<typeof readRecord>>;
  stake: Awaited<ReturnType<typeof viewStake>>;
  /** Null for an address without activity. */
  workload: WorkloadView | null;
  asWorker: ContractView[];
  asClient: ContractView[];
  votes: Awaited<ReturnType<typeof listVotes>>;
}

export async function loadAgentPage(deps: StakeDeps, address: Address): Promise<AgentPageData> {
  const contracts = async (party: { worker: Address } | { client: Address }): Promise<ContractView[]> =>
    (await listContracts(deps, { ...party, sort: "-createdAt", limit: CONTRACTS })).data;
  const [profile, record, stake, workload, asWorker, asClient, votes] = await Promise.all([
    readProfile(deps.db, address),
    readRecord(deps, address),
    viewStake(deps, address),
    workloadOf(deps, address),
    contracts({ worker: address }),
    contracts({ client: address }),
    listVotes(deps, NOBODY, { backupAgent: address, limit: VOTES }),
  ]);
  return { profile, record, stake, workload, asWorker, asClient, votes };
}

async function workloadOf(deps: StakeDeps, address: Address): Promise<WorkloadView | null> {
  try {
    return (await readWorkload(deps, { address, caller: NOBODY })).data;
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
}
