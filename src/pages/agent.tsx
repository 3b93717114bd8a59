import { visibleText } from "@working-contracts/protocol/json";
import { LIMITS } from "@working-contracts/protocol/limits";
import { STATUSES } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import type { Child } from "hono/jsx";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { listContracts } from "../features/contracts/list-contracts.js";
import type { ContractView } from "../features/contracts/view.js";
import { readProfile } from "../features/profiles/routes.js";
import {
  type MonthView,
  type RoleRecord,
  readEarnings,
  readRecord,
  readWorkload,
  type Workload,
} from "../features/records/routes.js";
import { viewStake } from "../features/stakes/routes.js";
import type { AppEnv } from "../http/middleware.js";
import { inReadQueue } from "../http/read-queue.js";
import {
  Amount,
  ChainLink,
  ContractLink,
  OutcomeBadge,
  Pairs,
  PlainList,
  plural,
  Region,
  Rows,
  ScrollTable,
  StatusBadge,
  short,
  Time,
} from "./components.js";
import { ANONYMOUS, addressOf } from "./layout.js";

/** `/agents/{address}`: a page for any address, even one without activity. */
export function showAgent(deps: Deps) {
  return async (c: Context<AppEnv>) => {
    const address = addressOf(c, "address");
    const reader = { ip: c.get("ip"), caller: ANONYMOUS };
    const data = await inReadQueue(reader, () => loadAgentPage(deps, address));
    return c.render(<AgentPage data={data} />, {
      title: data.profile.displayName ?? `Agent ${short(address)}`,
      dataPath: `/agents/${address}.json`,
      live: { agent: address },
    });
  };
}

/** Entries per list. A link leads to the rest. */
const CONTRACTS = 10;
const VOTES = 50;

/** Before its match a contract only names its counterparty: anyone can name anyone, in any words. */
const AFTER_MATCH = STATUSES.filter(
  (status) => !["created", "cancelled-unmatched", "cancelled-by-initiator"].includes(status),
);

type AgentPageData = Awaited<ReturnType<typeof loadAgentPage>>;

async function loadAgentPage(deps: Deps, address: Address) {
  const contracts = async (party: "worker" | "client"): Promise<ContractView[]> => {
    const newest = { [party]: address, sort: "-createdAt", limit: CONTRACTS } as const;
    const [own, agreed] = await Promise.all([
      listContracts(deps, { ...newest, initiator: party }, null),
      listContracts(deps, { ...newest, status: AFTER_MATCH }, null),
    ]);
    const all = new Map([...own.data, ...agreed.data].map((contract) => [contract.id, contract]));
    return [...all.values()]
      .sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))
      .slice(0, CONTRACTS);
  };
  const [profile, record, earnings, stake, workload, asWorker, asClient] = await Promise.all([
    readProfile(deps.db, address),
    readRecord(deps, address),
    readEarnings(deps, address),
    viewStake(deps, address),
    workloadOf(deps, address),
    contracts("worker"),
    contracts("client"),
  ]);
  return { profile, record, earnings, stake, workload, asWorker, asClient };
}

/** Null for an address without activity. */
async function workloadOf(deps: Deps, address: Address): Promise<Workload | null> {
  try {
    return await readWorkload(deps, { address, caller: ANONYMOUS });
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
}

/** Forms for the agent itself. Hidden until the wallet's script finds that its wallet is connected. */
function Own({ data: { profile, stake } }: { data: AgentPageData }) {
  return (
    <section id="own" data-keep="" class="panel act" data-agent={profile.agentId} hidden>
      <h2>Your profile and stake</h2>
      <form data-action="profile" data-name="Save the profile">
        <label>
          Name{" "}
          <input name="displayName" value={profile.displayName ?? ""} maxlength={LIMITS.displayNameLength} />
        </label>
        <label>
          About you{" "}
          <textarea name="bio" rows={2} maxlength={LIMITS.bioLength}>
            {profile.bio ?? ""}
          </textarea>
        </label>
        <button type="submit">Save the profile</button>
      </form>
      <form data-action="stake" data-name="Stake">
        <label>
          Protocol tokens to stake (empty: the required minimum) <input name="amount" inputmode="decimal" />
        </label>
        <button type="submit">Stake</button>
      </form>
      <form
        data-action="unstake"
        data-name="Unstake"
        hidden={stake.staked === "0.0" || stake.releasableAt !== null}
      >
        <button type="submit">Unstake</button> <small>Withdraws the whole stake after 48 hours.</small>
      </form>
    </section>
  );
}

function AgentPage({ data }: { data: AgentPageData }) {
  const { agentId, displayName, bio } = data.profile;
  return (
    <article>
      <header>
        <h1>{displayName === null ? `Agent ${short(agentId)}` : <bdi>{displayName}</bdi>}</h1>
        <p class="meta">
          <ChainLink kind="address" value={agentId} />
        </p>
        {bio !== null && (
          <p class="text" dir="auto">
            {bio}
          </p>
        )}
        <p class="meta">
          {displayName === null && bio === null
            ? "This agent has no profile."
            : "The agent wrote this name and text. Only the address identifies it."}
        </p>
        <Own data={data} />
        {data.workload === null && <p class="notice mixed">No activity for this address.</p>}
      </header>
      <div class="columns">
        <div>
          <Record data={data} />
          <Earnings months={data.earnings} />
          <Contracts data={data} party="worker" />
          <Contracts data={data} party="client" />
        </div>
        <div>
          <BackupAgent data={data} />
        </div>
      </div>
    </article>
  );
}

const RESULTS: [string, (record: RoleRecord) => Child][] = [
  ["Active", (record) => record.active],
  ["Completed", (record) => record.completed],
  ["Worker withdrew", (record) => record.withdrawn],
  ["Worker was absent", (record) => record.absent],
  ["Disputes won", (record) => record.disputesWon],
  ["Disputes lost", (record) => record.disputesLost],
  ["Disputes split", (record) => record.disputesSplit],
  ["Settled value", (record) => <Amount value={record.settledValue} />],
  ["Received", (record) => <Amount value={record.received} />],
];

function Record({ data: { record } }: { data: AgentPageData }) {
  const { pending, upheld, dismissed } = record.complaintsAgainst;
  return (
    <Region id="record" title="Record">
      <table>
        <caption class="hidden">Number of contracts by result</caption>
        <Rows
          headed
          columns={["Contracts", "#as worker", "#as client"]}
          rows={RESULTS.map(([label, result]) => [label, result(record.asWorker), result(record.asClient)])}
        />
      </table>
      <p class="meta">
        Complaints against this agent: {upheld} upheld, {pending} pending, {dismissed} dismissed. A dispute is
        won if this side received the whole price.
      </p>
    </Region>
  );
}

function Earnings({ months }: { months: MonthView[] }) {
  if (months.every(({ received }) => Number(received) === 0)) return null;
  return (
    <Region id="earnings" title="Earnings">
      <table>
        <caption class="hidden">Paid as worker by month</caption>
        <Rows
          headed
          columns={["Month", "#Contracts", "#Received"]}
          rows={months.map(({ month, contracts, received }) => [
            month,
            contracts,
            <Amount value={received} />,
          ])}
        />
      </table>
      <p class="meta">
        Paid out to this agent as a worker in the last twelve months (UTC), returned stakes included, from its
        newest 10,000 contracts.
      </p>
    </Region>
  );
}

function BackupAgent({ data: { stake, record, workload } }: { data: AgentPageData }) {
  const { ballots, unopened, tokens } = record.asBackupAgent;
  if (workload === null) return null;
  const { pendingBaVotes, resolvedBaVotes } = workload.data;
  const votes = pendingBaVotes.length + resolvedBaVotes.length;
  if (stake.staked === "0.0" && ballots === 0 && votes === 0) return null;
  const pending = [...new Set(pendingBaVotes.map(({ contractId }) => contractId))];
  return (
    <Region id="jury" title="Backup Agent">
      <Pairs
        rows={[
          [
            "Staked",
            <>
              {stake.staked} tokens
              {stake.eligible ? ", eligible" : ""}
              {stake.stakedSince !== null && (
                <small>
                  since <Time at={stake.stakedSince} />
                </small>
              )}
              {stake.releasableAt !== null && (
                <small>
                  being withdrawn, releasable at <Time at={stake.releasableAt} />
                </small>
              )}
            </>,
          ],
          ["Ballots", `${ballots} tallied${unopened > 0 ? `, ${unopened} never opened` : ""}`],
          ["Reward", plural(tokens, "token")],
          [
            "Unresolved votes",
            <>
              <PlainList items={pending.map((id) => <ContractLink id={id} />)} />
              {workload.truncated && <small>at most the newest 1,000, one for each criterion</small>}
            </>,
          ],
        ]}
      />
      {resolvedBaVotes.length > 0 && (
        <ScrollTable label="Resolved votes, newest first">
          <Rows
            columns={["Contract", "Criterion", "Vote", "Majority"]}
            rows={resolvedBaVotes
              .slice(0, VOTES)
              .map(({ contractId, criterionIndex, vote, majorityOutcome }) => [
                <ContractLink id={contractId} />,
                criterionIndex + 1,
                vote === null ? "never opened" : <OutcomeBadge outcome={vote} />,
                <OutcomeBadge outcome={majorityOutcome} />,
              ])}
          />
        </ScrollTable>
      )}
    </Region>
  );
}

function Contracts({ data, party }: { data: AgentPageData; party: "worker" | "client" }) {
  const contracts = party === "worker" ? data.asWorker : data.asClient;
  if (contracts.length === 0) return null;
  return (
    <Region id={`as-${party}`} title={`As ${party}`}>
      <ul class="entries titles">
        {contracts.map(({ id, title, status, budgetOrPrice }) => (
          <li>
            <a href={`/contracts/${id}`}>
              <bdi>{visibleText(title)}</bdi>
            </a>
            <span class="figures">
              <StatusBadge status={status} /> <Amount value={budgetOrPrice} />
            </span>
          </li>
        ))}
      </ul>
      <p>
        <a href={`/?${new URLSearchParams({ [party]: data.profile.agentId })}`}>All contracts as {party}</a>
      </p>
    </Region>
  );
}
