/**
 * The same questions after every fault. For each authorization that a client ever signed: it was applied exactly once
 * or never moved, and the client has been told which. Escrows hold what was paid into them. Nothing is stuck. Chain,
 * index and API say the same.
 */
import { type Address, parseAbiItem } from "viem";
import { escrowAbi, testUsdAbi } from "../../../src/chain/abi.js";
import { until } from "../../../src/local/processes.js";
import { STATUSES } from "../../../src/protocol/status.js";
import type { ContractView } from "../../../src/services/contracts/view.js";
import type { Answer } from "../../support/agent.js";
import type { Cluster } from "./cluster.js";
import type { Customers, Payment } from "./customers.js";

const transfer = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");
const used = parseAbiItem("event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)");

const SETTLE_TIMEOUT_MS = 90_000;

export interface AuditOptions {
  /** Account nonces that somebody else's transactions used. */
  foreignNonces?: number;
  /** Money that strangers brought to escrows or that came back: these payments' escrows are not summed up. */
  ignoredEscrows?: ReadonlySet<string>;
}

/** Every fault found, in words; empty where all is as it should be. */
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
          faults.push(`${payment.path} of ${payment.agent.address} got no truth: ${error.message}`);
        }),
      ),
  );
  await stuck(cluster);
  faults.push(...(await atRest(() => moneyFaults(cluster, customers, options))));
  faults.push(...(await stuck(cluster)));
  if (cluster.hasIndexer) faults.push(...(await statusFaults(cluster, customers)));
  faults.push(...(await atRest(() => nonceFaults(cluster, options))));
  return faults;
}

/**
 * The keeper may settle a contract while we look, and what a reorganisation took beyond finality is noticed within
 * seconds: what is wrong has to stay wrong.
 */
async function atRest(look: () => Promise<string[]>): Promise<string[]> {
  let faults = await look();
  const isClean = async (): Promise<boolean> => {
    faults = await look();
    return faults.length === 0;
  };
  if (faults.length > 0) {
    await until("nothing is wrong", isClean, { timeoutMs: 60_000, intervalMs: 500 }).catch(() => {});
  }
  return faults;
}

/** Waits for the outbox to come to rest; what does not is named. */
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
  return [
    ...payments.flatMap((payment) => truthFaults(payment, moved.get(payment) ?? 0)),
    ...(await escrowFaults(cluster, payments, moved, options)),
  ];
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
  const moved = new Map<Payment, number>();
  for (const payment of payments) {
    const { from, to, value, nonce } = payment.authorization;
    const ours = uses.filter(({ args }) => args.authorizer.toLowerCase() === from && args.nonce === nonce);
    const paid = ours.filter(({ transactionHash }) => seen.has(key(transactionHash, from, to, value)));
    moved.set(payment, paid.length);
  }
  return moved;
}

function truthFaults({ path, truth, statuses, authorization }: Payment, moved: number): string[] {
  if (truth === undefined) {
    return moved > 1 ? [`${path}: ${authorization.nonce} of ${authorization.from} moved ${moved} times`] : [];
  }
  const told = `${path} of ${authorization.from} was told ${statuses.join(", ")} (${truth.error?.code ?? ""})`;
  if (truth.status === 200 && moved !== 1) return [`${told}, but its money moved ${moved} times`];
  if (truth.status !== 200 && moved !== 0) return [`${told}, but its money moved ${moved} times`];
  return [];
}

/** An escrow that has not paid out holds what its payments brought; one that has holds nothing. */
async function escrowFaults(
  { publicClient, deployment, pool }: Cluster,
  payments: readonly Payment[],
  moved: Map<Payment, number>,
  { ignoredEscrows = new Set() }: AuditOptions,
): Promise<string[]> {
  const expected = new Map<Address, bigint>();
  for (const payment of payments) {
    const { to, value } = payment.authorization;
    expected.set(to, (expected.get(to) ?? 0n) + value * BigInt(moved.get(payment) ?? 0));
  }
  const { rows } = await pool.query<{ id: Address }>(
    "select distinct escrow as id from app.operation where kind in ('settle', 'claim') and state in ('mined', 'final')",
  );
  const settled = new Set(rows.map(({ id }) => id));
  const faults: string[] = [];
  for (const [escrow, paid] of expected) {
    if (ignoredEscrows.has(escrow)) continue;
    const balance = await publicClient.readContract({
      address: deployment.asset.address,
      abi: testUsdAbi,
      functionName: "balanceOf",
      args: [escrow],
    });
    const due = settled.has(escrow) ? 0n : paid;
    if (balance !== due) faults.push(`escrow ${escrow} holds ${balance}, its payments say ${due}`);
  }
  return faults;
}

/** Every contract that was paid for: status on chain, in the index (by its phase), and from each API process that runs. */
async function statusFaults(cluster: Cluster, customers: Customers): Promise<string[]> {
  const { publicClient, pool } = cluster;
  const [reader] = customers.payments;
  if (reader === undefined) return [];
  const target = await publicClient.getBlockNumber({ cacheTime: 0 });
  await indexedTo(cluster, target);
  const ids = new Set(
    customers.payments
      .filter(({ truth }) => truth?.status === 200)
      .map(({ authorization }) => authorization.to),
  );
  const faults: string[] = [];
  const check = async (id: Address): Promise<void> => {
    let said: Record<string, unknown> = {};
    const agrees = async (): Promise<boolean> => {
      const onChain = await publicClient.readContract({
        address: id,
        abi: escrowAbi,
        functionName: "status",
      });
      const { rows } = await pool.query<{ phase: string; hash: string; block: string }>(
        `select c.phase, c.updated_block as block, c.updated_block_hash as hash from onchain.working_contract c where c.id = $1`,
        [id],
      );
      const row = rows[0];
      const block = row && (await publicClient.getBlock({ blockNumber: BigInt(row.block) }));
      const answers: Answer<ContractView>[] = [];
      for (const { url } of cluster.apis.filter((one) => one.isRunning())) {
        const response = await fetch(`${url}/v1/contracts/${id}`, {
          headers: { authorization: `Bearer ${reader.agent.apiKey}` },
        });
        answers.push((await response.json()) as Answer<ContractView>);
      }
      const chain = STATUSES[onChain - 1];
      said = {
        chain,
        indexed: row?.phase,
        block: block?.hash === row?.hash,
        api: answers.map(({ data }) => data?.status),
      };
      return block?.hash === row?.hash && answers.every(({ data }) => data?.status === chain);
    };
    await until(`${id} is the same everywhere`, agrees, { timeoutMs: 60_000, intervalMs: 250 }).catch(() => {
      faults.push(`contract ${id} differs: ${JSON.stringify(said)}`);
    });
  };
  await Promise.all([...ids].map(check));
  return faults;
}

/** Resolves once the views show that block; gives up after a minute and a half. */
export async function indexedTo({ pool }: Cluster, target: bigint): Promise<void> {
  const hasReached = async (): Promise<boolean> => {
    const { rows } = await pool.query<{ block: string }>(
      `select substring(progress.latest_checkpoint from 27 for 16) as block
       from onchain._ponder_meta app, onchain._ponder_checkpoint progress
       where app.key = 'app' and app.value ->> 'is_ready' = '1'`,
    );
    return BigInt(rows[0]?.block ?? -1) >= target;
  };
  await until(`the index reaches block ${target}`, hasReached, {
    timeoutMs: SETTLE_TIMEOUT_MS,
    intervalMs: 100,
  });
}

/** No account nonce of a signer is left empty, and each that was used is accounted for. */
async function nonceFaults(
  { publicClient, pool, signers }: Cluster,
  { foreignNonces = 0 }: AuditOptions,
): Promise<string[]> {
  const faults: string[] = [];
  let unexplained = 0;
  for (const { address } of signers) {
    const onChain = await publicClient.getTransactionCount({ address });
    const { rows } = await pool.query<{ nonce: string; state: string }>(
      "select account_nonce as nonce, state from app.batch where signer = $1 order by account_nonce",
      [address.toLowerCase()],
    );
    const nonces = rows.map(({ nonce }) => Number(nonce));
    if (nonces.some((nonce) => nonce >= onChain)) faults.push(`${address} has used ${onChain} of its nonces`);
    const taken = rows.filter(({ state }) => state !== "superseded").length;
    unexplained += onChain - taken;
  }
  if (unexplained !== foreignNonces) faults.push(`${unexplained} nonces were used by foreign transactions`);
  return faults;
}
