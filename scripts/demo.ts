/**
 * Plays whole Working Contracts against the running service, over HTTP with unmodified x402 clients, then moves the
 * local chain's clock past every deadline and checks who holds what against the ledger, to the unit.
 */

import { formatDecimal } from "../src/protocol/amounts.js";
import { type Agent, signIn } from "./demo/agent.js";
import { connect, type Network } from "./demo/network.js";
import { ALL_DEADLINES_AFTER, type Played, STORIES, type Stage } from "./demo/stories.js";

const FUNDS = 1_000_000_000n;
const SETTLEMENT_TIMEOUT_MS = 60_000;

interface Row {
  story: string;
  who: string;
  held: bigint;
  expected: bigint;
}

const network = await connect();
const stage: Stage = {
  async newAgent(role) {
    const agent = await signIn({ name: role, baseUrl: network.baseUrl });
    await network.fund(agent.address, FUNDS);
    return agent;
  },
  now: network.now,
  say: (story, line) => console.log(`${`[${story}]`.padEnd(27)} ${line}`),
};

console.log(`Playing ${STORIES.length} Working Contracts against ${network.baseUrl}\n`);
const treasuryBefore = await network.balanceOf(network.treasury);
const stories = await Promise.all(STORIES.map((story) => story(stage)));

console.log(
  "\nMoving the chain's clock four days on: the absent Worker's and the silent Client's deadlines pass\n",
);
await network.moveClockTo((await network.now()) + ALL_DEADLINES_AFTER);
await Promise.all(stories.map((played) => awaitStatus(played)));

const rows = (await Promise.all(stories.map((played) => rowsOf(network, played)))).flat();
rows.push({
  story: "all",
  who: "Treasury",
  held: (await network.balanceOf(network.treasury)) - treasuryBefore,
  expected: stories.reduce((sum, played) => sum + played.expected.treasuryOut, 0n),
});
printTable(rows);

const wrong = rows.filter((row) => row.held !== row.expected);
if (wrong.length > 0) {
  console.error(`\n${wrong.length} of ${rows.length} balances differ from the ledger.`);
  process.exit(1);
}
console.log(`\nAll ${rows.length} balances match the ledger to the unit.`);

/** Waits until the keeper has moved the contract to its final status; throws with the one it stayed in. */
async function awaitStatus(played: Played): Promise<void> {
  const reader = played.client ?? played.worker;
  if (reader === null) throw new Error("a story has at least one party");
  const giveUpAt = performance.now() + SETTLEMENT_TIMEOUT_MS;
  for (;;) {
    const contract = await reader.get(`/v1/contracts/${played.contractId}`);
    const booked = await network.bookedOf(played.contractId as `0x${string}`);
    if (contract.body.data.status === played.expectedStatus && booked === 0n) {
      stage.say(played.story, `ended as ${played.expectedStatus}, escrow empty`);
      return;
    }
    if (performance.now() > giveUpAt) {
      throw new Error(
        `${played.story}: still ${contract.body.data.status} with ${formatDecimal(booked)} booked, expected ${played.expectedStatus}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function rowsOf(network: Network, played: Played): Promise<Row[]> {
  const { story, expected } = played;
  const row = async (agent: Agent, moneyIn: bigint, moneyOut: bigint): Promise<Row> => ({
    story,
    who: agent.name,
    held: await network.balanceOf(agent.address),
    expected: FUNDS - moneyIn + moneyOut,
  });
  return Promise.all([
    ...(played.client === null ? [] : [row(played.client, expected.clientIn, expected.clientOut)]),
    ...(played.worker === null ? [] : [row(played.worker, expected.workerIn, expected.workerOut)]),
    ...played.bystanders.map((agent) => row(agent, 0n, 0n)),
    {
      story,
      who: "escrow",
      held: await network.balanceOf(played.contractId as `0x${string}`),
      expected: 0n,
    },
  ]);
}

function printTable(rows: readonly Row[]): void {
  console.log(`\n${"story".padEnd(26)}${"who".padEnd(12)}${"holds".padStart(16)}${"ledger".padStart(16)}`);
  for (const { story, who, held, expected } of rows) {
    const mark = held === expected ? "" : "   DIFFERS";
    console.log(
      `${story.padEnd(26)}${who.padEnd(12)}${formatDecimal(held).padStart(16)}${formatDecimal(expected).padStart(16)}${mark}`,
    );
  }
}
