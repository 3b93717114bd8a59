/** Agents that use the published client. */
import { type Agent, type ConnectOptions, connect } from "@working-contracts/client/index";
import type { Address } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { laterThan } from "./contracts.js";
import type { World } from "./world.js";

const TEXT = {
  title: "Summarise a paper",
  taskDescription: "One page.",
  acceptanceCriteria: ["One page"],
  budgetOrPrice: 50,
};

export type AgentOptions = Partial<ConnectOptions> & { usd?: string };

/** Signs in with the given account, or a fresh one, that gets test dollars. Pays up to 60 dollars a call. */
export async function newAgent(world: World, { usd = "200", ...given }: AgentOptions = {}): Promise<Agent> {
  const { account = privateKeyToAccount(generatePrivateKey()) } = given;
  if (usd !== "0") await world.fundUsd(account.address as Address, usd);
  const spendingLimit = { perCall: "60", stake: "1000" };
  return connect({ baseUrl: world.url, account, spendingLimit, ...given } as ConnectOptions);
}

/** Stakes enough to vote on contracts that are matched from now on: `amount` tokens, by default what it takes. */
export async function makeJuror<A extends Agent>(world: World, agent: A, amount?: string): Promise<A> {
  await world.grantTokens(agent.address as Address, 1000);
  const stake = await agent.stake(amount);
  expect(stake).toMatchObject({ staked: "1000.0", eligible: true });
  await laterThan(world, stake.stakedSince as string);
  return agent;
}

/** A draft, in the client's form. */
export async function draftOf(agent: Agent, text: Partial<typeof TEXT> = {}) {
  const deadlines = { match: "1h", withdrawal: "1d", delivery: "2d", review: "3d" } as const;
  return { ...TEXT, ...text, ...(await agent.deadlines(deadlines)) };
}

/** The service as an attacker between it and the agent would show it. */
export function lying(change: (url: URL, response: Response) => Response | Promise<Response>): typeof fetch {
  return async (input, init) => change(new URL(String(input)), await fetch(input, init));
}

/** A service that changes `data` of its responses at these paths. */
export const changing = <T>(path: RegExp, change: (data: T) => T): typeof fetch =>
  lying(async ({ pathname }, response) => {
    if (!path.test(pathname)) return response;
    return Response.json({ data: change(((await response.json()) as { data: T }).data) });
  });
