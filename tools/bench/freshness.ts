/** Time from a block to the row that readers see, and from the block to the response that the caller gets. */
import pg from "pg";
import type { Agent } from "../../test/support/agent.js";
import type { Bed } from "./bed.js";
import { percentiles } from "./load.js";
import { createContract } from "./write-path.js";

export interface Freshness {
  /** Milliseconds from the block to the visible row. */
  row: ReturnType<typeof percentiles>;
  /** Milliseconds from the block to the response of the paid call. */
  answer: ReturnType<typeof percentiles>;
}

const BLOCKS = 20;
const POLL_MS = 2;

/** Creates one contract in each of twenty blocks, which are mined by hand so that their time is known. */
export async function measureFreshness(bed: Bed, agent: Agent): Promise<Freshness> {
  const { testClient, publicClient, network } = bed;
  await bed.mine("automine");
  await testClient.setAutomine(false);
  const client = new pg.Client({ connectionString: network.databaseUrl });
  await client.connect();
  const [row, answer]: [number[], number[]] = [[], []];
  try {
    for (let block = 0; block < BLOCKS; block++) {
      let answeredAt = 0;
      const created = createContract(bed, agent).then(({ failure }) => {
        if (failure !== null) throw new Error(failure);
        answeredAt = performance.now();
      });
      await poll(async () => (await testClient.getTxpoolStatus()).pending > 0);
      await testClient.mine({ blocks: 1 });
      const minedAt = performance.now();
      const number = await publicClient.getBlockNumber({ cacheTime: 0 });
      await poll(async () => {
        const { rowCount } = await client.query(
          "select 1 from onchain.escrow_event where block_number = $1",
          [number.toString()],
        );
        return rowCount !== 0;
      });
      row.push(performance.now() - minedAt);
      await created;
      answer.push(answeredAt - minedAt);
    }
  } finally {
    await client.end();
  }
  const ascending = (a: number, b: number) => a - b;
  return {
    row: percentiles(row.sort(ascending)),
    answer: percentiles(answer.sort(ascending)),
  };
}

async function poll(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
