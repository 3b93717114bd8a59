/** Load: callers that repeat their call as soon as they get a response, or that all call at the same moment. */
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { performance } from "node:perf_hooks";

/** One call: its duration, in milliseconds, and its result. */
export interface Outcome {
  ms: number;
  failure: string | null;
  /** Duration of the call for its quote, if it needed one. */
  quoteMs?: number;
}

export interface Load {
  concurrency: number;
  succeeded: number;
  failed: number;
  /** Successes per second of wall-clock time, from the first call to the last success. */
  perSecond: number;
  /** Latency of successes, in milliseconds. */
  latency: { p50: number; p95: number; p99: number; max: number };
  /** Of the quotes of successes. */
  quoteLatency: Load["latency"];
  failures: Record<string, number>;
}

/** Runs `call` in `concurrency` loops, then waits for pending calls. A throw, or {@link PATIENCE_MS}, counts as failed. */
export async function runLoad(
  { concurrency, seconds }: { concurrency: number; seconds: number },
  call: (loop: number) => Promise<Outcome>,
): Promise<Load> {
  const counted = count();
  const endsAt = performance.now() + seconds * 1000;
  const loops = Array.from({ length: concurrency }, async (_, loop) => {
    while (performance.now() < endsAt) await counted.add(call(loop));
  });
  await Promise.all(loops);
  return counted.load(concurrency, seconds * 1000);
}

/** Makes `calls` calls in waves of `concurrency` at the same moment; preparation counts in {@link Load.perSecond}. */
export async function runWaves(
  { concurrency, calls }: { concurrency: number; calls: number },
  prepare: (caller: number) => Promise<() => Promise<Outcome>>,
): Promise<Load> {
  const counted = count();
  for (let made = 0; made < calls; made += concurrency) {
    const wave = Array.from({ length: Math.min(concurrency, calls - made) }, (_, caller) => prepare(caller));
    await Promise.all((await Promise.all(wave)).map((call) => counted.add(call())));
  }
  return counted.load(concurrency);
}

function count() {
  const latencies: number[] = [];
  const quoteLatencies: number[] = [];
  const failures = new Map<string, number>();
  const startedAt = performance.now();
  let lastSuccessAt = startedAt;
  return {
    async add(outcome: Promise<Outcome>): Promise<void> {
      const { ms, failure, quoteMs } = await outcome.catch(
        (error: Error): Outcome => ({ ms: 0, failure: error.message }),
      );
      if (failure === null) {
        latencies.push(ms);
        if (quoteMs !== undefined) quoteLatencies.push(quoteMs);
        lastSuccessAt = performance.now();
      } else failures.set(failure, (failures.get(failure) ?? 0) + 1);
    },
    load(concurrency: number, atLeastMs = 0): Load {
      const elapsed = Math.max(lastSuccessAt - startedAt, atLeastMs) / 1000;
      return {
        concurrency,
        succeeded: latencies.length,
        failed: [...failures.values()].reduce((sum, times) => sum + times, 0),
        perSecond: latencies.length === 0 ? 0 : round(latencies.length / elapsed, 1),
        latency: percentiles(latencies),
        quoteLatency: percentiles(quoteLatencies),
        failures: Object.fromEntries([...failures].sort((a, b) => b[1] - a[1]).slice(0, 5)),
      };
    },
  };
}

/** One line on the terminal about what was measured. */
export function report(line: string): void {
  console.log(`  ${line}`);
}

/** By how much each figure grew, divided by the load's successes. */
export function perSuccess(
  { succeeded }: Load,
  before: Record<string, number>,
  after: Record<string, number>,
): Record<string, number> {
  const grown = Object.entries(after).map(([name, total]) => [name, total - (before[name] ?? 0)] as const);
  return Object.fromEntries(grown.map(([name, sum]) => [name, round(sum / Math.max(1, succeeded), 1)]));
}

export function describeLoad({ perSecond, failed, latency, failures }: Load): string {
  const { p50, p95, p99, max } = latency;
  const reasons = Object.entries(failures).map(([reason, count]) => `${count} x ${reason}`);
  return [
    `${perSecond}/s`,
    `p50 ${p50} p95 ${p95} p99 ${p99} max ${max} ms`,
    `${failed} failed`,
    ...reasons,
  ].join(", ");
}

/** Nearest-rank percentiles. */
export function percentiles(numbers: readonly number[]): Load["latency"] {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = (share: number) => round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: round(sorted.at(-1) ?? 0) };
}

export function round(value: number, digits = 0): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

/** How long a caller waits for any response. */
const PATIENCE_MS = 20_000;

const connections = new Agent({ keepAlive: true, maxSockets: 1024, keepAliveMsecs: 30_000 });

/** One read; any status but 200 counts as failed. */
export async function get(url: string, apiKey: string): Promise<Outcome> {
  const startedAt = performance.now();
  const { status } = await send(url, { headers: { authorization: `Bearer ${apiKey}` } });
  return { ms: performance.now() - startedAt, failure: status === 200 ? null : String(status) };
}

/** One HTTP request on kept connections; cheaper than `fetch`, which would be measured with the server. */
export function send(
  url: string,
  {
    method = "GET",
    headers = {},
    body,
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const sent = request(
      url,
      { method, agent: connections, headers: { ...headers, ...length } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString("utf8"),
          }),
        );
      },
    );
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error(`no response within ${PATIENCE_MS / 1000} s`)));
    sent.on("error", reject);
    sent.end(body);
  });
}
