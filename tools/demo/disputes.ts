/** Disputes: three Backup Agents judge all of them, and three others one whose parties do not trust the service. */
import type { Outcome } from "@working-contracts/protocol/outcomes";
import { type Json, ok } from "../../test/support/contracts.js";
import { until } from "../local/processes.js";
import {
  type Agent,
  deliver,
  JUROR_BOND,
  type JurorRow,
  matched,
  type Played,
  played,
  type Stage,
  type Story,
  type Strict,
  workedOut,
} from "./stories.js";

/** Three whose votes are named to the service, and three that seal theirs. */
export interface Jury {
  trusting: Agent[];
  strict: Strict[];
}

/** Names of stories, and of the worked results that they must have. */
const CASES = {
  "dispute, all met": "dispute, all met",
  "dispute, none met": "dispute, none met",
  "dispute, mixed": "dispute, 2 of 3 met",
  "dispute, one unclear": "dispute, 2 met and 1 unclear",
  "dispute, no votes": "dispute, no votes",
  "dispute, tie": "dispute, tie",
};

/** The disputes before `jury`, whose Backup Agents must already be staked. */
export function disputeStories({ trusting, strict }: Jury): Story[] {
  return [
    ...Object.entries(CASES).map(
      ([story, result]): Story =>
        (stage) =>
          judged(stage, story, result, trusting),
    ),
    (stage) => withoutTrust(stage, strict),
  ];
}

async function judged(stage: Stage, story: string, result: string, bench: Agent[]): Promise<Played> {
  const { status, row, votes, dues } = workedOut(result);
  const begun = await matched(stage, story);
  const { client, worker, id } = begun;
  await deliver(stage, story, worker, id);
  const disputed = ok(await client.pay<Json>(`/v1/contracts/${id}/dispute`));
  stage.say(story, `Client disputed, bond ${disputed.disputeBond}: ${disputed.status}`);
  const jurors = votes.map((words, i) => ({ agent: bench[i] as Agent, words, due: dues[i] as JurorRow }));
  await Promise.all(jurors.map(({ agent, words }) => vote(agent, id, words)));
  stage.say(story, votes.length === 0 ? "no one votes" : `${votes.length} sealed votes, visible to no one`);
  return played({ ...begun, status, row, jurors });
}

/** Everyone signs each action; the service can read neither the delivery nor the votes. */
async function withoutTrust(stage: Stage, bench: Strict[]): Promise<Played> {
  const story = "dispute, without trust";
  const { status, row } = workedOut("dispute, all met");
  const parties = await Promise.all([stage.newStrict("Client"), stage.newStrict("Worker")]);
  const [{ client }, { client: worker }] = parties;
  const jury = bench.map((juror) => juror.client);
  const { id } = await client.create({
    title: `Demo: ${story}`,
    taskDescription: "Summarise the attached paper in one page.",
    acceptanceCriteria: ["One page", "Names the method", "Names the limits"],
    budgetOrPrice: 50,
    ...(await client.deadlines({ match: "1d", withdrawal: "2d", delivery: "3d", review: "4d" })),
  });
  await worker.accept(id);
  const reference = `ipfs://summary-${id}`;
  await worker.deliver(id, reference, { seal: true });
  stage.say(story, "Worker signed a delivery that only the Client can open");
  const stopped = new AbortController();
  const sharing = worker.shareDeliveries({ signal: stopped.signal });
  await client.dispute(id);
  await Promise.all(
    jury.map(async (juror) => {
      // Reading asks a party to share, which takes it a moment.
      const shown: (string | null)[] = [];
      const isShown = async () => {
        shown.push(await juror.readReference(id, "delivery"));
        return shown.at(-1) !== null;
      };
      await until(`${juror.address} is shown the delivery`, isShown, { timeoutMs: 60_000, intervalMs: 500 });
      if (shown.at(-1) !== reference) throw new Error(`${juror.address} was shown ${shown.at(-1)}`);
      await juror.vote(id, ["met", "met", "met"]);
    }),
  );
  stopped.abort();
  await sharing;
  stage.say(story, "Worker shared it with three Backup Agents; they voted, sealed from the service too");
  return {
    ...played({ story, id, status, row, client: parties[0], worker: parties[1] }),
    // They agree: each receives its bond, and the full reward.
    jurors: bench.map((agent) => ({ agent, due: { out: JUROR_BOND, tokens: 30n } })),
    async afterVoting() {
      await Promise.all(jury.map((juror) => juror.openVotes({ intervalMs: 500 })));
      stage.say(story, "the Backup Agents opened their votes");
    },
  };
}

async function vote(agent: Agent, id: string, words: Outcome[]): Promise<void> {
  const votes = words.map((word, criterionIndex) => ({ criterionIndex, vote: word }));
  ok(await agent.pay(`/v1/contracts/${id}/votes`, { votes }));
}
