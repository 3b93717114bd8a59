/** Disputes: three Backup Agents judge all of them; a fourth votes on chain, without the service. */
import { type Agent, expectOk } from "./agent.js";
import { type JurorRow, LEDGER, type LedgerRow } from "./expected.js";
import { accept, deliver, type Played, played, post, type Stage, type Story } from "./stories.js";

type Word = "met" | "not met" | "unclear";

export interface Jury {
  a: Agent;
  b: Agent;
  c: Agent;
  /** Votes and opens its vote with its own transactions. */
  loner: Agent;
}

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
    (stage) => openedByVoter(stage, jury),
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

/** The service cannot open a vote that it never saw: the voter opens it, with its own salt. */
async function openedByVoter(stage: Stage, { a, b, loner }: Jury): Promise<Played> {
  const story = "dispute, voter opens";
  const { client, worker, id } = await disputeStarted(stage, story);
  await Promise.all([vote(a, id, all("met")), vote(b, id, all("met"))]);
  const open = await stage.voteOnChain(loner, id, "met");
  stage.say(story, `${loner.name} voted with its own transaction: only it can open its vote`);
  const jurors = [a, b, loner].map((agent) => ({ agent, due: due(7_500_000n, 30n) }));
  return {
    ...played({ story, id, status: "settled-all-met", row: LEDGER.allMet, client, worker }),
    jurors,
    afterVoting: open,
  };
}

async function disputeStarted(stage: Stage, story: string) {
  const [client, worker] = await Promise.all([stage.newAgent("Client"), stage.newAgent("Worker")]);
  const id = await post(stage, story, client, { awardMethod: "open_tender" });
  await accept(stage, story, worker, id);
  await deliver(stage, story, worker, id);
  const disputed = expectOk(await client.post(`/v1/contracts/${id}/dispute`));
  stage.say(story, `Client disputed, bond ${disputed.disputeBond}: ${disputed.status}`);
  return { client, worker, id };
}

async function vote(agent: Agent, id: string, words: Word[]): Promise<void> {
  const votes = words.map((word, criterionIndex) => ({ criterionIndex, vote: word }));
  expectOk(await agent.post(`/v1/contracts/${id}/votes`, { votes }));
}
