/** Disputes: three Backup Agents judge all of them, and three others one whose parties do not trust the service. */
import {
  type Agent,
  accept,
  deliver,
  expectOk,
  type JurorRow,
  LEDGER,
  type LedgerRow,
  type Played,
  played,
  post,
  type Stage,
  type Story,
  type Strict,
} from "./stories.js";

type Word = "met" | "not met" | "unclear";

/** Votes of the first three are named to the service; the others seal theirs. */
export type Jury = Record<"a" | "b" | "c", Agent> & Record<"d" | "e" | "f", Strict>;

interface Case {
  story: string;
  status: string;
  row: LedgerRow;
  /** Votes of A, B and C, in this order. A shorter list means that fewer of them vote. */
  votes: Word[][];
  dues: JurorRow[];
}

const all = (word: Word): Word[] => [word, word, word];
const due = (out: bigint, tokens: bigint): JurorRow => ({ out, tokens });

const CASES: Case[] = [
  {
    story: "dispute, all met",
    status: "settled-all-met",
    row: LEDGER.allMet,
    votes: [all("met"), all("met"), all("not met")],
    dues: [due(11_250_000n, 30n), due(11_250_000n, 30n), due(0n, 0n)],
  },
  {
    story: "dispute, none met",
    status: "settled-none-met",
    row: LEDGER.noneMet,
    votes: [all("not met"), all("not met"), all("unclear")],
    dues: [due(8_625_000n, 30n), due(8_625_000n, 30n), due(5_250_000n, 0n)],
  },
  {
    story: "dispute, mixed",
    status: "settled-partial",
    row: LEDGER.twoOfThreeMet,
    votes: [
      ["met", "met", "not met"],
      ["met", "met", "not met"],
      ["met", "unclear", "met"],
    ],
    dues: [due(9_125_000n, 30n), due(9_125_000n, 30n), due(4_250_000n, 10n)],
  },
  {
    story: "dispute, one unclear",
    status: "settled-partial",
    row: LEDGER.twoMetOneUnclear,
    votes: [["met", "met", "unclear"], ["met", "met", "unclear"], all("met")],
    dues: [due(7_500_000n, 24n), due(7_500_000n, 24n), due(7_500_000n, 20n)],
  },
  { story: "dispute, no votes", status: "settled-partial", row: LEDGER.undecided, votes: [], dues: [] },
  {
    story: "dispute, tie",
    status: "settled-partial",
    row: LEDGER.undecided,
    votes: [all("met"), all("not met")],
    dues: [due(7_500_000n, 0n), due(7_500_000n, 0n)],
  },
];

/** The disputes before `jury`, whose Backup Agents must already be staked. */
export function disputeStories(jury: Jury): Story[] {
  const bench = [jury.a, jury.b, jury.c];
  return [
    ...CASES.map((each) => (stage: Stage) => judged(stage, each, bench)),
    (stage) => withoutTrust(stage, [jury.d, jury.e, jury.f]),
  ];
}

async function judged(
  stage: Stage,
  { story, status, row, votes, dues }: Case,
  bench: Agent[],
): Promise<Played> {
  const { client, worker, id } = await disputeStarted(stage, story);
  const jurors = votes.map((words, i) => ({ agent: bench[i] as Agent, words, due: dues[i] as JurorRow }));
  await Promise.all(jurors.map(({ agent, words }) => vote(agent, id, words)));
  stage.say(story, votes.length === 0 ? "no one votes" : `${votes.length} sealed votes, visible to no one`);
  return { ...played({ story, id, status, row, client, worker }), jurors };
}

/** Everyone signs each action; the service can read neither the delivery nor the votes. */
async function withoutTrust(stage: Stage, bench: Strict[]): Promise<Played> {
  const story = "dispute, without trust";
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
  const sharing = worker.serveJuries({ signal: stopped.signal });
  await client.dispute(id);
  await Promise.all(
    jury.map(async (juror) => {
      const read = await revealed(() => juror.reveal(id, "delivery"));
      if (read !== reference) throw new Error(`${juror.address} was shown ${read}`);
      await juror.vote(id, ["met", "met", "met"]);
    }),
  );
  stopped.abort();
  await sharing;
  stage.say(story, "Worker shared it with three Backup Agents; they voted, sealed from the service too");
  return {
    ...played({
      story,
      id,
      status: "settled-all-met",
      row: LEDGER.allMet,
      client: parties[0],
      worker: parties[1],
    }),
    jurors: bench.map((agent) => ({ agent, due: due(7_500_000n, 30n) })),
    async afterVoting() {
      await Promise.all(jury.map((juror) => juror.openVotes({ intervalMs: 500 })));
      stage.say(story, "the Backup Agents opened their votes");
    },
  };
}

/** Reading asks a party to share, which takes it a moment. */
async function revealed(read: () => Promise<string | null>): Promise<string | null> {
  const giveUpAt = performance.now() + 60_000;
  for (;;) {
    const reference = await read();
    if (reference !== null || performance.now() > giveUpAt) return reference;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function disputeStarted(stage: Stage, story: string) {
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  await accept(stage, story, worker, id);
  await deliver(stage, story, worker, id);
  const disputed = expectOk(await client.pay(`/v1/contracts/${id}/dispute`));
  stage.say(story, `Client disputed, bond ${disputed.disputeBond}: ${disputed.status}`);
  return { client, worker, id };
}

async function vote(agent: Agent, id: string, words: Word[]): Promise<void> {
  const votes = words.map((word, criterionIndex) => ({ criterionIndex, vote: word }));
  expectOk(await agent.pay(`/v1/contracts/${id}/votes`, { votes }));
}
