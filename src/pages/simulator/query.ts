/** Parses and checks the simulator's form. */
import { parseDecimal } from "@working-contracts/protocol/amounts";
import { MAX_CRITERIA, OUTCOMES, type Outcome } from "@working-contracts/protocol/outcomes";
import { ENDS, type End, type Scenario } from "./simulate.js";

export interface SimulatorQuery {
  price: string;
  end: End;
  /** One per criterion of the form; empty if the criterion is not used. */
  criteria: (Outcome | "")[];
  votes: string;
  initiator: "client" | "worker";
}

/** Keeps the result readable. */
const MAX_BALLOTS = 25;
const LETTERS: Record<string, Outcome> = { m: "met", n: "not met", u: "unclear" };
const FIRST: SimulatorQuery = {
  price: "50.0",
  end: "dispute",
  criteria: ["met", "met", "not met"],
  votes: "mmn\nmmn\nmum",
  initiator: "client",
};

/** Reads the submitted form. Returns an example if nothing was submitted. */
export function readQuery(params: URLSearchParams): SimulatorQuery {
  if (params.size === 0) return FIRST;
  const end = params.get("end") ?? "";
  return {
    price: (params.get("price") ?? "").trim(),
    end: ENDS.find((known) => known === end) ?? "accepted",
    criteria: params
      .getAll("c")
      .slice(0, MAX_CRITERIA)
      .map((word) => OUTCOMES.find((outcome) => outcome === word) ?? ""),
    votes: (params.get("votes") ?? "").trim(),
    initiator: params.get("initiator") === "worker" ? "worker" : "client",
  };
}

/** Converts the form to a scenario, or returns a sentence that says what is wrong with it. */
export function toScenario(query: SimulatorQuery): Scenario | { fault: string } {
  const price = parseDecimal(query.price);
  if (price === null || price === 0n) {
    return { fault: "The price must be a decimal above 0 with at most 6 decimals, such as 50.0." };
  }
  const outcomes = query.criteria.filter((outcome) => outcome !== "");
  if (outcomes.length === 0) return { fault: "There must be at least one criterion." };

  const lines = query.end === "dispute" && query.votes !== "" ? query.votes.split(/\s+/) : [];
  if (lines.length > MAX_BALLOTS)
    return { fault: `The simulator supports at most ${MAX_BALLOTS} Backup Agents.` };
  const ballots = lines.map((line) => [...line.toLowerCase()].map((letter) => LETTERS[letter]));
  const isWhole = ballots.every(
    (ballot) => ballot.length === outcomes.length && ballot.every((vote) => vote !== undefined),
  );
  if (!isWhole) {
    return {
      fault: `Each line of votes must have ${outcomes.length} letters, one per criterion: m, n or u.`,
    };
  }
  const { end } = query;
  return {
    price,
    end,
    outcomes,
    ballots: ballots as Outcome[][],
    workerInitiated: query.initiator === "worker",
  };
}
