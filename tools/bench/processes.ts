/** One, two and four API processes on one database; the first one also relays, and writes the event log. */
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import { describeLoad, type Load, runLoad, send } from "./load.js";
import { createContract, prepareContract } from "./write-path.js";

export interface ProcessesResult {
  processes: number;
  payments: Load;
  gets: Load;
}

const PROCESSES = [1, 2, 4];
const PAYERS = 128;
const READERS = 32;
/** Payments to each process before it is measured. */
const WARM_UP = 5;

/** Callers are spread evenly over the processes, as by a load balancer. */
export async function measureProcesses(
  bed: Bed,
  { seconds, report }: { seconds: number; report(line: string): void },
): Promise<ProcessesResult[]> {
  const agents = await bed.newAgents(PAYERS);
  const [reader] = agents as [Agent];
  const headers = { authorization: `Bearer ${reader.apiKey}` };
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
    for (const url of urls) {
      for (let i = 0; i < WARM_UP; i++) {
        const { failure } = await createContract(bed, reader, url);
        if (failure !== null) throw new Error(`A warm-up payment failed: ${failure}`);
      }
    }
    await bed.mine("1 s blocks");
    const payments = await runLoad({ concurrency: PAYERS, seconds }, async (payer) =>
      (await prepareContract(bed, agents[payer] as Agent, of(payer)))(),
    );
    const { text } = await send(`${bed.service.url}/v1/contracts?limit=1`, { headers });
    const [{ id }] = JSON.parse(text).data;
    const gets = await runLoad({ concurrency: READERS, seconds }, async (caller) => {
      const startedAt = performance.now();
      const { status } = await send(`${of(caller)}/v1/contracts/${id}`, { headers });
      return { ms: performance.now() - startedAt, failure: status === 200 ? null : String(status) };
    });
    report(`${processes} processes, payments: ${describeLoad(payments)}`);
    report(`${processes} processes, Get: ${describeLoad(gets)}`);
    results.push({ processes, payments, gets });
  }
  await Promise.all(further.map((api) => api.end()));
  return results;
}
