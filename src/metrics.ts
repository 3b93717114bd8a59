/** What an operator can watch: Prometheus counters of the HTTP edge and the relayer, and gauges read at each scrape. */
import type pg from "pg";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { RelayerMetrics } from "./relayer/context.js";

export interface Metrics {
  /** One answered request; `route` is the pattern, never the path: labels must not grow with the callers. */
  observeRequest(request: { method: string; route: string; status: number; seconds: number }): void;
  relayer: RelayerMetrics;
  /** The text that Prometheus scrapes. */
  expose(): Promise<{ contentType: string; text: string }>;
}

/** Metrics of one service; several in one process do not mix. A database that does not answer leaves its gauges out. */
export function createMetrics(pool: pg.Pool): Metrics {
  const register = new Registry();
  const registers = [register];
  collectDefaultMetrics({ register });

  const requests = new Histogram({
    name: "working_contracts_http_request_duration_seconds",
    help: "Time to answer a request",
    labelNames: ["method", "route", "status"],
    buckets: [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 15, 30],
    registers,
  });
  const operations = new Counter({
    name: "working_contracts_relayer_operations_total",
    help: "Operations by what became of them",
    labelNames: ["outcome"],
    registers,
  });
  const batches = new Counter({
    name: "working_contracts_relayer_batches_total",
    help: "Batch transactions by what happened to them",
    labelNames: ["event"],
    registers,
  });
  const alarms = new Counter({
    name: "working_contracts_relayer_alarms_total",
    help: "Conditions that an operator has to look at",
    labelNames: ["name"],
    registers,
  });
  new Gauge({
    name: "working_contracts_outbox_operations",
    help: "Operations on their way, by state",
    labelNames: ["state"],
    registers,
    async collect() {
      this.reset();
      for (const { state, count } of await openOperations(pool)) this.set({ state }, count);
    },
  });
  new Gauge({
    name: "working_contracts_database_connections",
    help: "Connections of this process's pool, and requests that wait for one",
    labelNames: ["kind"],
    registers,
    collect() {
      this.set({ kind: "open" }, pool.totalCount);
      this.set({ kind: "idle" }, pool.idleCount);
      this.set({ kind: "waiting" }, pool.waitingCount);
    },
  });

  return {
    observeRequest: ({ method, route, status, seconds }) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    relayer: {
      operations: (outcome, count) => operations.inc({ outcome }, count),
      batches: (event) => batches.inc({ event }),
      alarm: (name) => alarms.inc({ name }),
    },
    expose: async () => ({ contentType: register.contentType, text: await register.metrics() }),
  };
}

async function openOperations(pool: pg.Pool): Promise<{ state: string; count: number }[]> {
  try {
    const { rows } = await pool.query<{ state: string; count: number }>(
      `select state, count(*)::int as count from app.operation
       where state in ('queued', 'held', 'sent', 'mined') group by state`,
    );
    return rows;
  } catch {
    return [];
  }
}
