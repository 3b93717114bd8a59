/** Payments settled per second, and their latency: this service and the official facilitator, on the same chain. */
import { randomBytes } from "node:crypto";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import type { Address } from "viem";
import type { Agent } from "../../test/support/agent.js";
import { DAY, draft } from "../../test/support/contracts.js";
import { domainOf, payloadOf, signAuthorization } from "../../test/support/payment.js";
import type { Bed, Mining } from "./bed.js";
import {
  describeLoad,
  get,
  type Load,
  type Outcome,
  perSuccess,
  report,
  runLoad,
  runWaves,
  send,
} from "./load.js";

export interface WriteResult extends Load {
  mining: Mining;
  system: (typeof SYSTEMS)[number];
  /** Processor time per settled payment, quotes included, in ms by process. */
  cpu: Record<string, number>;
  /** Sent by the service per settled payment, its background work included; null for a facilitator. */
  sent: Record<string, number> | null;
}

const CONCURRENCIES = [1, 8, 32, 128, 512, 1024] as const;
/** Payers by mining mode. On automine one process is the limit long before as many as on 1 s blocks. */
export const LOADS = [
  { mining: "1 s blocks", concurrencies: CONCURRENCIES },
  { mining: "automine", concurrencies: CONCURRENCIES.slice(0, 4) },
] as const;
/** Payments in {@link measureWaves}, or one wave if that is more. */
const WAVE_PAYMENTS = 256;
/** Sequential payments before a process is measured, then seconds of the load that is measured. */
const WARM_UP = 20;
const WARM_UP_SECONDS = 5;
const PRICE = "50";

export const SYSTEMS = ["working-contracts", "facilitator", "facilitator + nonce manager"] as const;

/** Signs a payment. The returned function makes the paid call and measures it. */
type Prepare = (agent: Agent) => Promise<() => Promise<Outcome>>;

/** Measures all systems under one of the {@link LOADS} on one chain, one after another. */
export async function measureWrites(
  bed: Bed,
  { mining, concurrencies, seconds }: (typeof LOADS)[number] & { seconds: number },
): Promise<WriteResult[]> {
  const agents = await bed.newAgents(Math.max(...concurrencies));
  const results: WriteResult[] = [];
  for (const concurrency of concurrencies) {
    const measured = await compareSystems(bed, { mining, concurrency, agents }, (prepare) =>
      runLoad({ concurrency, seconds }, async (loop) => (await prepare(agents[loop] as Agent))()),
    );
    results.push(...measured);
  }
  return results;
}

/** {@link WAVE_PAYMENTS} payments on 1 s blocks, each tried once, in waves of simultaneous payments. */
export async function measureWaves(bed: Bed): Promise<WriteResult[]> {
  const agents = await bed.newAgents(Math.max(...CONCURRENCIES));
  const results: WriteResult[] = [];
  for (const concurrency of CONCURRENCIES.slice(1)) {
    const calls = Math.max(WAVE_PAYMENTS, concurrency);
    const measured = await compareSystems(bed, { mining: "1 s blocks", concurrency, agents }, (prepare) =>
      runWaves({ concurrency, calls }, (caller) => prepare(agents[caller] as Agent)),
    );
    results.push(...measured);
  }
  return results;
}

/** A new facilitator for each measurement, and an empty pool: the previous one leaves nothing behind. */
async function compareSystems(
  bed: Bed,
  { mining, concurrency, agents }: { mining: Mining; concurrency: number; agents: readonly Agent[] },
  run: (prepare: Prepare) => Promise<Load>,
): Promise<WriteResult[]> {
  const results: WriteResult[] = [];
  for (const system of SYSTEMS) {
    await bed.mine("automine");
    const facilitator =
      system === SYSTEMS[0] ? undefined : await bed.startFacilitator(system !== "facilitator");
    const prepare: Prepare = (agent) =>
      facilitator === undefined
        ? prepareContract(bed, agent)
        : prepareSettlement(bed, facilitator.url, agent);
    const pay = async (payer: number) => (await prepare(agents[payer] as Agent))();
    await warmUp(() => pay(0));
    await bed.mine(mining);
    await runLoad({ concurrency, seconds: WARM_UP_SECONDS }, pay);
    const [cpu, counts] = [bed.cpu(facilitator?.pid), await bed.counts()];
    const load = await run(prepare);
    results.push({
      mining,
      system,
      ...load,
      cpu: perSuccess(load, cpu, bed.cpu(facilitator?.pid)),
      sent: facilitator === undefined ? perSuccess(load, counts, await bed.counts()) : null,
    });
    report(`${mining}, ${concurrency} payers, ${system}: ${describeLoad(load)}`);
    await facilitator?.end();
    if (facilitator !== undefined) await bed.dropPending();
  }
  return results;
}

/** Without this, a new process would be measured while its code is still being compiled. */
async function warmUp(call: () => Promise<Outcome>, calls = WARM_UP): Promise<void> {
  for (let i = 0; i < calls; i++) {
    const { failure } = await call();
    if (failure !== null) throw new Error(`A warm-up payment failed: ${failure}`);
  }
}

/** An agent's whole exchange: quote, signature, paid call. The calls are measured, each alone. */
export async function createContract(bed: Bed, agent: Agent, service = bed.service.url): Promise<Outcome> {
  return (await prepareContract(bed, agent, service))();
}

async function prepareContract(bed: Bed, agent: Agent, service = bed.service.url): ReturnType<Prepare> {
  const url = `${service}/v1/contracts`;
  const headers = { authorization: `Bearer ${agent.apiKey}`, "content-type": "application/json" };
  // With automine, the chain's clock runs ahead of this one.
  const inSeconds = async (seconds: number) => new Date(Date.now() + (DAY + seconds) * 1000).toISOString();
  const body = JSON.stringify(await draft({ inSeconds }, { budgetOrPrice: PRICE }));
  const askedAt = performance.now();
  const asked = await send(url, { method: "POST", headers, body });
  const quoteMs = performance.now() - askedAt;
  const quoteHeader = asked.headers["payment-required"];
  if (asked.status !== 402 || typeof quoteHeader !== "string") return unpaid(failureOf(asked));
  const [quote] = decodePaymentRequiredHeader(quoteHeader).accepts;
  if (quote === undefined) return unpaid("no quote");
  const payload = await sign(bed, agent, { to: quote.payTo as Address, value: BigInt(quote.amount) });
  const payment = encodePaymentSignatureHeader({ x402Version: 2, accepted: quote, payload });

  return async () => {
    const startedAt = performance.now();
    const paid = await send(url, {
      method: "POST",
      headers: { ...headers, "payment-signature": payment },
      body,
    });
    const ms = performance.now() - startedAt;
    return { ms, quoteMs, failure: paid.status === 200 ? null : failureOf(paid) };
  };
}

/** A call that could not be paid counts as failed. */
const unpaid = (failure: string) => async (): Promise<Outcome> => ({ ms: 0, failure });

/** A payment as a resource server handles it: the facilitator verifies it, then settles it. */
async function prepareSettlement(bed: Bed, url: string, agent: Agent): ReturnType<Prepare> {
  const { asset, chainId } = bed.network.deployment;
  const payTo: Address = `0x${randomBytes(20).toString("hex")}`;
  const paymentRequirements = {
    scheme: "exact",
    network: `eip155:${chainId}` as const,
    asset: asset.address,
    amount: "50000000",
    payTo,
    maxTimeoutSeconds: 60,
    extra: { name: asset.name, version: asset.version },
  };
  const payload = await sign(bed, agent, { to: payTo, value: BigInt(paymentRequirements.amount) });
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload };
  const body = JSON.stringify({ paymentPayload, paymentRequirements });
  const call = { method: "POST", headers: { "content-type": "application/json" }, body };

  return async () => {
    const startedAt = performance.now();
    const verified = await send(`${url}/verify`, call);
    if (!verified.text.includes('"isValid":true'))
      return { ms: 0, failure: `verify: ${reasonOf(verified.text)}` };
    const settled = await send(`${url}/settle`, call);
    const isSettled = settled.text.includes('"success":true');
    const failure = isSettled ? null : `settle: ${reasonOf(settled.text)}`;
    return { ms: performance.now() - startedAt, failure };
  };
}

async function sign({ network }: Bed, { account }: Agent, transfer: { to: Address; value: bigint }) {
  return payloadOf(await signAuthorization(account, domainOf(network.deployment), transfer));
}

const failureOf = ({ status, text }: { status: number; text: string }) => `${status} ${reasonOf(text)}`;

function reasonOf(text: string): string {
  return /"(?:code|errorReason|invalidReason)":"([^"]+)"/.exec(text)?.[1] ?? text.slice(0, 80);
}

export interface ProcessesResult {
  processes: number;
  payments: Load;
  gets: Load;
}

const PROCESSES = [1, 2, 4];
const PAYERS = 128;
const READERS = 32;
/** Payments to each process before it is measured. */
const WARM_UP_OF_EACH = 5;

/** API processes on one database, with callers spread evenly; another process relays, and writes the event log. */
export async function measureProcesses(bed: Bed, seconds: number): Promise<ProcessesResult[]> {
  const agents = await bed.newAgents(PAYERS);
  const [reader] = agents as [Agent];
  const urls = [bed.service.url];
  const further: Awaited<ReturnType<Bed["startApi"]>>[] = [];
  const of = (caller: number) => urls[caller % urls.length] as string;
  const results: ProcessesResult[] = [];
  for (const processes of PROCESSES) {
    await bed.mine("automine");
    while (urls.length < processes) {
      const api = await bed.startApi();
      further.push(api);
      urls.push(api.url);
    }
    for (const url of urls) await warmUp(() => createContract(bed, reader, url), WARM_UP_OF_EACH);
    await bed.mine("1 s blocks");
    const payments = await runLoad({ concurrency: PAYERS, seconds }, (payer) =>
      createContract(bed, agents[payer] as Agent, of(payer)),
    );
    const { data } = await reader.get<{ id: string }[]>("/v1/contracts?limit=1");
    const gets = await runLoad({ concurrency: READERS, seconds }, (caller) =>
      get(`${of(caller)}/v1/contracts/${data[0]?.id}`, reader.apiKey),
    );
    report(`${processes} processes, payments: ${describeLoad(payments)}`);
    report(`${processes} processes, Get: ${describeLoad(gets)}`);
    results.push({ processes, payments, gets });
  }
  await Promise.all(further.map((api) => api.end()));
  return results;
}
