/**
 * Rows 9, 10 and 21: the indexer fails. Guards: receipts decide about money; a response waits until the index shows its
 * very block; the indexer is restarted with its database and when it stalls; it reads everything again if its rows
 * stand on blocks that are gone.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Readiness } from "../../src/features/system/routes.js";
import { until } from "../../tools/local/processes.js";
import { indexedTo } from "./support/audit.js";
import type { RpcRule } from "./support/rpc-proxy.js";
import { expectTruth, startStory, useScene } from "./support/story.js";

/** Blocks after which Ponder treats a block of a local chain as final. */
const PONDER_FINALITY = 30;
const LAG_FOR_MS = 10_000;
const VISIBLE_LAG = 5;
/** The supervisor checks the indexer every two seconds unless something delays it. */
const WATCH_SEES_MS = 15_000;
/** After a few restarts, the supervisor waits half a minute before the next one. */
const REBUILT_MS = 150_000;
const scene = await useScene("indexer");
const { cluster, customers, clients } = scene;

/** At rest, the index has every event of our escrows on chain. */
async function expectNoHole(): Promise<void> {
  await expectTruth(scene);
  const { publicClient, pool, deployment } = cluster;
  // The keeper keeps working, so both sides are read up to one block.
  const toBlock = await publicClient.getBlockNumber({ cacheTime: 0 });
  await indexedTo(cluster, toBlock);
  const { rows } = await pool.query<{ contract_id: `0x${string}`; place: string }>(
    "select contract_id, transaction_hash || log_index as place from onchain.escrow_event where block_number <= $1",
    [toBlock.toString()],
  );
  const paid = customers.payments.filter(({ truth }) => truth?.status === 200);
  const logs = await publicClient.getLogs({
    address: [...new Set(paid.map(({ authorization }) => authorization.to))],
    fromBlock: BigInt(deployment.startBlock),
    toBlock,
  });
  const onChain = logs.map(({ transactionHash, logIndex }) => `${transactionHash}${logIndex}`);
  expect(rows.map(({ place }) => place).sort()).toEqual(onChain.sort());
  expect(onChain.length).toBeGreaterThan(0);
}

it("row 9: after a crash of Postgres the indexer restarts too, and misses no event", async () => {
  await (await startStory(scene)).done;
  const { done } = await startStory(scene);
  const earlier = cluster.indexer.pid();
  const pid = cluster.postgres.pid() ?? 0;
  process.kill(pid, "SIGKILL");
  await until("Postgres is back", async () => (await cluster.pool.query("select 1")).rowCount === 1, {
    timeoutMs: 60_000,
  });
  await done;
  await until("the indexer is a new process", async () => cluster.indexer.pid() !== earlier, {
    timeoutMs: 60_000,
  });
  expect(cluster.reports).toContain("The indexer's database has restarted. Restarting the indexer.");
  await expectNoHole();
});

it("row 10: while the indexer is gone no one gets a wrong response, and after its return it shows what it missed", async () => {
  const { done } = await startStory(scene);
  const pid = cluster.indexer.pid() ?? 0;
  process.kill(pid, "SIGKILL");
  const created = await customers.create(clients[0]);
  expect(created.status).toBe(200);
  // The next reader sees what the response reported, because the response waited for the index.
  expect((await customers.read(clients[0], created.data.id)).status).toBe(200);
  await done;
  await expectNoHole();
});

it("row 10: a lagging indexer delays responses and makes none of them wrong", async () => {
  const late: RpcRule = async (_, forward) => {
    await delay(1500);
    return forward();
  };
  const { done } = await startStory(scene, async () => cluster.indexerRpc.setRule(late));
  await delay(LAG_FOR_MS);
  cluster.indexerRpc.setRule(null);
  await done;
});

it("row 10: an indexer that hangs is ended and restarted", async () => {
  const hung = cluster.indexer.pid() ?? 0;
  const { done } = await startStory(scene, async () => void process.kill(hung, "SIGSTOP"));
  const reads = async () => {
    const url = cluster.apis[0]?.url;
    // Ready unless it is too far behind.
    const { data, error } = (await (await fetch(`${url}/ready`)).json()) as {
      data?: Readiness;
      error?: { details: Readiness };
    };
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return [
      (data ?? error?.details)?.indexer.lagBlocks ?? 0,
      Number(/^working_contracts_index_lag_blocks (\d+)$/m.exec(metrics)?.[1]),
    ];
  };
  const isReported = async (): Promise<boolean> => (await reads()).every((lag) => lag >= VISIBLE_LAG);
  await until("the lag is reported", isReported, { timeoutMs: 30_000 });
  const said = "The index stalled while the chain advanced. Restarting the indexer.";
  await until("it is noticed", async () => cluster.reports.includes(said), { timeoutMs: 60_000 });
  await done;
  expect(cluster.indexer.pid()).not.toBe(hung);
  await expectNoHole();
});

it("row 21: events on a branch that the indexer counts as read are not missed, even if no row stands on the other branch", async () => {
  const { testClient, blocks, pool } = cluster;
  await (await startStory(scene)).done;
  await expectTruth(scene);
  await blocks.pause();
  const snapshot = await testClient.snapshot();
  const head = await cluster.publicClient.getBlockNumber({ cacheTime: 0 });
  await testClient.mine({ blocks: 2 * PONDER_FINALITY + 5 });
  const isFinal = async (): Promise<boolean> => {
    await testClient.mine({ blocks: 1 });
    const { rows } = await pool.query<{ block: string }>(
      "select substring(finalized_checkpoint from 27 for 16) as block from onchain._ponder_checkpoint",
    );
    return BigInt(rows[0]?.block ?? 0) > head + BigInt(PONDER_FINALITY / 2);
  };
  await until("the indexer counts the branch as final", isFinal, { timeoutMs: 60_000 });
  await delay(WATCH_SEES_MS);
  await testClient.revert({ id: snapshot });
  const abandonedBefore = abandonments();
  const before = await newestOperation();
  blocks.resume();
  const creating = customers.create(clients[0]);
  creating.catch(() => {});
  const isMined = async (): Promise<boolean> => {
    const { rows } = await pool.query(
      "select 1 from app.operation where id > $1 and block_number is not null",
      [before],
    );
    return rows.length > 0;
  };
  await until("a contract is on the new branch", isMined, { timeoutMs: 60_000 });
  await blocks.pause();
  await testClient.mine({ blocks: 2 * PONDER_FINALITY + 10 });
  blocks.resume();

  await until("it is noticed", async () => abandonments() > abandonedBefore, { timeoutMs: REBUILT_MS });
  expect((await creating).status).toBe(200);
  await expectNoHole();
});

/** How often the indexer had to read everything again. */
function abandonments(): number {
  const said = "A reorg went deeper than the indexer can follow. Indexing from scratch.";
  return cluster.reports.filter((line) => line === said).length;
}

async function newestOperation(): Promise<string> {
  const { rows } = await cluster.pool.query<{ id: string }>("select max(id) as id from app.operation");
  return rows[0]?.id ?? "0";
}

it("row 21: rows on blocks that a reorg removed beyond the indexer's finality are read again", async () => {
  const { testClient, blocks } = cluster;
  await blocks.pause();
  const snapshot = await testClient.snapshot();
  blocks.resume();
  await (await startStory(scene)).done;
  await expectTruth(scene);
  await blocks.pause();
  await testClient.mine({ blocks: 2 * PONDER_FINALITY + 5 });
  await indexedTo(cluster, await cluster.publicClient.getBlockNumber({ cacheTime: 0 }));
  const abandonedBefore = abandonments();
  const misled = cluster.indexer.pid();
  await testClient.revert({ id: snapshot });
  await testClient.mine({ blocks: 2 * PONDER_FINALITY + 10 });
  blocks.resume();

  await until("it is noticed", async () => abandonments() > abandonedBefore, { timeoutMs: REBUILT_MS });
  const isBack = async (): Promise<boolean> =>
    ![undefined, misled].includes(cluster.indexer.pid()) && (await fetch(`${cluster.indexer.url}/ready`)).ok;
  await until("the index is back", isBack, { timeoutMs: REBUILT_MS });
  await expectNoHole();
});
