/** Prometheus metrics: counters for the HTTP layer and the relayer, and gauges read at each scrape. */

import type { Address } from "@working-contracts/protocol/types";
import { and, gt, sql } from "drizzle-orm";
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  Registry,
} from "prom-client";
import type { PublicClient } from "viem";
import type { Database } from "./db/client.js";
import { deferredPayout, indexedBlock, indexProgress } from "./db/onchain.js";
import type { ErrorCode } from "./errors.js";
import { readLogLag } from "./events/log-writer.js";
import { countLate, isOurs } from "./keeper/keeper.js";
import { ALARM_NAMES, type RelayerMetrics } from "./relayer/context.js";
import { type GasPolicy, readUnearned } from "./relayer/gas-accounts.js";
import { readOpenOperations } from "./relayer/outbox.js";
import { orNull } from "./scheduling.js";
import { readMatchingLag } from "./webhooks/deliveries.js";

export type Metrics = ReturnType<typeof createMetrics>;

/** How often the event loop's lag is sampled. Each sample wakes the process: the default, 10 ms, takes 1 % of a core. */
const LAG_RESOLUTION_MS = 100;

/**
 * Creates an independent set of metrics. If the database or the node fails or does not respond soon, its gauges are
 * missing from the scrape, or NaN.
 */
export function createMetrics({
  db,
  pools,
  publicClient,
  signers,
  maxFeePerGas,
  gasPolicy,
}: {
  db: Database;
  /** This process's connection pools, by purpose. */
  pools: Record<string, Pick<Database["$client"], "totalCount" | "idleCount" | "waitingCount">>;
  publicClient: Pick<PublicClient, "getBalance" | "getBlock" | "getBlockNumber">;
  /** Accounts that pay for this process's batches. */
  signers: readonly Address[];
  /** Maximum fee per gas in wei. */
  maxFeePerGas: bigint;
  gasPolicy: GasPolicy;
}) {
  const register = new Registry();
  const registers = [register];
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS });
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    { buckets, labelNames = [] }: { buckets: number[]; labelNames?: Label[] },
  ) => new Histogram({ name, help, buckets, labelNames, registers });
  const gauge = <Label extends string>(
    name: string,
    help: string,
    { collect, labelNames = [] }: Pick<GaugeConfiguration<Label>, "collect"> & { labelNames?: Label[] } = {},
  ) => new Gauge({ name, help, labelNames, registers, ...(collect && { collect }) });
  /** A metric without labels cannot be left out, so NaN means unknown. */
  const read = (name: string, help: string, value: () => Promise<number>) =>
    gauge(name, help, {
      async collect() {
        this.set((await orNull(value())) ?? Number.NaN);
      },
    });

  const requests = histogram(
    "working_contracts_http_request_duration_seconds",
    "Time from a request to its response",
    { buckets: [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 15, 30], labelNames: ["method", "route", "status"] },
  );
  const errors = counter(
    "working_contracts_http_errors_total",
    "Responses with status 400 and above, by the error code in their body",
    "status",
    "code",
  );
  const operations = counter(
    "working_contracts_relayer_operations_total",
    "Operations by outcome",
    "outcome",
  );
  const batches = counter("working_contracts_relayer_batches_total", "Batch transactions by event", "event");
  const alarms = counter(
    "working_contracts_relayer_alarms_total",
    "Conditions an operator must look at",
    "name",
  );
  // Prometheus sees an increase only from a value scraped before it.
  for (const name of ALARM_NAMES) alarms.inc({ name }, 0);
  errors.inc({ status: "500", code: "internal_error" }, 0);
  const batchSize = histogram("working_contracts_relayer_batch_operations", "Operations per batch", {
    buckets: [1, 2, 5, 10, 20, 50, 100, 150],
  });
  const carried = histogram(
    "working_contracts_relayer_operation_seconds",
    "Time from storing an operation to recording its receipt",
    { buckets: [0.5, 1, 2, 3, 5, 10, 30, 60, 300] },
  );
  const paid = counter(
    "working_contracts_relayer_gas_paid_wei_total",
    "Gas paid by a signer, in wei",
    "signer",
  );
  const fee = gauge(
    "working_contracts_relayer_max_fee_per_gas_wei",
    "Maximum fee per gas of the newest transaction or replacement",
    { labelNames: ["signer"] },
  );
  gauge("working_contracts_relayer_fee_cap_wei", "Configured maximum fee per gas").set(Number(maxFeePerGas));
  gauge(
    "working_contracts_relayer_gas_budget",
    "Gas an hour relayed for agents beyond what their fees earned; 0 for no limit",
  ).set(gasPolicy.budget);
  gauge(
    "working_contracts_relayer_gas_allowance",
    "Gas a day relayed for one address beyond what its fees earned; 0 for no limit",
  ).set(gasPolicy.allowance);
  gauge("working_contracts_relayer_gas_per_fee", "Gas earned by 1.0 paid to the Treasury").set(
    gasPolicy.perFee,
  );
  read("working_contracts_relayer_gas_unearned", "Gas of that budget in use", () =>
    readUnearned(db, gasPolicy),
  );
  gauge("working_contracts_relayer_signer_balance_wei", "Balance a signer has left for gas", {
    labelNames: ["signer"],
    async collect() {
      const balances = signers.map(async (address) => {
        const balance = await orNull(publicClient.getBalance({ address }));
        if (balance === null) this.remove({ signer: address });
        else this.set({ signer: address }, Number(balance));
      });
      await Promise.all(balances);
    },
  });
  read("working_contracts_index_lag_blocks", "Blocks the index is behind the chain", async () => {
    const [head, indexed] = await Promise.all([
      publicClient.getBlockNumber({ cacheTime: 0 }),
      indexedBlock(db),
    ]);
    return indexed === null ? Number.NaN : Math.max(0, Number(head - indexed));
  });
  read("working_contracts_chain_head_age_seconds", "Age of the node's newest block", async () => {
    const { timestamp } = await publicClient.getBlock();
    return Math.max(0, Date.now() / 1000 - Number(timestamp));
  });
  /** At the index's time: what the index does not show yet is not late. */
  const atIndexTime = async (find: (db: Database, now: number) => Promise<number>): Promise<number> => {
    const progress = await indexProgress(db);
    return progress === null ? Number.NaN : find(db, progress.timestamp);
  };
  read(
    "working_contracts_late_settlements",
    "Settlements due for five minutes, and tallies and openings of entrusted votes, without a pending operation",
    () => atIndexTime(countLate),
  );
  read(
    "working_contracts_event_log_lag_seconds",
    "Age of the oldest event that is not in the event log",
    () => atIndexTime(readLogLag),
  );
  read(
    "working_contracts_webhook_matching_lag_seconds",
    "Age of the oldest event in the log that is not matched to webhooks",
    () => atIndexTime(readMatchingLag),
  );
  const isRefused = and(gt(deferredPayout.amount, 0n), isOurs(sql`${deferredPayout.contractId}`));
  read("working_contracts_deferred_payouts", "Payouts that the token refuses", () =>
    db.$count(deferredPayout, isRefused),
  );
  let reading: ReturnType<typeof readOpenOperations> | null = null;
  /** Both gauges of a scrape share one query. */
  const readOpen = () => {
    reading ??= readOpenOperations(db).finally(() => {
      reading = null;
    });
    return reading;
  };
  type Open = Awaited<ReturnType<typeof readOpen>>[number];
  const byState = (name: string, help: string, merge: (sum: number, open: Open) => number) =>
    gauge(name, help, {
      labelNames: ["state"],
      async collect() {
        const states = new Map<string, number>();
        for (const open of (await orNull(readOpen())) ?? [])
          states.set(open.state, merge(states.get(open.state) ?? 0, open));
        this.reset();
        for (const [state, value] of states) this.set({ state }, value);
      },
    });
  byState(
    "working_contracts_outbox_operations",
    "Pending operations, by state",
    (sum, { count }) => sum + count,
  );
  byState(
    "working_contracts_outbox_oldest_seconds",
    "Age of the oldest pending operation, by state",
    (oldest, { age }) => Math.max(oldest, age),
  );
  const connections = gauge(
    "working_contracts_database_connections",
    "Connections in this process's pools, and queries waiting for one",
    { labelNames: ["pool", "kind"] },
  );
  const countConnections = (): void => {
    for (const [name, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
      connections.set({ pool: name, kind: "open" }, totalCount);
      connections.set({ pool: name, kind: "idle" }, idleCount);
      connections.set({ pool: name, kind: "waiting" }, waitingCount);
    }
  };

  return {
    /** `route` is the pattern, never the path, so that the number of labels stays bounded. */
    observeRequest(
      { status, ...call }: { method: string; route: string; status: number },
      { code, seconds }: { code: ErrorCode | undefined; seconds: number },
    ): void {
      requests.observe({ ...call, status }, seconds);
      if (status >= 400) errors.inc({ status, code: code ?? (status === 402 ? "payment_required" : "none") });
    },
    relayer: {
      operations: (outcome, count) => operations.inc({ outcome }, count),
      batches: (event) => batches.inc({ event }),
      signed({ signer, operations: count, maxFeePerGas }) {
        batchSize.observe(count);
        fee.set({ signer }, Number(maxFeePerGas));
      },
      mined({ signer, gasPaid, seconds }) {
        paid.inc({ signer }, Number(gasPaid));
        for (const each of seconds) carried.observe(each);
      },
      alarm: (name) => alarms.inc({ name }),
    } satisfies RelayerMetrics,
    async expose() {
      // Before the queries of this scrape, which would count.
      countConnections();
      return { contentType: register.contentType, text: await register.metrics() };
    },
  };
}
