/** Contracts in each state that the pages distinguish, created over HTTP as agents would. */
import type { ComplaintView } from "../../../src/features/complaints/routes.js";
import type { Agent } from "../../support/agent.js";
import {
  checkpointBody,
  created,
  DAY,
  delivered,
  disputed,
  HOUR,
  matched,
  newJuror,
  newPair,
  ok,
  type Pair,
  readUntil,
  untilStatus,
  vote,
} from "../../support/contracts.js";
import type { World } from "../../support/world.js";

/** Text that would run, break out or mislead on any page that did not escape it. */
export const HOSTILE = `"><script>window.hacked=1</script><img src=x onerror="window.hacked=1"> {{7*7}} ' & </title>`;

export type Seed = Awaited<ReturnType<typeof seed>>;

export async function seed(world: World) {
  const pair = await newPair(world, "10000");
  const { client, worker } = pair;
  const [first, second, third] = (await Promise.all(
    [0, 1, 2].map(() => newJuror(world, { usd: "1000" })),
  )) as [Agent, Agent, Agent];

  // Contracts that need time to end come first. Then the chain's time moves once for all of them.
  const disputedId = (await disputed(world, pair, SURVEY)).id;
  await Promise.all([
    vote(first, disputedId, "met", "met", "not met"),
    vote(second, disputedId, "met", "met", "not met"),
    vote(third, disputedId, "met", "unclear", "met"),
  ]);
  const absent = await matched(world, pair, {
    title: "Transcribe an interview of forty minutes",
    withdrawalDeadline: await world.inSeconds(HOUR + 60),
    deliveryDeadline: await world.inSeconds(HOUR + 120),
  });
  await world.increaseTime(DAY);

  // The service accepts at most five unpaid creations of one caller at once.
  const approved = await approve(world, pair);
  const [open, listing, running, underReview, voting, withdrawn, hostile] = await Promise.all([
    created(world, client, { title: "Label 2,000 street photographs", budgetOrPrice: 320 }),
    created(world, worker, {
      initiator: "worker",
      title: "Nightly backups, checked, for a month",
      budgetOrPrice: 18.5,
    }),
    matched(world, pair, { title: "Port a parser to Rust", budgetOrPrice: 1250 }),
    delivered(world, pair, { title: "Summarise twelve papers on soil carbon" }),
    disputed(world, pair, { title: "Design a logo in three variants", budgetOrPrice: 80 }),
    matched(world, pair, { title: "Proofread a thesis" }),
    beHostile(world),
  ]);
  await Promise.all([
    vote(first, voting.id, "met", "met", "met"),
    vote(second, voting.id, "not met", "met", "met"),
    worker.post(`/v1/contracts/${withdrawn.id}/withdraw`),
    client.post("/v1/agents/me/profile", {
      displayName: "Meadow Research",
      bio: "Buys fieldwork and analysis.",
    }),
    worker.post("/v1/agents/me/profile", {
      displayName: "Tern",
      bio: "Analysis, translation and small programs, delivered on time.",
    }),
  ]);
  await Promise.all([disputedId, approved, absent.id, withdrawn.id].map((id) => settled(client, id)));
  await Promise.all([
    untilStatus(client, disputedId, "settled-partial"),
    untilStatus(client, approved, "settled-all-met"),
    untilStatus(client, absent.id, "cancelled-absent"),
  ]);
  return {
    client: client.address,
    worker: worker.address,
    /** A Backup Agent with resolved and pending votes. */
    juror: first.address,
    /** Two of three criteria met, by three Backup Agents; paid out. */
    disputed: disputedId,
    /** Approved and paid out, with checkpoints and a complaint. */
    approved,
    voting: voting.id,
    open: open.id,
    matched: running.id,
    underReview: underReview.id,
    listing: listing.id,
    withdrawn: withdrawn.id,
    absent: absent.id,
    ...hostile,
    /** A reader's key, to compare pages with the API. */
    apiKey: client.apiKey,
  };
}

const SURVEY = {
  title: "Survey of 300 households on water use",
  taskDescription:
    "Ask 300 households of the district, chosen at random, the twelve questions attached.\n\nDeliver the answers as CSV, one row a household, and a page on how the households were chosen.",
  acceptanceCriteria: [
    "300 complete answers",
    "The sample is random, and the method is described",
    "CSV that follows the attached schema",
  ],
};

async function approve(world: World, pair: Pair): Promise<string> {
  const { client, worker } = pair;
  const { id } = await matched(world, pair, {
    title: "Watch an orderbook for a week",
    awardMethod: "direct_award",
    worker: worker.address,
    budgetOrPrice: 50,
  });
  for (const [fromSequence, toSequence] of [[1, 10] as const, [11, 25] as const]) {
    const body = await checkpointBody(world, { fromSequence, toSequence, data: { rows: toSequence * 1000 } });
    await worker.post(`/v1/contracts/${id}/checkpoint`, body);
  }
  await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://orderbook" });
  await worker.post<ComplaintView>(`/v1/contracts/${id}/complaints`, {
    evidence: { what: "The client answered no question for two days." },
  });
  ok(await client.post(`/v1/contracts/${id}/approve`));
  return id;
}

/** Puts hostile text into every field that a page shows. */
async function beHostile(world: World) {
  const pair = await newPair(world, "100");
  const { client, worker } = pair;
  await client.post("/v1/agents/me/profile", { displayName: '"><script>hacked=1</script>', bio: HOSTILE });
  const { id } = await matched(world, pair, {
    title: HOSTILE,
    taskDescription: `${HOSTILE}\n\n${"long".repeat(200)}`,
    acceptanceCriteria: [HOSTILE, "x".repeat(300), "\u202eright to left"],
    application: "usageticket",
    applicationTerms: { criteria: [{ metric: HOSTILE, op: ">=", target: 1 }], note: HOSTILE },
    supplementaryMaterials: HOSTILE,
    budgetOrPrice: 10,
  });
  const checkpoint = await checkpointBody(world, {
    merkleRoot: HOSTILE,
    lastReceiptHash: HOSTILE,
    teeMeasurement: HOSTILE,
    teeSignature: HOSTILE,
    data: { [HOSTILE]: HOSTILE },
  });
  await worker.post(`/v1/contracts/${id}/checkpoint`, checkpoint);
  const { data } = await worker.post<ComplaintView>(`/v1/contracts/${id}/complaints`, {
    evidence: { [HOSTILE]: HOSTILE },
  });
  await world.pool.query(
    "update app.complaint set status = 'upheld', resolved_at = filed_at, resolution_note = $2 where id = $1",
    [data.id, HOSTILE],
  );
  return { hostile: id, hostileAgent: client.address };
}

/** Waits until every payment of the settlement is on chain. */
const settled = (reader: Agent, id: string) =>
  readUntil(
    `${id} is paid out`,
    async () => (await reader.get<{ legs: { state: string }[] }>(`/v1/contracts/${id}/settlement`)).data,
    ({ legs }) => legs.length > 0 && legs.every(({ state }) => state === "confirmed"),
  );
