/**
 * The checks after every fault. Each authorization that a client ever signed was applied exactly once or never moved,
 * and the client received the matching response. Escrows hold what they received, or paid it to the payees in the
 * ledger, by their own events. Nothing is stuck, and every connection is back in its pool. Chain, outbox, index and API
 * agree.
 */

import { setTimeout as delay } from "node:timers/promises";
import { readEscrow } from "@working-contracts/client/verify/read-chain";
import { rebuild } from "@working-contracts/client/verify/rebuild";
import { escrowAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { parseDecimal } from "@working-contracts/protocol/amounts";
import { STATUSES, statusOf } from "@working-contracts/protocol/status";
import { eq } from "drizzle-orm";
import { type Address, createPublicClient, http, type PublicClient, parseAbiItem } from "viem";
import { databaseOn } from "../../../src/db/client.js";
import { statusFacts, waitForIndexed, workingContract } from "../../../src/db/onchain.js";
import type { ContractView } from "../../../src/features/contracts/view.js";
import { createConcurrencyLimit } from "../../../src/scheduling.js";
import { until } from "../../../tools/local/processes.js";
import type { Agent, ApiResponse } from "../../support/agent.js";
import type { Cluster } from "./cluster.js";
import type { Customers, Payment } from "./customers.js";
import type { ServiceProcess } from "./service-process.js";

const transfer = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");
const used = parseAbiItem("event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)");

const SETTLE_TIMEOUT_MS = 90_000;
/** A soak leaves thousands of contracts: each gets its time from when it is looked at. */
const CHECKED_AT_A_TIME = 50;

export interface AuditOptions {
  /** Escrows of these payments are not summed up: strangers sent them money, or money was refunded. */
  ignoredEscrows?: ReadonlySet<string>;
}

/** Every fault found, in words. Empty if there is none. */
export async function audit(
  cluster: Cluster,
  customers: Customers,
  options: AuditOptions = {},
): Promise<string[]> {
  const faults: string[] = [];
  await Promise.all(
    customers.payments
      .filter(({ truth }) => truth === undefined)
      .map((payment) =>
        customers.settle(payment, SETTLE_TIMEOUT_MS).catch((error: Error) => {
          faults.push(`${payment.path} of ${payment.agent.address} got no final response: ${error.message}`);
        }),
      ),
  );
  await stuck(cluster);
  faults.push(...(await atRest(() => moneyFaults(cluster, customers, options))));
  faults.push(...(await stuck(cluster)));
  faults.push(...(await statusFaults(cluster, customers)));
  faults.push(...(await atRest(() => nonceFaults(cluster))));
  faults.push(...(await atRest(() => placeFaults(cluster))));
  const running = cluster.processes.filter((one) => one.isRunning());
  const kept = await Promise.all(running.map((one) => atRest(() => connectionFaults(one))));
  return [...faults, ...kept.flat()];
}

/**
 * Reports only faults that persist: the keeper can settle a contract during the check, and a reorg beyond finality is
 * noticed only within seconds.
 */
async function atRest(look: () => Promise<string[]>): Promise<string[]> {
  let faults = ["nothing could be looked at"];
  const isClean = async (): Promise<boolean> => {
    faults = await look();
    return faults.length === 0;
  };
  await until("nothing is wrong", isClean, { timeoutMs: 60_000, intervalMs: 500 }).catch(() => {});
  return faults;
}

/** Waits for the outbox to come to rest, and names everything that does not. */
async function stuck({ pool }: Cluster): Promise<string[]> {
  let open: string[] = [];
  const isAtRest = async (): Promise<boolean> => {
    const { rows } = await pool.query<{ what: string }>(`
      select format('operation %s (%s) is %s (%s)', id, kind, state, reason) as what from app.operation
      where state not in ('final', 'rejected')
      union all
      select format('batch %s is %s', id, state) from app.batch where state in ('sent', 'mined', 'quarantined')`);
    open = rows.map(({ what }) => what);
    return open.length === 0;
  };
  await until("the outbox comes to rest", isAtRest, { timeoutMs: SETTLE_TIMEOUT_MS }).catch(() => {});
  return open;
}

async function moneyFaults(cluster: Cluster, customers: Customers, options: AuditOptions): Promise<string[]> {
  const { payments } = customers;
  const moved = await movements(cluster, payments);
  const paidIn = new Map<Address, bigint>();
  for (const payment of payments) {
    const { to, value } = payment.authorization;
    paidIn.set(to, (paidIn.get(to) ?? 0n) + value * BigInt(moved.get(payment) ?? 0));
  }
  const chain = batchingClient(cluster);
  const inTurn = createConcurrencyLimit(CHECKED_AT_A_TIME);
  const escrows = await Promise.all(
    [...paidIn]
      .filter(([escrow]) => options.ignoredEscrows?.has(escrow) !== true)
      .map(([escrow, paid]) => inTurn(() => escrowFaults(chain, cluster, { escrow, paid }))),
  );
  return [...payments.flatMap((payment) => truthFaults(payment, moved.get(payment) ?? 0)), ...escrows.flat()];
}

/** A client of the node itself that sends many calls in one request. */
function batchingClient({ node, publicClient: { chain } }: Cluster): PublicClient {
  return createPublicClient({ chain, transport: http(node.rpcUrl, { batch: { batchSize: 100 } }) });
}

/** How often each authorization moved its money, by the token's own events. */
async function movements(
  { publicClient, deployment }: Cluster,
  payments: Payment[],
): Promise<Map<Payment, number>> {
  const asset = deployment.asset.address;
  const uses = await publicClient.getLogs({ address: asset, event: used, fromBlock: 0n, strict: true });
  const transfers = await publicClient.getLogs({
    address: asset,
    event: transfer,
    fromBlock: 0n,
    strict: true,
  });
  const key = (hash: string, from: string, to: string, value: bigint) =>
    `${hash}${from}${to}${value}`.toLowerCase();
  const seen = new Set(
    transfers.map(({ transactionHash, args }) => key(transactionHash, args.from, args.to, args.value)),
  );
  const usedIn = new Map<string, typeof uses>();
  for (const use of uses) {
    const name = `${use.args.authorizer.toLowerCase()} ${use.args.nonce}`;
    usedIn.set(name, [...(usedIn.get(name) ?? []), use]);
  }
  return new Map(
    payments.map((payment) => {
      const { from, to, value, nonce } = payment.authorization;
      const ours = usedIn.get(`${from} ${nonce}`) ?? [];
      return [
        payment,
        ours.filter(({ transactionHash }) => seen.has(key(transactionHash, from, to, value))).length,
      ];
    }),
  );
}

function truthFaults({ path, truth, statuses, authorization }: Payment, moved: number): string[] {
  if (truth === undefined) {
    return moved > 1 ? [`${path}: ${authorization.nonce} of ${authorization.from} moved ${moved} times`] : [];
  }
  const outcome = `${path} of ${authorization.from} got ${statuses.join(", ")} (${truth.error?.code ?? ""})`;
  if (truth.status === 200 && moved !== 1) return [`${outcome}, but its money moved ${moved} times`];
  if (truth.status !== 200 && moved !== 0) return [`${outcome}, but its money moved ${moved} times`];
  return [];
}

/**
 * An escrow holds all that it received, less its payments. Its own events show that each payment went to a payee in the
 * ledger. Once it is settled, the ledger divides all of it.
 */
async function escrowFaults(
  chain: PublicClient,
  { deployment }: Cluster,
  { escrow, paid }: { escrow: Address; paid: bigint },
): Promise<string[]> {
  const balance = await chain.readContract({
    address: deployment.asset.address,
    abi: testUsdAbi,
    functionName: "balanceOf",
    args: [escrow],
  });
  if (paid === 0n) return balance === 0n ? [] : [`escrow ${escrow} holds ${balance}, but no one paid`];
  try {
    const { transfers, settlement } = rebuild(await readEscrow(chain, { id: escrow, network: deployment }));
    const wrong = transfers.filter(({ moved, due }) => moved !== due);
    const out = transfers.reduce((sum, { moved }) => sum + BigInt(moved), 0n);
    const divided = settlement.legs.reduce((sum, { amount }) => sum + (parseDecimal(amount) ?? 0n), 0n);
    return [
      ...wrong.map(
        ({ payee, moved, due }) => `escrow ${escrow} paid ${moved} to ${payee}, the ledger says ${due}`,
      ),
      ...(balance === paid - out
        ? []
        : [`escrow ${escrow} holds ${balance}: ${paid} came in, ${out} went out`]),
      ...(settlement.settledAt === null || divided === paid
        ? []
        : [`escrow ${escrow} took ${paid}, and the ledger divides ${divided}`]),
    ];
  } catch (error) {
    return [`escrow ${escrow} took ${paid}: ${(error as Error).message}`];
  }
}

/** Every contract that was paid for has the same status on chain, by the index's facts, and from each running API. */
async function statusFaults(cluster: Cluster, customers: Customers): Promise<string[]> {
  const { publicClient } = cluster;
  await indexedTo(cluster, await publicClient.getBlockNumber({ cacheTime: 0 }));
  const payers = new Map(
    customers.payments
      .filter(({ truth }) => truth?.status === 200)
      .map(({ authorization, agent }) => [authorization.to, agent]),
  );
  const chain = batchingClient(cluster);
  const db = databaseOn(cluster.pool);
  const faults: string[] = [];
  const check = async ([id, payer]: [Address, Agent]): Promise<void> => {
    let said: Record<string, unknown> = {};
    const agrees = async (): Promise<boolean> => {
      const head = await chain.getBlock({ blockTag: "latest" });
      const status = await chain.readContract({
        address: id,
        abi: escrowAbi,
        functionName: "status",
        blockNumber: head.number,
      });
      const [row] = await db.select().from(workingContract).where(eq(workingContract.id, id));
      const block = row && (await chain.getBlock({ blockNumber: row.updatedBlock }));
      const isStanding = row !== undefined && block?.hash === row.updatedBlockHash;
      const answers: ApiResponse<ContractView>[] = [];
      for (const { url } of cluster.apis.filter((one) => one.isRunning())) {
        answers.push(await readAs(payer, `${url}/v1/contracts/${id}`));
      }
      const onChain = STATUSES[status - 1];
      const indexed = row && statusOf(statusFacts(row), Number(head.timestamp));
      said = { onChain, indexed, isStanding, api: answers.map(({ data }) => data?.status) };
      return isStanding && indexed === onChain && answers.every(({ data }) => data?.status === onChain);
    };
    await until(`${id} is the same everywhere`, agrees, { timeoutMs: 60_000, intervalMs: 250 }).catch(() => {
      faults.push(`contract ${id} differs: ${JSON.stringify(said)}`);
    });
  };
  const inTurn = createConcurrencyLimit(CHECKED_AT_A_TIME);
  await Promise.all([...payers].map((one) => inTurn(() => check(one))));
  return faults;
}

/** Reads as the agent, and waits when its limit is met: an audit reads thousands of contracts at once. */
export async function readAs<T>({ apiKey }: Agent, url: string): Promise<ApiResponse<T>> {
  for (;;) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } });
    if (response.status !== 429) return (await response.json()) as ApiResponse<T>;
    await delay(1000 * Number(response.headers.get("retry-after")));
  }
}

/** The outbox names the same transaction and block for each batch and its operations as the chain. */
async function placeFaults(cluster: Cluster): Promise<string[]> {
  const chain = batchingClient(cluster);
  const { rows } = await cluster.pool.query<{
    id: string;
    hash: `0x${string}`;
    block: string;
    differing: string;
  }>(
    `select b.id, b.transaction_hash as hash, b.block_hash as block,
      count(o.id) filter (where (o.transaction_hash, o.block_hash) is distinct from (b.transaction_hash, b.block_hash)) as differing
    from app.batch b left join app.operation o on o.batch_id = b.id and o.state in ('mined', 'final')
    where b.state in ('mined', 'final') group by b.id`,
  );
  const faults = rows.map(async ({ id, hash, block, differing }) => {
    const receipt = await chain.getTransactionReceipt({ hash }).catch(() => null);
    return [
      ...(receipt?.blockHash === block
        ? []
        : [`block of batch ${id}: the outbox says ${block}, the chain ${receipt?.blockHash}`]),
      ...(differing === "0" ? [] : [`block of batch ${id}: ${differing} operations say otherwise`]),
    ];
  });
  return (await Promise.all(faults)).flat();
}

/** Finds leaked connections: at rest, there must be a moment at which no connection of a pool is in use. */
async function connectionFaults({ name, url }: ServiceProcess): Promise<string[]> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5_000) });
  const lines = (await response.text()).matchAll(
    /^working_contracts_database_connections\{pool="(\w+)",kind="(open|idle)"\} (\d+)$/gm,
  );
  const inUse = new Map<string, number>();
  for (const [, pool = "", kind, count] of lines) {
    inUse.set(pool, (inUse.get(pool) ?? 0) + (kind === "open" ? Number(count) : -Number(count)));
  }
  if (inUse.size === 0) return [`${name} reports no connections`];
  return [...inUse]
    .filter(([, count]) => count !== 0)
    .map(([pool, count]) => `${count} connections of ${name}'s pool ${pool} are never released`);
}

/** Resolves once the views show that block; throws after a minute and a half. */
export async function indexedTo({ pool }: Cluster, blockNumber: bigint): Promise<void> {
  const target = { blockNumber, timeoutMs: SETTLE_TIMEOUT_MS };
  if (!(await waitForIndexed(databaseOn(pool), target)))
    throw new Error(`The index does not reach block ${blockNumber}.`);
}

/** No account nonce of a signer is skipped, and each used nonce is accounted for. */
async function nonceFaults({ publicClient, pool, signers }: Cluster): Promise<string[]> {
  const faults: string[] = [];
  let unexplained = 0;
  for (const { address } of signers) {
    const onChain = await publicClient.getTransactionCount({ address });
    const { rows } = await pool.query<{ nonce: string; state: string }>(
      "select account_nonce as nonce, state from app.batch where signer = $1 order by account_nonce",
      [address.toLowerCase()],
    );
    const nonces = rows.map(({ nonce }) => Number(nonce));
    if (nonces.some((nonce) => nonce >= onChain))
      faults.push(`${address} skipped a nonce: ${onChain} are used on chain`);
    const taken = rows.filter(({ state }) => state !== "superseded").length;
    unexplained += onChain - taken;
  }
  if (unexplained !== 0) faults.push(`${unexplained} nonces were used by foreign transactions`);
  return faults;
}
