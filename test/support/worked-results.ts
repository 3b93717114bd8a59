/** The disputes of docs/rules.md 52 with their results, worked out by hand. */
import type { Outcome } from "@working-contracts/protocol/outcomes";

export interface WorkedResult {
  /** Mutants select tests by it (test/faults/support/mutants.diff). */
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
  /** The outcomes of their bonds, a letter for each criterion: r(eturned), p(artially slashed) or s(lashed); or "". */
  bonds: string;
}

const TABLE = `
name | price | votes | status | criteriaMet | client | worker | treasury | jury | tokens | bonds
dispute, all met | 50.0 | mmm mmm nnn | settled-all-met | mmm | 0.0 | 52.5 | 2.5 | 11.25 11.25 0.0 | 30 30 0 | rrr rrr sss
dispute, none met | 50.0 | nnn nnn uuu | settled-none-met | nnn | 54.5 | 0.0 | 0.5 | 8.625 8.625 5.25 | 30 30 0 | rrr rrr ppp
dispute, 2 of 3 met | 50.0 | mmn mmn mum | settled-partial | mmn | 18.166667 | 35.0 | 1.833333 | 9.125 9.125 4.25 | 30 30 10 | rrr rrr rps
dispute, 2 met and 1 unclear | 50.0 | mmu mmu mmm | settled-partial | mmu | 9.166668 | 43.749999 | 2.083333 | 7.5 7.5 7.5 | 24 24 20 |
dispute, 1 met, 1 not met, 1 unclear | 50.0 | mnu mnu mnu | settled-partial | mnu | 27.333333 | 26.25 | 1.416667 | 7.5 7.5 7.5 | 24 24 24 |
dispute, no votes | 50.0 | | settled-partial | uuu | 27.5 | 26.25 | 1.25 | | |
dispute, tie | 50.0 | mmm nnn | settled-partial | uuu | 27.5 | 26.25 | 1.25 | 7.5 7.5 | 0 0 | rrr rrr
dispute, 2 of 3 met, at an odd price | 12.345678 | mmn mmn mum | settled-partial | mmn | 4.485595 | 8.641974 | 0.452676 | 2.253082 2.253082 1.049382 | 30 30 10 |`;

const listOf = (text: string): string[] => text.split(" ").filter((part) => part !== "");

const [names = [], ...rows] = TABLE.trim()
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()));

export const WORKED_RESULTS = rows.map((row): WorkedResult => {
  const cells = Object.fromEntries(names.map((name, i) => [name, row[i]])) as Record<
    keyof WorkedResult,
    string
  >;
  return { ...cells, jury: listOf(cells.jury), tokens: listOf(cells.tokens).map(Number) };
});

const WORDS = { m: "met", n: "not met", u: "unclear" } as const;
const BONDS = { r: "returned", p: "partially slashed", s: "slashed" } as const;

export const outcomesOf = (letters: string): Outcome[] =>
  [...letters].map((letter) => WORDS[letter as keyof typeof WORDS]);

/** Each Backup Agent's votes, in words. */
export const ballotsOf = ({ votes }: WorkedResult): Outcome[][] => listOf(votes).map(outcomesOf);

/** Each Backup Agent's bond outcomes, in words. */
export const bondOutcomesOf = (bonds: string): string[][] =>
  listOf(bonds).map((letters) => [...letters].map((letter) => BONDS[letter as keyof typeof BONDS]));
