/** Agents with random lives: they post, accept, deliver, dispute and leave contracts, and try what is not allowed. */
import { setTimeout as delay } from "node:timers/promises";
import { onChain } from "@working-contracts/client/index";
import { protocolTokenAbi } from "@working-contracts/protocol/abi";
import type { Status } from "@working-contracts/protocol/status";
import { type Address, encodeFunctionData, parseEther } from "viem";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { Cluster } from "../../test/faults/support/cluster.js";
import type { Customers } from "../../test/faults/support/customers.js";
import type { Agent, ApiResponse } from "../../test/support/agent.js";
import type { Chance } from "../../test/support/random.js";

export interface Life {
  cluster: Cluster;
  customers: Customers;
  agents: Agent[];
  /** Every created contract, as last seen. */
  board: Map<string, ContractView>;
  /** Counts responses by call and status or error code. */
  answers: Map<string, number>;
  /** Responses that must not occur, in words. */
  surprises: string[];
}

/** Tokens that make an agent eligible to vote (the deployment's `baEligibilityStake`). */
export const ELIGIBILITY_STAKE = 1000n;
const STAKED_SHARE = 2;
const HOUR = 3600;
/** Expected refusals of a random action: wrong state, role or body, missing money, attempts left unpaid. */
const EXPECTED = new Set([400, 402, 403, 404, 409, 429]);

const isStaked = (_: Agent, index: number): boolean => index % STAKED_SHARE === 0;

/** Stakes protocol tokens for every second agent, on chain, without the service. */
export async function stakeSome({ cluster, agents }: Life): Promise<void> {
  const { protocolToken } = cluster.deployment;
  const amount = parseEther(String(ELIGIBILITY_STAKE));
  for (const { account, address } of agents.filter(isStaked)) {
    await cluster.ownerCall({
      to: protocolToken,
      data: encodeFunctionData({ abi: protocolTokenAbi, functionName: "grant", args: [address, amount] }),
    });
    await cluster.testClient.setBalance({ address, value: parseEther("1") });
    const own = await onChain({ rpcUrl: cluster.node.rpcUrl, account, network: cluster.deployment });
    await own.stake(String(ELIGIBILITY_STAKE));
  }
}

/** An agent with its own randomness, so that the pace of other agents does not change its choices. */
interface Actor {
  agent: Agent;
  chance: Chance;
}

/** Lets one agent act until `signal` aborts. Its last action is completed. */
export async function live(life: Life, actor: Actor, signal: AbortSignal): Promise<void> {
  const { chance } = actor;
  while (!signal.aborted) {
    try {
      const target = chance.hits(0.3) ? undefined : chooseContract(life, chance);
      if (target === undefined) await post(life, actor);
      else await act(life, actor, target);
    } catch (error) {
      life.surprises.push((error as Error).message.slice(0, 300));
    }
    // Otherwise an agent in demand would exceed the limit on writes on a fast machine.
    await delay(chance.between(500, 3000), undefined, { signal }).catch(() => {});
  }
}

function chooseContract({ board }: Life, chance: Chance): ContractView | undefined {
  const open = [...board.values()].filter(({ status }) => !/^(settled|cancelled)-/.test(status));
  // Prefers young contracts, which still have something ahead.
  return open.length === 0 ? undefined : open[open.length - 1 - Math.floor(chance.next() ** 2 * open.length)];
}

async function post(life: Life, { agent, chance }: Actor): Promise<void> {
  const { customers, agents, board } = life;
  const other = chance.pick(agents.filter(({ address }) => address !== agent.address)).address;
  const isListing = chance.hits(0.25);
  const isDirect = !isListing && chance.hits(0.4);
  const criteria = chance.between(1, 4);
  const now = await life.cluster.chainTime();
  const at = (seconds: number) => new Date((now + seconds) * 1000).toISOString();
  const match = chance.between(HOUR, 6 * HOUR);
  const withdrawal = match + chance.between(0, 6 * HOUR);
  const delivery = withdrawal + chance.between(0, 6 * HOUR);
  const draft = await customers.draft({
    budgetOrPrice: chance.pick(["0.01", "1", "12.345678", "50", "1000.000001"]),
    acceptanceCriteria: Array.from({ length: criteria }, (_, i) => `Criterion ${i + 1}`),
    ...(isListing && { initiator: "worker", ...(chance.hits(0.3) && { client: other }) }),
    ...(isDirect ? { awardMethod: "direct_award", worker: other } : {}),
    ...(chance.hits(0.2) && {
      application: "usageticket",
      applicationTerms: { criteria: [{ metric: "tokens", op: ">=", target: 10 }] },
    }),
    matchDeadline: at(match),
    withdrawalDeadline: at(withdrawal),
    deliveryDeadline: at(delivery),
    reviewDeadline: at(delivery + chance.between(HOUR, 6 * HOUR)),
  });
  const response = note(life, "create", await customers.pay(agent, "/v1/contracts", draft));
  if (response.status === 200) board.set(response.data.id, response.data);
}

const ACTIONS = [
  ...(["accept", "decline", "cancel", "deliver", "withdraw", "approve"] as const),
  ...(["dispute", "vote", "checkpoint", "complain", "read"] as const),
] as const;
type Action = (typeof ACTIONS)[number];

/** Weights of sensible actions by status. Occasionally an agent tries something else. */
const SENSIBLE: Partial<Record<Status, Partial<Record<Action, number>>>> = {
  created: { accept: 8, decline: 1, cancel: 1, read: 1 },
  matched: { deliver: 8, withdraw: 1, checkpoint: 3, complain: 1 },
  "under-review": { approve: 5, dispute: 4, complain: 1 },
  disputed: { vote: 9, read: 1 },
};

async function act(life: Life, { agent: someone, chance }: Actor, seen: ContractView): Promise<void> {
  const { board } = life;
  const isOdd = chance.hits(0.1);
  const what = isOdd ? chance.pick(ACTIONS) : chance.weighted<Action>(SENSIBLE[seen.status] ?? { read: 1 });
  const agent = isOdd ? someone : (actorOf(life, seen, { what, chance }) ?? someone);
  await perform(life, { agent, chance }, seen, what);
  const { data, status } = await life.customers.read(agent, seen.id);
  if (status === 200) board.set(data.id, data);
}

/** An agent that is allowed to do it; undefined if that can be any agent. */
function actorOf(
  { agents }: Life,
  seen: ContractView,
  { what, chance }: { what: Action; chance: Chance },
): Agent | undefined {
  const party = (address: Address | null) => agents.find((agent) => agent.address === address);
  if (what === "cancel") return party(seen.initiator === "worker" ? seen.worker : seen.client);
  if (what === "deliver" || what === "withdraw" || what === "checkpoint") return party(seen.worker);
  if (what === "approve" || what === "dispute" || what === "complain") return party(seen.client);
  if (what === "accept" || what === "decline")
    return seen.initiator === "client" ? party(seen.worker) : undefined;
  if (what === "vote") {
    const voters = agents
      .filter(isStaked)
      .filter(({ address }) => address !== seen.client && address !== seen.worker);
    return voters.length === 0 ? undefined : chance.pick(voters);
  }
  return undefined;
}

async function perform(
  life: Life,
  { agent, chance }: Actor,
  { id, acceptanceCriteria }: ContractView,
  what: Action,
): Promise<void> {
  const { customers } = life;
  const act = (path: string, body?: unknown) => customers.act(agent, id, path, body);
  const answers: Record<Action, () => Promise<ApiResponse<ContractView>>> = {
    accept: () => customers.accept(agent, id),
    decline: () => act("accept", { accept: false }),
    cancel: () => act("cancel"),
    deliver: () => act("delivery", { delivery: `ipfs://${id}` }),
    withdraw: () => act("withdraw"),
    approve: () => act("approve"),
    dispute: () => customers.pay(agent, `/v1/contracts/${id}/dispute`, ""),
    vote() {
      const vote = () => chance.pick(["met", "not met", "unclear"]);
      const votes = acceptanceCriteria.map((_, criterionIndex) => ({ criterionIndex, vote: vote() }));
      return customers.pay(agent, `/v1/contracts/${id}/votes`, { votes });
    },
    checkpoint: async () => act("checkpoint", await checkpoint(life, { agent, chance }, id)),
    complain: () => act("complaints", { evidence: { seen: "late" } }),
    read: () => customers.read(agent, id),
  };
  note(life, what, await answers[what]());
}

async function checkpoint(
  { cluster, customers: { attempt, insist } }: Life,
  { agent, chance }: Actor,
  id: string,
): Promise<unknown> {
  const path = `/v1/contracts/${id}/checkpoints`;
  const { body } = await insist(() => attempt(agent, path, "", {}, "GET"));
  // A reorg can have removed the contract.
  const earlier = (body as unknown as { data?: { toSequence: number }[] }).data ?? [];
  const fromSequence = (earlier.at(-1)?.toSequence ?? 0) + 1;
  return {
    fromSequence,
    toSequence: fromSequence + chance.between(0, 5),
    merkleRoot: "root",
    lastReceiptHash: "receipt",
    teeMeasurement: "measurement",
    teeSignature: "signature",
    checkpointedAt: new Date((await cluster.chainTime()) * 1000 + chance.between(0, 999)).toISOString(),
    data: { tokens: chance.between(0, 20) },
  };
}

function note(life: Life, what: string, response: ApiResponse<ContractView>): ApiResponse<ContractView> {
  const { status, error } = response;
  const key = `${what} ${status < 400 ? status : `${status} ${error?.code ?? ""}`.trim()}`;
  life.answers.set(key, (life.answers.get(key) ?? 0) + 1);
  if (status >= 300 && !EXPECTED.has(status)) life.surprises.push(`${key}: ${error?.message ?? ""}`);
  return response;
}
