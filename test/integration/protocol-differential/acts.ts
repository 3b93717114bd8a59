/** Every action that anyone can try on an escrow, with the result that the model expects at a given time. */

import { escrowAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { depositsOf, disputeBond, voteDeposit } from "@working-contracts/protocol/ledger";
import { OUTCOMES, type Outcome, packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import {
  effectiveOutcomes,
  isVotingClosed,
  STATUSES,
  seatsOpenAt,
  statusOf,
} from "@working-contracts/protocol/status";
import { type Address, type Hex, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { type Log, type PrivateKeyAccount, parseEventLogs } from "viem";
import {
  type Authorization,
  domainOf,
  type SignedPayment,
  signAuthorization,
} from "../../support/payment.js";
import type { Chance } from "../../support/random.js";
import {
  type Ballot,
  clientOf,
  disputeOf,
  duesOf,
  type Life,
  lifeStatus,
  openableUntil,
  payableAt,
  payoutAt,
  workerOf,
} from "./model.js";
import { type Call, callOf } from "./node.js";

export interface Attempt {
  name: string;
  life: Life;
  call: Call;
  /** Whether the model expects the chain to accept it. */
  allowed: boolean;
  /** Advances the model. */
  apply: () => void;
  /** The actual and the expected content of the events, once the model has advanced. */
  events?: (logs: Log[]) => [actual: unknown, expected: unknown];
}

const OUT_OF_PLACE = 0.15;

export function createActs({
  deployment,
  random,
  voters,
}: {
  deployment: Deployment;
  random: Chance;
  voters: readonly PrivateKeyAccount[];
}) {
  const acts = {
    ...{ accept, decline, cancel, deliver, withdraw, approve },
    ...{ dispute, vote, openVote, tally, settle, claim },
  };
  type ActName = keyof typeof acts;
  const anything = Object.keys(acts) as ActName[];
  /** The usual actions in each state. The rest of the time any action is tried. */
  const usual: Record<string, readonly ActName[]> = {
    created: ["accept", "accept", "accept", "accept", "accept", "decline", "cancel"],
    matched: ["deliver", "deliver", "deliver", "deliver", "deliver", "withdraw"],
    "under-review": ["dispute", "dispute", "dispute", "approve"],
    disputed: ["vote", "vote", "vote", "openVote", "openVote", "tally"],
  };

  return {
    tally,
    settle,
    claim,
    /** A likely action for the escrow's state, sometimes one out of place. Several if voters act in parallel. */
    async random(life: Life, now: number): Promise<Attempt[]> {
      const likely = usual[lifeStatus(life, now)] ?? (["settle", "claim"] as const);
      const act = acts[random.pick(random.hits(OUT_OF_PLACE) ? anything : likely)];
      return [await act(life, now)].flat();
    },
  };

  async function accept(life: Life, now: number): Promise<Attempt> {
    const party = random.hits(0.1) ? random.pick([life.initiator, ...voters]) : life.counterparty;
    const { acceptor } = depositsOf(life.terms);
    const named = life.terms.counterparty;
    const suitable = party !== life.initiator && (named === ZERO_ADDRESS || named === lower(party.address));
    return {
      ...attempt(life, "accept", party, [party.address, await authorize(life, party, acceptor)]),
      allowed: lifeStatus(life, now) === "created" && suitable,
      apply: () => {
        life.counterparty = party;
        life.matched = true;
        life.facts.phase = "matched";
      },
    };
  }

  function decline(life: Life, now: number): Attempt {
    const named = life.terms.counterparty !== ZERO_ADDRESS;
    return {
      ...attempt(life, "decline", life.counterparty),
      allowed: lifeStatus(life, now) === "created" && named,
      apply: end(life, "declined", now),
    };
  }

  function cancel(life: Life, now: number): Attempt {
    const caller = random.pick([life.initiator, life.initiator, life.counterparty]);
    return {
      ...attempt(life, "cancel", caller),
      allowed: lifeStatus(life, now) === "created" && caller === life.initiator,
      apply: end(life, "cancelled", now),
    };
  }

  function deliver(life: Life, now: number): Attempt {
    const caller =
      random.pick([workerOf(life), workerOf(life), workerOf(life), clientOf(life)]) ?? life.initiator;
    const computed = life.terms.computedCriteria !== random.hits(0.05);
    const outcomes = computed ? packOutcomes(randomOutcomes(life)) : 0;
    return {
      ...attempt(life, "deliver", caller, [randomWord(random), randomWord(random), outcomes]),
      allowed:
        lifeStatus(life, now) === "matched" &&
        caller === workerOf(life) &&
        computed === life.terms.computedCriteria,
      apply: () => {
        life.facts.phase = "delivered";
        life.facts.outcomes = outcomes;
      },
    };
  }

  function withdraw(life: Life, now: number): Attempt {
    const caller = workerOf(life) ?? life.counterparty;
    return {
      ...attempt(life, "withdraw", caller),
      allowed: lifeStatus(life, now) === "matched" && now < life.terms.withdrawalDeadline,
      apply: end(life, "withdrawn", now),
    };
  }

  function approve(life: Life, now: number): Attempt {
    const caller = clientOf(life) ?? life.initiator;
    return {
      ...attempt(life, "approve", caller),
      allowed: lifeStatus(life, now) === "under-review",
      apply: () => {
        // A Client accepts the effect of time: its approval gives the same outcomes as the review time-out.
        life.facts.outcomes = effectiveOutcomes(life.facts, life.terms.reviewDeadline);
        end(life, "approved", now)();
      },
      events: (logs) => {
        const approved = parseEventLogs({ abi: escrowAbi, logs, eventName: "WorkingContractApproved" });
        return [approved.map(({ args }) => args.outcomes), [life.facts.outcomes]];
      },
    };
  }

  async function dispute(life: Life, now: number): Promise<Attempt> {
    const caller = clientOf(life) ?? life.initiator;
    const amount = disputeBond(life.terms.price, life.terms.parameters);
    return {
      ...attempt(life, "dispute", caller, [await authorize(life, caller, amount)]),
      allowed: lifeStatus(life, now) === "under-review",
      apply: () => {
        life.facts.phase = "disputed";
        life.disputedAt = BigInt(now);
      },
    };
  }

  /** Several voters in parallel. Only one if seats are limited, because we do not control the order within a block. */
  async function vote(life: Life, now: number): Promise<Attempt[]> {
    const { price, criteriaCount, parameters } = life.terms;
    const seats = parameters.baRecruitCount;
    const seated = seats === 0 ? voters.filter(() => random.hits(0.6)) : [random.pick(voters)];
    const candidates = random.hits(0.05) ? [life.initiator] : seated;
    const dispute = disputeOf(life);
    return Promise.all(
      candidates.map(async (voter): Promise<Attempt> => {
        const ballot: Ballot = {
          voter,
          votes: packOutcomes(randomOutcomes(life)),
          salt: randomWord(random),
          opened: false,
          claimed: false,
        };
        const commitment = voteCommitment({
          chainId: deployment.chainId,
          escrow: life.id,
          voter: voter.address,
          votes: ballot.votes,
          salt: ballot.salt,
        });
        const bond = await authorize(life, voter, voteDeposit(price, criteriaCount, parameters));
        return {
          ...attempt(life, "vote", voter, [voter.address, commitment, bond]),
          allowed:
            lifeStatus(life, now) === "disputed" &&
            !isVotingClosed(dispute, now) &&
            (seats === 0 || now >= seatsOpenAt(dispute)) &&
            voters.includes(voter) &&
            voter !== life.counterparty &&
            life.ballots.every((other) => other.voter !== voter),
          apply: () => life.ballots.push(ballot),
        };
      }),
    );
  }

  function openVote(life: Life, now: number): Attempt[] {
    return life.ballots
      .filter(() => random.hits(0.8))
      .map((ballot) => {
        const wrong = random.hits(0.05);
        const args = [ballot.voter.address, ballot.votes, wrong ? randomWord(random) : ballot.salt] as const;
        return {
          ...attempt(life, "openVote", random.pick(voters), args),
          allowed:
            lifeStatus(life, now) === "disputed" &&
            isVotingClosed(disputeOf(life), now) &&
            now < openableUntil(life) &&
            !ballot.opened &&
            !wrong,
          apply: () => {
            ballot.opened = true;
          },
        };
      });
  }

  function tally(life: Life, now: number): Attempt {
    const allOpen = isVotingClosed(disputeOf(life), now) && life.ballots.every((ballot) => ballot.opened);
    return {
      ...attempt(life, "tally", life.initiator),
      allowed: lifeStatus(life, now) === "disputed" && (allOpen || now >= openableUntil(life)),
      apply: () => {
        life.facts.outcomes = duesOf(life).outcomes;
        end(life, "tallied", now)();
      },
      events: (logs) => {
        const tallied = parseEventLogs({ abi: escrowAbi, logs, eventName: "WorkingContractTallied" });
        return [tallied.map(({ args }) => args.outcomes), [life.facts.outcomes]];
      },
    };
  }

  function settle(life: Life, now: number): Attempt {
    const payable = payableAt(life, now);
    return {
      ...attempt(life, "settle", life.counterparty),
      allowed: !life.facts.settled && payable !== null && now >= payable,
      apply: () => {
        life.facts.settled = true;
      },
      events: (logs) => {
        const settled = parseEventLogs({ abi: escrowAbi, logs, eventName: "WorkingContractSettled" });
        const deferred = parseEventLogs({ abi: escrowAbi, logs, eventName: "PayoutDeferred" });
        const shown = settled.map(({ args }) => [
          STATUSES[args.status - 1],
          lower(args.client),
          lower(args.worker),
          args.payout,
        ]);
        const parties = [clientOf(life), workerOf(life)].map((party) =>
          lower(party?.address ?? ZERO_ADDRESS),
        );
        const expected = [statusOf(life.facts, now), ...parties, payoutAt(life, now)];
        return [
          [shown, deferred],
          [[expected], []],
        ];
      },
    };
  }

  function claim(life: Life, now: number): Attempt[] {
    const payable = payableAt(life, now);
    return life.ballots.map((ballot, index) => ({
      ...attempt(life, "claim", random.pick(voters), [ballot.voter.address]),
      allowed:
        life.facts.phase === "tallied" &&
        ballot.opened &&
        !ballot.claimed &&
        payable !== null &&
        now >= payable,
      apply: () => {
        ballot.claimed = true;
      },
      events: (logs) => {
        const due = duesOf(life).dues[index];
        const claimed = parseEventLogs({ abi: escrowAbi, logs, eventName: "VoteClaimed" });
        return [
          claimed.map(({ args }) => [args.amount, args.reward]),
          [[due?.amount, BigInt(due?.reward ?? 0)]],
        ];
      },
    }));
  }

  function randomOutcomes(life: Life): Outcome[] {
    // Votes lean one way per escrow, so that majorities are common but not the rule.
    const lean = OUTCOMES[Number(BigInt(life.id) % 3n)] as Outcome;
    return Array.from({ length: life.terms.criteriaCount }, () =>
      random.hits(0.6) ? lean : random.pick(OUTCOMES),
    );
  }

  function end(life: Life, phase: Life["facts"]["phase"], now: number): () => void {
    return () => {
      life.facts.phase = phase;
      life.facts.endedAt = now;
    };
  }

  async function authorize(life: Life, payer: PrivateKeyAccount, value: bigint) {
    return authorizePayment(deployment, payer, { to: life.id, value, nonce: randomWord(random) });
  }
}

function attempt(life: Life, name: string, from: PrivateKeyAccount, args: readonly unknown[] = []) {
  return { name, life, call: callOf(lower(from.address), { address: life.id, abi: escrowAbi }, name, args) };
}

export function randomWord(random: Chance): Hex {
  const bytes = Array.from({ length: 32 }, () => random.between(0, 255));
  return `0x${Buffer.from(bytes).toString("hex")}`;
}

/** An EIP-3009 authorization that an escrow accepts. It never expires. */
export const authorizePayment = (
  deployment: Deployment,
  payer: PrivateKeyAccount,
  fields: Pick<Authorization, "to" | "value" | "nonce">,
): Promise<SignedPayment> =>
  signAuthorization(payer, domainOf(deployment), { ...fields, validBefore: 2n ** 255n });

function lower(address: Address): Address {
  return address.toLowerCase() as Address;
}
