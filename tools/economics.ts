/** `npm run economics`: what it costs to own, bribe, choose, stall or farm a jury. docs/trust.md holds its tables. */
import { pathToFileURL } from "node:url";
import { juryDues, resolve, voteBond } from "@working-contracts/protocol/ledger";
import { packOutcomes, tallyOutcomes } from "@working-contracts/protocol/outcomes";
import { DEFAULT_PARAMETERS as parameters } from "@working-contracts/protocol/terms";
import { markdownTable } from "./generated.js";

const UNIT = 1_000_000;
const CRITERIA = 3;
/** Limits of ProtocolToken, and the daily cap of `npm run deploy`: whole tokens. */
const WEEKLY_GRANTS = 50_000;
const DAILY_CAP = 10_000;
const MAX_DAILY_CAP = 100_000;
const MAX_PANEL = 31;
/** Of a chain on which a builder that does not like its block's hash leaves the block out. */
const BLOCK_REWARD = 50;
/** Seconds between blocks, and how many blocks back a seed's hash can be read (EIP-2935). */
const BLOCK_SECONDS = 2;
const HASHES = 8_191;
const PANELS = [3, 5, 7, 15, 31];

/** The tables, in Markdown. */
export function report(): string {
  return [ownership(), ownDisputes(), turnout(), bribery(), choosing(), stalling(), farming()].join("\n\n");
}

/** A seat in the pool costs its eligibility stake; farming is the cheapest way to get tokens that anyone can use. */
function ownership(): string {
  const seat = parameters.baEligibilityStake * cheapestToken();
  const pools = [
    [20, CRITERIA],
    [50, 1],
    [50, CRITERIA],
    [50, 10],
    [100, CRITERIA],
    [500, CRITERIA],
  ] as const;
  const rows = pools.map(([honest, criteria]) => {
    const everySize = Array.from({ length: 2 * honest }, (_, i) => i + 1);
    const even = everySize.find((own) => majorityGain({ honest, own, panel: 5 }, () => 1) >= 0.5 - 1e-9) ?? 0;
    const worthIt = PANELS.map((panel) => {
      const gain = (own: number) =>
        majorityGain({ honest, own, panel }, (others) => 1 + bondsOf(others, criteria));
      return money(Math.floor(Math.min(...everySize.map((own) => (own * seat) / gain(own)))));
    });
    return [String(honest), String(criteria), `${even} (${money(even * seat)})`, ...worthIt];
  });
  const head = [
    "Honest agents in the pool",
    "Criteria",
    "Seats for an even chance in a panel of 5",
    ...PANELS.map((panel) => `panel of ${panel}`),
  ];
  return `Buying a jury, at ${money(seat)} a seat. A majority decides who gets the price, and takes the bonds of the honest minority. The table shows the total price of disputed contracts above which an attacker's seats pay for themselves. Seats are kept, and the majority's own bonds come back.\n\n${markdownTable(head, rows)}`;
}

/** Client, Worker and voters of one attacker, which votes falsely only in panels that it owns. */
function ownDisputes(): string {
  const honest = 50;
  // If all criteria end as not met. The draw is public before anyone votes, and a delivery's reference can then still
  // show good work or none, so both kinds of panels can end like that.
  const cost = farm(100, 5, "not met").paid / 100;
  const rows = [5, 10, 20, 30, 50].map((own) => {
    const seats = own * parameters.baEligibilityStake * cheapestToken();
    const cells = [CRITERIA, 10].flatMap((criteria) => {
      const gain = majorityGain({ honest, own, panel: 5 }, (others) => bondsOf(others, criteria)) - cost;
      return [percent(gain), gain > 0 ? money(Math.floor(seats / gain)) : "never"];
    });
    return [`${own} (${money(seats)})`, ...cells];
  });
  const head = [
    `Own seats, with ${honest} honest ones`,
    ...[CRITERIA, 10].flatMap((criteria) => [`${criteria} criteria: gain`, "seats are paid back after"]),
  ];
  return `Disputes with oneself, panel of 5: the average gain of one, as a share of its price, if ${percent(cost)} of the price goes to the Treasury, the least possible (no criterion is met); and the total price of such disputes after which the seats are paid back.\n\n${markdownTable(head, rows)}`;
}

/** Bonds of honest voters against whom a majority votes, as a share of the price. */
function bondsOf(voters: number, criteria: number): number {
  return (voters * criteria * parameters.backupAgentBondRatio) / 10_000;
}

/** Hypergeometric: what draws are worth on average, if only a majority of own seats is worth anything. */
function majorityGain(
  { honest, own, panel }: { honest: number; own: number; panel: number },
  worth: (others: number) => number,
): number {
  const seats = Math.min(panel, honest + own);
  let gain = 0;
  for (let mine = Math.floor(seats / 2) + 1; mine <= Math.min(seats, own); mine++) {
    const others = seats - mine;
    if (others > honest) continue;
    const chance = lnChoose(own, mine) + lnChoose(honest, others) - lnChoose(own + honest, seats);
    gain += Math.exp(chance) * worth(others);
  }
  return gain;
}

function lnChoose(n: number, k: number): number {
  let sum = 0;
  for (let i = 1; i <= k; i++) sum += Math.log(n - k + i) - Math.log(i);
  return sum;
}

/** Seats that are empty at half time go to whoever votes first: own agents that wait for it need no luck in the draw. */
function turnout(): string {
  const seat = parameters.baEligibilityStake * cheapestToken();
  const sizes = PANELS.map((panel) => ({ panel, own: Math.ceil(panel / 2) }));
  const rows = [0.95, 0.9, 0.8, 0.7, 0.6, 0.5].map((voting) => [
    `${100 * voting}%`,
    ...sizes.map(({ panel, own }) => percent(emptyChance({ panel, own, voting }))),
  ]);
  const head = [
    "Chance that a drawn agent votes in the first half",
    ...sizes.map(({ panel, own }) => `panel of ${panel}: ${own} own (${money(own * seat)})`),
  ];
  return `Filling empty seats: the chance that own agents find a majority of the seats empty when these open to everyone, all drawn agents being honest.\n\n${markdownTable(head, rows)}`;
}

/** Binomial: the chance that at least `own` of the drawn agents have not voted. */
function emptyChance({ panel, own, voting }: { panel: number; own: number; voting: number }): number {
  let chance = 0;
  for (let voted = 0; voted <= panel - own; voted++) {
    chance += Math.exp(lnChoose(panel, voted)) * voting ** voted * (1 - voting) ** (panel - voted);
  }
  return chance;
}

/** A Backup Agent that takes a bribe risks its bond, so a majority costs at least the bonds of half of the panel. */
function bribery(): string {
  const bond = Number(voteBond(100n * BigInt(UNIT), parameters)) / UNIT;
  const atRisk = (panel: number, criteria: number) => ((panel + 1) / 2) * criteria * bond;
  const rows = [1, 2, 3, 5, 10].map((criteria) => {
    const sizes = Array.from({ length: (MAX_PANEL + 1) / 2 }, (_, i) => 2 * i + 1);
    const enough = sizes.find((panel) => atRisk(panel, criteria) >= 100);
    return [
      String(criteria),
      ...PANELS.map((panel) => `${Math.round(atRisk(panel, criteria))}%`),
      String(enough ?? "none"),
    ];
  });
  const head = [
    "Criteria",
    ...PANELS.map((panel) => `panel of ${panel}`),
    "Smallest panel that risks the price",
  ];
  return `Bonds that a bribed majority puts at risk, as a share of the price:\n\n${markdownTable(head, rows)}`;
}

/** Whoever chooses among seeds draws until its own agents have a majority; a keeper, until seats open to everyone. */
function choosing(): string {
  const honest = 50;
  const wait = (HASHES * BLOCK_SECONDS) / 3_600;
  const waits = Math.floor(parameters.baVotingWindow / 2 / (HASHES * BLOCK_SECONDS));
  const rows = [5, 10, 20, 30, 50].map((own) => {
    const chance = majorityGain({ honest, own, panel: 5 }, () => 1);
    const extra = Math.max(0, Math.ceil(Math.log(0.5) / Math.log(1 - chance) - 1e-9) - 1);
    return [
      String(own),
      percent(chance),
      percent(1 - (1 - chance) ** (waits + 1)),
      `${extra} (${money(extra * BLOCK_REWARD)})`,
    ];
  });
  const head = [
    `Own seats, with ${honest} honest ones`,
    "Majority in one draw",
    `Delayed: in ${waits + 1} draws`,
    `Builder: blocks to leave out for an even chance (at ${BLOCK_REWARD})`,
  ];
  const title = `Choosing the seed, panel of 5: whoever delays the draw gets another seed after ${wait.toFixed(1)} hours, ${waits} times before seats open to everyone:`;
  return `${title}\n\n${markdownTable(head, rows)}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)}%`;
}

function stalling(): string {
  const hours = parameters.baVotingWindow / 3_600 + 24;
  const perVote = (CRITERIA * parameters.backupAgentBondRatio) / 100;
  return markdownTable(
    ["Stall or dilution", "Longest delay, or notice", "Cost, or limit"],
    [
      ["a voter does not open its votes", `tally after ${hours} hours`, `its bond, ${perVote}% of the price`],
      [
        "someone exhausts the daily mint cap",
        "rewards wait a day",
        `${money(DAILY_CAP * cheapestToken())} a day`,
      ],
      [
        "the owner grants itself agents",
        "public for 7 days",
        `${WEEKLY_GRANTS / parameters.baEligibilityStake} agents a calendar week, so twice as many around its boundary`,
      ],
      [
        "the owner is the Treasury too, and farms",
        "none",
        `gas, and capital that comes back: ${DAILY_CAP / parameters.baEligibilityStake} agents a day`,
      ],
      [
        "the owner raises the daily cap",
        "public for 7 days",
        `as before: at most ${MAX_DAILY_CAP / parameters.baEligibilityStake} agents a day`,
      ],
    ],
  );
}

/** Disputes between own addresses: everything but the Treasury's part comes back. */
function farming(): string {
  const rows = [0.01, 1, 10, 50, 1_000].flatMap((price) =>
    (["met", "not met"] as const).map((outcome) => {
      const { minted, paid, uncapped } = farm(price, 5, outcome);
      const perToken = (tokens: number) => (tokens === 0 ? "nothing minted" : (paid / tokens).toFixed(6));
      return [money(price), outcome, paid.toFixed(6), String(minted), perToken(minted), perToken(uncapped)];
    }),
  );
  const head = ["Price", "All criteria", "To the Treasury", "Tokens", "Cost a token", "Without the cap"];
  return `Farming with five own voters on ${CRITERIA} criteria:\n\n${markdownTable(head, rows)}`;
}

/** Own voters agree on every criterion. */
function farm(price: number, voters: number, outcome: "met" | "not met") {
  const units = BigInt(Math.round(price * UNIT));
  const outcomes = packOutcomes(Array.from({ length: CRITERIA }, () => outcome));
  const ballots = Array.from({ length: voters }, () => outcomes);
  const { dues } = juryDues(ballots, { price: units, criteriaCount: CRITERIA, parameters });
  const tally = tallyOutcomes(outcomes, CRITERIA);
  const paid = Number(resolve({ price: units, tally, disputed: true, parameters }).treasury) / UNIT;
  const minted = dues.reduce((sum, { reward }) => sum + reward, 0);
  return { minted, paid, uncapped: voters * CRITERIA * parameters.tokenMintRewardFull };
}

/** Lowest cost of a farmed token over prices and outcomes. */
function cheapestToken(): number {
  const costs = [1, 2, 5, 10, 15, 20, 50, 75, 100, 500].flatMap((price) =>
    (["met", "not met"] as const).map((outcome) => {
      const { minted, paid } = farm(price, 5, outcome);
      return minted === 0 ? Number.POSITIVE_INFINITY : paid / minted;
    }),
  );
  return Math.min(...costs);
}

function money(amount: number): string {
  return amount.toLocaleString("en", { maximumFractionDigits: 2 });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) console.log(report());
