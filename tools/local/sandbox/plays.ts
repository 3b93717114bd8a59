/** Scripted counterparties: agents like any other, over HTTP and with their own keys. Each plays one part. */
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { type Agent, connect } from "@working-contracts/client/connect";
import type { Status } from "@working-contracts/client/types";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { localAccount } from "../network.js";
import type { Faucet, Script } from "./sandbox.js";

export interface Play {
  id: string;
  role: Script["role"];
  addresses: string[];
  contractId: string | null;
  state: "playing" | "done" | "failed";
  /** Its steps so far. If it failed, the last step is the reason. */
  steps: string[];
}

/** Plays kept in memory; older ones are dropped. */
const MAX_PLAYS = 100;
const FUNDS = "1000000";
const JURY_TOKENS = "1000";
/** Local accounts reserved for the jury, so that a restart finds the same one. */
const JURORS = [20, 21, 22];
/** Polls slowly enough for one agent to play several parts at once within its rate limit. */
const WAIT = { timeoutMs: 30 * 60_000, intervalMs: 1000 };

/** Resolves once the counterparty knows its part; the result performs the rest of it. */
type Part<R extends Script["role"]> = (
  play: Play,
  script: Extract<Script, { role: R }>,
) => Promise<() => Promise<void>>;

export function createPlays({ baseUrl, faucet }: { baseUrl: string; faucet: Faucet }) {
  const stopping = new AbortController();
  const plays = new Map<string, Play>();
  let jury: Promise<Agent[]> | undefined;

  const signIn = (account: Parameters<typeof connect>[0]["account"], label: string): Promise<Agent> =>
    connect({
      baseUrl,
      account,
      label,
      // The sandbox moves the chain's clock.
      clock: "service",
      operator: "all",
      spendingLimit: { perCall: FUNDS, stake: JURY_TOKENS },
      signal: stopping.signal,
    });
  const newcomer = async (label: string): Promise<Agent> => {
    const account = privateKeyToAccount(generatePrivateKey());
    await faucet({ address: account.address, usd: FUNDS });
    return signIn(account, label);
  };

  const summonJury = async (): Promise<Agent[]> => {
    const agents: Agent[] = [];
    for (const index of JURORS) {
      const account = localAccount(index);
      const agent = await signIn(account, "sandbox backup agent");
      const { eligible } = await agent.stakeOf(account.address);
      if (!eligible) {
        await faucet({ address: account.address, usd: FUNDS, tokens: JURY_TOKENS });
        await agent.stake(JURY_TOKENS);
      }
      agents.push(agent);
    }
    // A stake counts only for contracts that are matched in a later second.
    await setTimeout(1_000);
    return agents;
  };
  const standingJury = (): Promise<Agent[]> => {
    jury ??= summonJury().catch((error: unknown) => {
      jury = undefined;
      throw error;
    });
    return jury;
  };

  const reach = (agent: Agent, contractId: string, status: Status) =>
    agent.waitFor(contractId, status, { ...WAIT, signal: stopping.signal });

  const beClient: Part<"client"> = async (play, { title, price, plan }) => {
    const agent = await newcomer("sandbox client");
    play.addresses.push(agent.address);
    const { id } = await agent.create({
      title,
      taskDescription: "Posted by the sandbox for an agent that wants to try the Worker's part.",
      acceptanceCriteria: ["It is delivered", "It is what the title says"],
      budgetOrPrice: price,
      ...(await agent.deadlines({ match: "1d", withdrawal: "2d", delivery: "3d", review: "4d" })),
    });
    play.contractId = id;
    play.steps.push("posted the contract");
    return async () => {
      await reach(agent, id, "under-review");
      play.steps.push("saw the delivery");
      if (plan !== "nothing") await agent[plan](id);
      play.steps.push({ approve: "approved", dispute: "disputed", nothing: "stays silent" }[plan]);
    };
  };

  const beWorker: Part<"worker"> = async (play, { contractId, plan }) => {
    const agent = await newcomer("sandbox worker");
    play.addresses.push(agent.address);
    play.contractId = contractId;
    return async () => {
      await agent.accept(contractId);
      play.steps.push("accepted");
      if (plan === "deliver") await agent.deliver(contractId, `ipfs://sandbox/${play.id}`);
      if (plan === "withdraw") await agent.withdraw(contractId);
      play.steps.push({ deliver: "delivered", withdraw: "withdrew", nothing: "delivers nothing" }[plan]);
    };
  };

  const beJury: Part<"backup-agents"> = async (play, { contractId, votes }) => {
    const agents = await standingJury();
    play.addresses.push(...agents.map(({ address }) => address));
    play.contractId = contractId;
    return async () => {
      for (const agent of agents) {
        await reach(agent, contractId, "disputed");
        await agent.vote(contractId, votes, { entrust: true });
        play.steps.push(`${agent.address} voted`);
      }
    };
  };

  const cast = (play: Play, script: Script): Promise<() => Promise<void>> => {
    if (script.role === "client") return beClient(play, script);
    if (script.role === "worker") return beWorker(play, script);
    return beJury(play, script);
  };

  return {
    /** Resolves once the counterparty's address and a client's contract id are known, or it has failed. */
    async begin(script: Script): Promise<Play> {
      const play: Play = {
        id: randomUUID(),
        role: script.role,
        addresses: [],
        contractId: null,
        state: "playing",
        steps: [],
      };
      const fail = (error: unknown): void => {
        play.state = "failed";
        play.steps.push(error instanceof Error ? error.message : String(error));
      };
      plays.set(play.id, play);
      for (const id of [...plays.keys()].slice(0, -MAX_PLAYS)) plays.delete(id);
      try {
        const perform = await cast(play, script);
        void perform().then(() => {
          play.state = "done";
        }, fail);
      } catch (error) {
        fail(error);
      }
      return play;
    },
    get: (id: string) => plays.get(id),
    /** Resolves once three Backup Agents are staked. They cannot vote on disputes that began earlier. */
    prepareJury: standingJury,
    stop: () => stopping.abort(),
  };
}
