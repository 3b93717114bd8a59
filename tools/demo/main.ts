/** Plays contracts with stock x402 clients, then checks every balance on chain; `-- --here` uses the running network. */

import { connect as connectClient } from "@working-contracts/client/index";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import type { Address } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { caller, signIn } from "../../test/support/agent.js";
import { DAY, ok } from "../../test/support/contracts.js";
import { until } from "../local/processes.js";
import { disputeStories, type Jury } from "./disputes.js";
import { connect, startOwnNetwork } from "./network.js";
import {
  type Agent,
  ALL_DEADLINES_AFTER,
  JUROR_BOND,
  type Played,
  STORIES,
  type Stage,
  type Strict,
} from "./stories.js";

const FUNDS = 1_000_000_000n;
const ELIGIBILITY_STAKE = "1000";
/** The table's amounts have six decimals; tokens are shown whole. */
const TOKEN_ROW_UNIT = 1_000_000n;
const SETTLEMENT_TIMEOUT_MS = 60_000;

interface Row {
  story: string;
  who: string;
  held: bigint;
  expected: bigint;
}

const isHere = process.argv.includes("--here");
if (!isHere) console.log("Starting a network for the demo.\n");
const own = isHere ? null : await startOwnNetwork();
const network = await connect(own?.dir).catch(async (error: Error) => {
  await own?.stop();
  console.error(error.message);
  process.exit(1);
});
const stage: Stage = {
  async newAgent(role) {
    const agent = await signIn({ url: network.baseUrl, chainId: network.deployment.chainId });
    await network.sandbox.give({ address: agent.address, usd: formatDecimal(FUNDS) });
    return { ...agent, name: role };
  },
  sandbox: network.sandbox,
  now: network.now,
  async newStrict(name) {
    const account = privateKeyToAccount(generatePrivateKey());
    await network.sandbox.give({ address: account.address, usd: formatDecimal(FUNDS) });
    const client = await connectClient({
      baseUrl: network.baseUrl,
      node: network.rpcUrl,
      account,
      clock: "service",
      spendingLimit: { perCall: "60", stake: ELIGIBILITY_STAKE },
    });
    const call = caller(network.baseUrl, { authorization: `Bearer ${client.apiKey}` });
    return { client, name, address: client.address as Address, get: (path) => call("GET", path) };
  },
  say: (story, line) => console.log(`${`[${story}]`.padEnd(27)} ${line}`),
};

const jury = await newJury();
const all = [...STORIES, ...disputeStories(jury)];
console.log(`Playing ${all.length} Working Contracts against ${network.baseUrl}\n`);
const treasuryBefore = await network.balanceOf(network.treasury);
const stories = await Promise.all(all.map((story) => story(stage)));
const disputes = stories.filter(({ story }) => story.startsWith("dispute"));

console.log("\nAdvancing the chain's clock by one day: the voting windows close\n");
await network.moveClockTo((await network.now()) + DAY);
await Promise.all(disputes.map((played) => played.afterVoting?.()));
await Promise.all(disputes.map(awaitStatus));

console.log("\nAdvancing it past every deadline: the absent Worker's and the silent Client's\n");
await network.moveClockTo((await network.now()) + ALL_DEADLINES_AFTER);
await Promise.all(stories.filter((played) => !disputes.includes(played)).map(awaitStatus));

const rows = (await Promise.all(stories.map(rowsOf))).flat();
rows.push({
  story: "all",
  who: "Treasury",
  held: (await network.balanceOf(network.treasury)) - treasuryBefore,
  expected: stories.reduce((sum, played) => sum + played.row.treasuryOut, 0n),
});
rows.push(...(await jurorRows()));
console.log();
console.table(
  rows.map(({ story, who, held, expected }) => ({
    story,
    who,
    holds: formatDecimal(held),
    ledger: formatDecimal(expected),
    differs: held === expected ? "" : "DIFFERS",
  })),
);

const wrong = rows.filter((row) => row.held !== row.expected);
if (wrong.length > 0) {
  console.error(`\n${wrong.length} of ${rows.length} balances differ from the ledger.`);
  process.exitCode = 1;
} else console.log(`\nAll ${rows.length} balances match the ledger to the unit.`);
await own?.stop();

async function newJury(): Promise<Jury> {
  const staked = async <T extends Agent | Strict>(agent: T, stake: (agent: T) => Promise<unknown>) => {
    await network.sandbox.give({ address: agent.address, tokens: ELIGIBILITY_STAKE });
    await stake(agent);
    stage.say("jury", `${agent.name} staked ${ELIGIBILITY_STAKE} tokens`);
    return agent;
  };
  const newJuror = async (letter: string): Promise<Agent> =>
    staked(await stage.newAgent(`Backup Agent ${letter}`), async (agent) =>
      ok(await agent.pay("/v1/agents/me/stake", {})),
    );
  const newStrictJuror = async (letter: string): Promise<Strict> =>
    staked(await stage.newStrict(`Backup Agent ${letter}`), ({ client }) => client.stake(ELIGIBILITY_STAKE));
  const [trusting, strict] = await Promise.all([
    Promise.all([..."ABC"].map(newJuror)),
    Promise.all([..."DEF"].map(newStrictJuror)),
  ]);
  return { trusting, strict };
}

/** Totals over all disputes: money, then tokens in the table's unit. */
async function jurorRows(): Promise<Row[]> {
  const rowsOfJuror = async (agent: Agent | Strict): Promise<Row[]> => {
    const dues = stories.flatMap(({ jurors }) =>
      jurors.filter((juror) => juror.agent === agent).map(({ due }) => due),
    );
    const bonds = BigInt(dues.length) * JUROR_BOND;
    const money = dues.reduce((sum, { out }) => sum + out, FUNDS - bonds);
    const tokens = dues.reduce((sum, due) => sum + due.tokens, 0n);
    return [
      { story: "jury", who: agent.name, held: await network.balanceOf(agent.address), expected: money },
      {
        story: "jury, tokens",
        who: agent.name,
        held: (await network.tokensOf(agent.address)) * TOKEN_ROW_UNIT,
        expected: tokens * TOKEN_ROW_UNIT,
      },
    ];
  };
  return (await Promise.all([...jury.trusting, ...jury.strict].map(rowsOfJuror))).flat();
}

/** Waits until the keeper has moved the contract to its final status. */
async function awaitStatus({ story, id, status, client, worker }: Played): Promise<void> {
  let last = "unread";
  const hasEnded = async () => {
    const reader = (client ?? worker) as Agent | Strict;
    const { data } = await reader.get<{ status: string }>(`/v1/contracts/${id}`);
    const booked = await network.bookedOf(id as Address);
    last = `${data.status} with ${formatDecimal(booked)} booked`;
    return data.status === status && booked === 0n;
  };
  await until(story, hasEnded, { timeoutMs: SETTLEMENT_TIMEOUT_MS, intervalMs: 250 }).catch(() => {
    throw new Error(`${story}: still ${last}, expected ${status}`);
  });
  stage.say(story, `ended as ${status}, escrow empty`);
}

async function rowsOf({ story, id, row, client, worker, ...others }: Played): Promise<Row[]> {
  const holders = [
    ...(client === null ? [] : [{ ...client, holds: FUNDS - row.clientIn + row.clientOut }]),
    ...(worker === null ? [] : [{ ...worker, holds: FUNDS - row.workerIn + row.workerOut }]),
    ...others.bystanders.map((agent) => ({ ...agent, holds: FUNDS })),
    ...others.counterparties,
    { name: "escrow", address: id as Address, holds: 0n },
  ];
  return Promise.all(
    holders.map(async ({ name, address, holds }) => ({
      story,
      who: name,
      held: await network.balanceOf(address),
      expected: holds,
    })),
  );
}
