/** The disputes of docs/rules.md 52 with their results, worked out by hand. */
import type { Outcome } from "@working-contracts/protocol/outcomes";

export interface WorkedResult {
  /** Mutants select tests by it (test/faults/support/mutants.mjs). */
  name: string;
  price: string;
  /** The votes of A, B and C, a letter for each criterion: m(et), n(ot met) or u(nclear). */
  votes: string;
  status: string;
  criteriaMet: string;
  /** The payout of each. */
  client: string;
  worker: string;
  treasury: string;
  jury: string[];
  /** Minted for A, B and C. */
  tokens: number[];
  /** The outcomes of their bonds, a letter for each criterion: r(eturned), p(artially slashed) or s(lashed). */
  bonds?: string;
}

export const WORKED_RESULTS: WorkedResult[] = [
  {
    name: "dispute, all met",
    price: "50.0",
    votes: "mmm mmm nnn",
    status: "settled-all-met",
    criteriaMet: "mmm",
    client: "0.0",
    worker: "52.5",
    treasury: "2.5",
    jury: ["11.25", "11.25", "0.0"],
    tokens: [30, 30, 0],
    bonds: "rrr rrr sss",
  },
  {
    name: "dispute, none met",
    price: "50.0",
    votes: "nnn nnn uuu",
    status: "settled-none-met",
    criteriaMet: "nnn",
    client: "54.5",
    worker: "0.0",
    treasury: "0.5",
    jury: ["8.625", "8.625", "5.25"],
    tokens: [30, 30, 0],
    bonds: "rrr rrr ppp",
  },
  {
    name: "dispute, 2 of 3 met",
    price: "50.0",
    votes: "mmn mmn mum",
    status: "settled-partial",
    criteriaMet: "mmn",
    client: "18.166667",
    worker: "35.0",
    treasury: "1.833333",
    jury: ["9.125", "9.125", "4.25"],
    tokens: [30, 30, 10],
    bonds: "rrr rrr rps",
  },
  {
    name: "dispute, 2 met and 1 unclear",
    price: "50.0",
    votes: "mmu mmu mmm",
    status: "settled-partial",
    criteriaMet: "mmu",
    client: "9.166668",
    worker: "43.749999",
    treasury: "2.083333",
    jury: ["7.5", "7.5", "7.5"],
    tokens: [24, 24, 20],
  },
  {
    name: "dispute, 1 met, 1 not met, 1 unclear",
    price: "50.0",
    votes: "mnu mnu mnu",
    status: "settled-partial",
    criteriaMet: "mnu",
    client: "27.333333",
    worker: "26.25",
    treasury: "1.416667",
    jury: ["7.5", "7.5", "7.5"],
    tokens: [24, 24, 24],
  },
  {
    name: "dispute, no votes",
    price: "50.0",
    votes: "",
    status: "settled-partial",
    criteriaMet: "uuu",
    client: "27.5",
    worker: "26.25",
    treasury: "1.25",
    jury: [],
    tokens: [],
  },
  {
    name: "dispute, tie",
    price: "50.0",
    votes: "mmm nnn",
    status: "settled-partial",
    criteriaMet: "uuu",
    client: "27.5",
    worker: "26.25",
    treasury: "1.25",
    jury: ["7.5", "7.5"],
    tokens: [0, 0],
    bonds: "rrr rrr",
  },
  {
    name: "dispute, 2 of 3 met, at an odd price",
    price: "12.345678",
    votes: "mmn mmn mum",
    status: "settled-partial",
    criteriaMet: "mmn",
    client: "4.485595",
    worker: "8.641974",
    treasury: "0.452676",
    jury: ["2.253082", "2.253082", "1.049382"],
    tokens: [30, 30, 10],
  },
];

const WORDS = { m: "met", n: "not met", u: "unclear" } as const;
const BONDS = { r: "returned", p: "partially slashed", s: "slashed" } as const;

export const outcomesOf = (letters: string): Outcome[] =>
  [...letters].map((letter) => WORDS[letter as keyof typeof WORDS]);

/** Each Backup Agent's votes, in words. */
export const ballotsOf = ({ votes }: WorkedResult): Outcome[][] => listOf(votes).map(outcomesOf);

/** Each Backup Agent's bond outcomes, in words. */
export const bondOutcomesOf = (bonds: string): string[][] =>
  listOf(bonds).map((letters) => [...letters].map((letter) => BONDS[letter as keyof typeof BONDS]));

const listOf = (letters: string): string[] => letters.split(" ").filter((ballot) => ballot !== "");
