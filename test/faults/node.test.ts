/**
 * Rows 11 to 14, 16: the chain's node and its transaction pool. Guards: no failure of the node is a verdict; the response
 * to a broadcast decides nothing; the same bytes are sent again; state follows from what the chain shows, never from what
 * it does not show.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Hex, keccak256, toHex } from "viem";
import { describe, expect, it } from "vitest";
import type { BatchAttempt } from "../../src/db/schema.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { until } from "../../tools/local/processes.js";
import type { Agent, ApiResponse } from "../support/agent.js";
import { BROKEN, RESET, type RpcAnswer, type RpcCall, type RpcRule } from "./support/rpc-proxy.js";
import { expectTruth, seededChance, startStory, useScene } from "./support/story.js";

const FAULT_MS = 4000;
/** Fewer than CONFIRMATIONS. */
const ABANDONED_BLOCKS = 2;
const scene = await useScene("node");
const { cluster, customers } = scene;

interface Attempts {
  id: string;
  attempts: BatchAttempt[];
  state: string;
}

async function batches(): Promise<Attempts[]> {
  const { rows } = await cluster.pool.query<Attempts>(
    "select id, attempts, state from app.batch order by id",
  );
  return rows;
}

/** Reasons of the relayer's rejections, without the one of the loser in the race for a tender. */
async function wrongVerdicts(): Promise<string[]> {
  const { rows } = await cluster.pool.query<{ reason: string }>(
    "select reason from app.operation where state = 'rejected' and reason <> 'WrongStatus'",
  );
  return rows.map(({ reason }) => reason);
}

describe("row 11: the node", () => {
  const rules: Record<string, () => RpcRule> = {
    freezes: () => {
      const thawed = delay(FAULT_MS);
      return async (_, forward) => {
        await thawed;
        return forward();
      };
    },
    "answers 500": () => async () => BROKEN,
    "resets connections": () => async () => RESET,
    "is slow": () => async (_, forward) => {
      await delay(600);
      return forward();
    },
    "fails at random": () => {
      const { between } = seededChance(11);
      return async (_, forward) => {
        const dice = between(0, 9);
        if (dice === 0) return BROKEN;
        if (dice === 1) return RESET;
        if (dice === 2) return { error: { code: -32_603, message: "internal error" } };
        return forward();
      };
    },
  };
  it.each(Object.keys(rules))("%s: operations wait and none fails for good", async (name) => {
    const { done } = await startStory(scene, async () => cluster.setRules((rules[name] as () => RpcRule)()));
    await delay(FAULT_MS);
    cluster.setRules(null);
    await done;
  });

  it("fails every simulation of the relayers: operations wait and none fails for good", async () => {
    const { done } = await startStory(scene, async () => {
      for (const { rpc } of cluster.relayers) {
        // An error for this call alone: the branch is checked in the same request.
        const failed = { error: { code: -32_603, message: "the node is broken" } };
        rpc.setRule(async ({ method }, forward) => (method === "eth_simulateV1" ? failed : forward()));
      }
    });
    await delay(FAULT_MS);
    for (const { rpc } of cluster.relayers) rpc.setRule(null);
    await done;
    await expectTruth(scene);
    // A repeated request would hide some wrong verdicts, so all are checked.
    expect(await wrongVerdicts()).toEqual([]);
  });

  it("refuses connections: operations wait and none fails for good", async () => {
    const { done } = await startStory(scene);
    for (const { rpc } of cluster.processes) await rpc.refuse(true);
    await delay(FAULT_MS);
    for (const { rpc } of cluster.processes) await rpc.refuse(false);
    await done;
  });
});

it.each<[string, typeof RESET | RpcAnswer]>([
  ["the response is lost", RESET],
  [
    "the response is an error",
    { error: { code: -32_000, message: "insufficient funds for gas * price + value" } },
  ],
])(
  "row 12: when a transaction is accepted but %s, nothing fails and no second transaction is sent",
  async (_, response) => {
    const before = (await batches()).length;
    const { done } = await startStory(scene, async () =>
      cluster.setRules(async ({ method }, forward) => {
        const answer = await forward();
        return method === "eth_sendRawTransaction" ? response : answer;
      }),
    );
    await done;
    cluster.setRules(null);
    await expectTruth(scene);
    for (const { attempts } of (await batches()).slice(before)) expect(attempts).toHaveLength(1);
  },
);

it("row 13: a node that shows old heads, old nonces and no receipts is never believed about what it hides", async () => {
  const chance = seededChance(13);
  const old = await cluster.publicClient.request({
    method: "eth_getBlockByNumber",
    params: ["latest", false],
  } as never);
  const { done } = await startStory(scene, async () => {
    for (const { rpc } of cluster.processes) {
      rpc.setRule(async ({ method, params }, forward) => {
        if (chance.hits(2 / 3)) return forward();
        if (method === "eth_getTransactionReceipt") return { result: null };
        if (method === "eth_getBlockByNumber" && params[0] === "latest") return { result: old };
        if (method === "eth_getTransactionCount") return { result: "0x0" };
        return forward();
      });
    }
  });
  await done;
  cluster.setRules(null);
});

it("row 13: a node that stays on an abandoned branch is followed back, and no one is answered from that branch", async () => {
  const { done } = await startStory(scene, undefined, { mayGoBack: true });
  await until("a batch is mined", async () => (await batches()).some(({ state }) => state === "mined"), {
    timeoutMs: 30_000,
    intervalMs: 20,
  });
  await cluster.blocks.pause();
  const branch = await recordBranch(ABANDONED_BLOCKS);
  await cluster.reorganize(ABANDONED_BLOCKS);
  for (const { rpc } of [cluster.relayers[0], cluster.apis[0]].filter((one) => one !== undefined)) {
    rpc.setRule(async (call, forward) => branch(call) ?? forward());
  }
  cluster.blocks.resume();
  await delay(FAULT_MS);
  cluster.setRules(null);
  await done;
});

/** Records the node's responses about the newest blocks and the transactions mined in them. */
async function recordBranch(depth: number): Promise<(call: RpcCall) => RpcAnswer | undefined> {
  const { testClient } = cluster;
  const ask = (method: string, ...params: unknown[]) => testClient.request({ method, params } as never);
  const recorded = new Map<string, unknown>();
  const head = BigInt((await ask("eth_blockNumber")) as Hex);
  const latest = (await ask("eth_getBlockByNumber", "latest", false)) as { transactions: Hex[] };
  recorded.set("eth_blockNumber", toHex(head)).set("eth_getBlockByNumber latest", latest);
  for (let number = head; number > head - BigInt(depth); number--) {
    const block = (await ask("eth_getBlockByNumber", toHex(number), false)) as { transactions: Hex[] };
    recorded.set(`eth_getBlockByNumber ${toHex(number)}`, block);
    for (const hash of block.transactions) {
      recorded.set(`eth_getTransactionReceipt ${hash}`, await ask("eth_getTransactionReceipt", hash));
    }
  }
  return ({ method, params }) => {
    const result = recorded.get([method, ...params.slice(0, 1)].join(" "));
    return result === undefined ? undefined : { result };
  };
}

it("row 14: a transaction that the pool dropped is sent again", async () => {
  const { done } = await startStory(scene, () => cluster.blocks.pause());
  const dropped = await sent();
  for (const hash of dropped) await cluster.testClient.dropTransaction({ hash });
  cluster.blocks.resume();
  await done;
});

it("row 14: transactions that stall in the pool behind one that the node lost are mined with it", async () => {
  // An agent's operations are processed one after another, so two pending batches of one signer need several agents.
  const agents = await customers.join(8 * cluster.signers.length);
  await cluster.blocks.pause();
  let lost = 0;
  for (const { rpc } of cluster.relayers) {
    rpc.setRule(async ({ method, params }, forward) => {
      // The node reports that it accepted the transaction, and forgets it.
      if (method !== "eth_sendRawTransaction" || lost === cluster.signers.length) return forward();
      lost += 1;
      return { result: keccak256(params[0] as Hex) };
    });
  }
  const creating: Promise<ApiResponse<ContractView>>[] = [];
  const isStalled = async (): Promise<boolean> => {
    creating.push(customers.create(agents[creating.length % agents.length] as Agent));
    return Object.keys((await cluster.testClient.getTxpoolContent()).queued).length > 0;
  };
  await until("a transaction stalls", isStalled, { timeoutMs: 60_000, intervalMs: 700 });
  cluster.setRules(null);
  cluster.blocks.resume();
  expect(new Set((await Promise.all(creating)).map(({ status }) => status))).toEqual(new Set([200]));
});

it("row 16: the relayer waits above its maximum fee, and raises an alarm", async () => {
  const before = await cluster.alarms("fee_cap_reached");
  let isDear = true;
  const { done } = await startStory(scene);
  const raising = (async () => {
    while (isDear) {
      await cluster.testClient.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 12n });
      await delay(100);
    }
  })();
  await until("the alarm is raised", async () => (await cluster.alarms("fee_cap_reached")) > before, {
    timeoutMs: 30_000,
  });
  isDear = false;
  await raising;
  await done;
});

/** Hashes of the relayers' transactions that wait in the pool. Waits until there is one. */
async function sent(): Promise<Hex[]> {
  let hashes: Hex[] = [];
  const areThere = async (): Promise<boolean> => {
    const { pending } = await cluster.testClient.getTxpoolContent();
    const relay = cluster.deployment.relay;
    hashes = Object.values(pending)
      .flatMap((byNonce) => Object.values(byNonce))
      .filter(({ to }) => to?.toLowerCase() === relay)
      .map(({ hash }) => hash);
    return hashes.length > 0;
  };
  await until("a batch is waiting in the pool", areThere, { timeoutMs: 30_000, intervalMs: 20 });
  return hashes;
}
